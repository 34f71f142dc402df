"""`penstock set`: change a flow that runs in another terminal."""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.cli.running import FlowReference, asked
from penstock.durations import milliseconds
from penstock.operate.protocol import Changed, Set

Value = TypeVar("Value")
# A pool that grows waits for a boundary, and that for the batch to end.
_BOUNDARY_S = 120.0


class Mode(StrEnum):
    """What becomes of the decisions of a policy."""

    ON = "on"
    RECOMMEND = "recommend"
    OFF = "off"


def command(
    flow: FlowReference = None,
    replicas: Annotated[
        list[str] | None,
        typer.Option("--replicas", metavar="TASK=NUMBER", help="Use so many replicas of a task."),
    ] = None,
    lifetimes: Annotated[
        list[str] | None,
        typer.Option(
            "--lifetime", metavar="STREAM=TIME", help='Ship batches after that time: "a->b=5 ms"; 0 at once.'
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bound", metavar="CONSTRAINT=TIME", help="Hold a constraint to another bound."),
    ] = None,
    pause: Annotated[
        list[str] | None, typer.Option("--pause", metavar="SOURCE", help="Let a source read nothing.")
    ] = None,
    resume: Annotated[
        list[str] | None,
        typer.Option("--resume", metavar="SOURCE", help="Let a source read on that was paused."),
    ] = None,
    policy: Annotated[
        Mode | None, typer.Option(help="Carry out what the policy decides, only show it, or do not ask it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Change replicas, lifetimes and bounds of a flow that runs, pause its sources: all of it or nothing."""
    console = Console(stderr=True)
    with user_errors(console):
        wanted = Set(
            replicas=assigned("--replicas", replicas or (), _whole),
            lifetimes_ms=assigned("--lifetime", lifetimes or (), milliseconds),
            bounds_ms=assigned("--bound", bounds or (), milliseconds),
            pause=pause or [],
            resume=resume or [],
            policy=None if policy is None else policy.value,
        )
        if wanted == Set():
            raise typer.BadParameter(
                "nothing to set; give --replicas, --lifetime, --bound, --pause, --resume or --policy",
                param_hint="set",
            )
        greeting, answer = asked(flow, wanted, console, _BOUNDARY_S)
    assert isinstance(answer, Changed)
    if as_json:
        print(json.dumps({"flow": greeting.flow, "run": greeting.run} | msgspec.to_builtins(answer)))
        return
    for line in changed_lines(answer):
        Console().print(line, markup=False, highlight=False, soft_wrap=True)


def changed_lines(changed: Changed) -> list[str]:
    """For people."""
    lines = list(changed.changes)
    if changed.gap_ms:
        lines.append(f"the sources stood still for {changed.gap_ms:.0f} ms at a boundary")
    if not changed.in_effect:
        lines.append("not every executor has confirmed it yet")
    return lines if changed.note is None else [*lines, changed.note]


def assigned(option: str, texts: Sequence[str], read: Callable[[str], Value]) -> dict[str, Value]:
    """NAME=VALUE, as often as given; streams have a ">" in their names, and no name has a "="."""
    found: dict[str, Value] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint=option)
        if name.strip() in found:
            raise typer.BadParameter(f"{name.strip()!r} is given twice", param_hint=option)
        try:
            found[name.strip()] = read(value.strip())
        except ValueError as problem:
            raise typer.BadParameter(f"{text!r}: {problem}", param_hint=option) from None
    return found


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of replicas")
    return int(text)
