"""Which flow `penstock simulate` is to run: the user's own, that of a recording, or an application."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.cli.simulate_options import BesideError, loads, ratios, services
from penstock.cli.target import load_flow
from penstock.control.recording import RecordingError, read_header, read_snapshots
from penstock.control.recording_header import RecordingHeader
from penstock.sim.catalogue import APPLICATIONS, find_workload
from penstock.sim.declared import Beside, declared_model
from penstock.sim.model import FlowModel
from penstock.sim.recorded import recorded_model

_MISSING = f"name a FLOW: module:flow, or one of {', '.join(APPLICATIONS)}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a recording shows of a run."""

    header: RecordingHeader | None
    model: FlowModel


@dataclass(frozen=True, slots=True)
class Told:
    """What the user said of the flow, by the options of the command."""

    target: str | None
    options: Sequence[str] = ()
    profile: str | None = None
    service: Sequence[str] = ()
    ratio: Sequence[str] = ()
    load: Sequence[str] = ()
    seen: Seen | None = None

    def refuse(self, why: str, *options: str) -> None:
        """Options that would have no effect here."""
        if any(getattr(self, option) for option in options):
            raise BesideError(why)


def read_seen(recording: Path) -> Seen:
    """The last header of a recording, and the model of what all its snapshots show."""
    try:
        header = read_header(recording)
        name = recording.stem if header is None else header.flow
        return Seen(header, recorded_model(list(read_snapshots(recording)), name))
    except OSError as error:
        raise RecordingError(f"--measured: {recording} cannot be read: {error.strerror}") from None


def flow_to_simulate(told: Told, seconds: float | None) -> FlowModel:
    """The model; `seconds` is how long it is to run, None if its load says that."""
    if told.target is None:
        told.refuse(_MISSING, "options", "profile", "service", "ratio", "load")
        if told.seen is None:
            raise BesideError(f"{_MISSING}, or a recording (--measured FILE)")
        return told.seen.model
    if ":" not in told.target:
        told.refuse(
            f"application {told.target!r} has a model of its own; name a flow as module:flow",
            *("options", "service", "ratio", "load", "seen"),
        )
        return find_workload(told.target, told.profile)
    told.refuse("--profile is for applications", "profile")
    graph = load_flow(told.target, told.options).graph()
    measured = None if told.seen is None else told.seen.model
    beside = Beside(services(told.service), loads(told.load, graph), ratios(told.ratio), measured)
    return declared_model(graph, beside, seconds)
