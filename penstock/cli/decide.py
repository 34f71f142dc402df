"""`penstock decide`: what a policy would do with a snapshot, and why."""

import codecs
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from penstock.cli.decide_explain import explain_decision, explain_parameters, explain_policy
from penstock.cli.errors import BAD_INPUT, tell_error
from penstock.control.decider import Decider
from penstock.control.live_policy import as_run as decided_as_run
from penstock.control.recorded_snapshot import RecordedSnapshot, decode_recorded
from penstock.control.recording import RecordedRun, decode_line
from penstock.control.recording_header import RecordingHeader
from penstock.policy.decision import encode_decision
from penstock.policy.guards.compose import guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.parameters import SettingError, parse_settings
from penstock.policy.port import Policy
from penstock.policy.registry import UnknownPolicyError, create_policy, parameters_type, policy_names

STANDARD_INPUT = "-"


class InputError(ValueError):
    """What was given cannot be used; the message says what and where."""


def command(
    snapshot: Annotated[
        str | None,
        typer.Argument(metavar="SNAPSHOT", help="A JSON file, or one of JSON lines; - is standard input."),
    ] = None,
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME", help=f"One of {', '.join(policy_names())}; see also --as-run."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter, for example ds2.min_change=2."),
    ] = None,
    guards: Annotated[
        bool, typer.Option("--guards", help="Hold the policy back as the controller would.")
    ] = False,
    as_run: Annotated[
        bool,
        typer.Option(
            "--as-run",
            help="Decide exactly as `penstock run` did: policy, settings, guards, slots and boundaries of the"
            " recording. With --policy: as it would have decided there.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add the formula, the inputs and the parameters in words."),
    ] = False,
) -> None:
    """Print what a policy decides on a snapshot, as one line of JSON.

    Several snapshots (JSON lines) are decided one after the other, with the policy's memory carried along;
    where a recorded run was started again, the memory begins anew, as it did then.
    Without a snapshot, --explain lists the policy's formula and parameters.
    """
    try:
        runs = [] if snapshot is None else _runs(snapshot)
        if snapshot is None and (as_run or not explain):
            raise InputError("SNAPSHOT is missing; name a file, or - for standard input")
        if as_run:
            deciding = _as_run(runs, policy, settings or [], guards=guards)
            about = []
        else:
            inside, used, groups = _prepared(policy, settings or [], guards=guards)
            deciding = [used for _ in runs]
            about = [explain_policy(inside), explain_parameters(groups)]
    except (InputError, SettingError, UnknownPolicyError) as error:
        tell_error(Console(stderr=True), str(error))
        raise typer.Exit(BAD_INPUT) from None
    for run, used in zip(runs, deciding, strict=True):
        decider = Decider(used)
        for one in run.snapshots:
            decision = decider.decide(
                one.snapshot, one.stood_still_ms if as_run else None, is_asked=one.is_asked or not as_run
            )
            typer.echo(encode_decision(decision).decode())
            if explain:
                typer.echo(explain_decision(one.snapshot, decision))
    for words in about if explain else []:
        typer.echo(words)


def _as_run(
    runs: list[RecordedRun], policy: str | None, settings: list[str], *, guards: bool
) -> list[Policy[Any]]:
    """Who decides about each run of a recording."""
    if guards:
        raise InputError("--as-run has the guards already; leave --guards out")
    if policy is None and settings:
        raise InputError("--as-run has the settings of the recording; --set needs --policy")
    return [decided_as_run(run.header, policy, settings) for run in runs]


def _prepared(
    name: str | None, settings: list[str], *, guards: bool
) -> tuple[Policy[Any], Policy[Any], dict[str, msgspec.Struct]]:
    """The policy, the policy that is asked (it may be guarded), and the parameters of both."""
    if name is None:
        raise InputError("--policy is missing; for a recording, --as-run takes what it ran with")
    kinds: dict[str, type[msgspec.Struct]] = {name: parameters_type(name)}
    if guards:
        kinds["guards"] = GuardParameters
    groups = parse_settings(settings, kinds)
    inside = create_policy(name, groups[name])
    if not guards:
        return inside, inside, groups
    return inside, guarded(inside, msgspec.convert(groups["guards"], GuardParameters)), groups


def _runs(source: str) -> list[RecordedRun]:
    """The snapshots of a file: one JSON object over any number of lines, or one object on each line.

    In a recording a header begins a new run. A last line that a killed run left cut off is told and left out.
    """
    text = _read(source)
    if not text.strip():
        raise InputError(f"{_named(source)}: is empty; a snapshot is a JSON object")
    if not _is_lines(text):
        return [RecordedRun(None, [_decoded(text, _named(source))])]
    runs = [RecordedRun(None)]
    for number, line in enumerate(_whole_lines(text, source).splitlines(), start=1):
        if not line.strip():
            continue
        found = _line(line, f"{_named(source)}, line {number}")
        if isinstance(found, RecordingHeader):
            runs.append(RecordedRun(found))
        else:
            runs[-1].snapshots.append(found)
    runs = [run for run in runs if run.snapshots]
    if not runs:
        raise InputError(f"{_named(source)}: holds no snapshot yet")
    return runs


def _whole_lines(text: str, source: str) -> str:
    before, end, last = text.rpartition("\n")
    if not end or not last.strip() or _is_json(last):
        return text
    number = before.count("\n") + 2
    tell_error(Console(stderr=True), f"{_named(source)}, line {number}: is cut off and left out")
    return before


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _line(line: str, where: str) -> RecordingHeader | RecordedSnapshot:
    try:
        return decode_line(line)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def _decoded(text: str, where: str) -> RecordedSnapshot:
    try:
        return decode_recorded(text)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def _is_lines(text: str) -> bool:
    """A recording, or more than one line, the first of which is a JSON object by itself."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        begin = json.loads(lines[0])
        return isinstance(begin, dict) and (len(lines) > 1 or "recording" in begin)
    except (ValueError, RecursionError):
        return False


def _read(source: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if source == STANDARD_INPUT else Path(source).read_bytes()
        # Where a killed run stopped writing may be inside a character.
        return codecs.getincrementaldecoder("utf-8")().decode(raw)
    except OSError as error:
        raise InputError(f"{_named(source)}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{_named(source)}: is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from None


def _named(source: str) -> str:
    return "standard input" if source == STANDARD_INPUT else source
