"""What `penstock simulate` is told beside a flow: service times, ratios and loads, as a user types them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.durations import DurationError, seconds
from penstock.flow.graph import Graph
from penstock.io.schedule import Schedule, ScheduleError, constant, steps
from penstock.io.trace import trace
from penstock.sim.declared import Service

S = TypeVar("S", bound=msgspec.Struct)


class BesideError(ValueError):
    """An option that cannot be used; the message names it."""


class _TraceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    column: str = "value"
    time_column: str = "timestamp"
    speed_up: float = 1.0
    scale: float = 1.0


class _ServiceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cv: float = 0.0


def services(given: Sequence[str]) -> dict[str, Service]:
    """`TASK=TIME[,cv=NUMBER]`, each once."""
    found: dict[str, Service] = {}
    for option in given:
        task, text = _named(option, "--service", "work=5ms or work=5ms,cv=0.5")
        time, *more = text.split(",")
        try:
            mean_s = seconds(time)
            own = _options(more, _ServiceOptions)
        except ValueError as error:
            raise BesideError(f"--service {option}: {error}") from None
        if own.cv < 0:
            raise BesideError(f"--service {option}: cv is 0 or more")
        found[task] = Service(mean_s, own.cv)
    return found


def ratios(given: Sequence[str]) -> dict[str, float]:
    """`TASK=NUMBER`: items sent for each item received."""
    found: dict[str, float] = {}
    for option in given:
        task, text = _named(option, "--ratio", "split=20")
        try:
            found[task] = float(text)
        except ValueError:
            raise BesideError(f"--ratio {option}: {text!r} is not a number") from None
        if not 0 <= found[task] < float("inf"):
            raise BesideError(f"--ratio {option}: a ratio is a number of 0 or more")
    return found


def loads(given: Sequence[str], graph: Graph) -> dict[str, Schedule]:
    """`[SOURCE=]LOAD`; the name may be left out where there is only one source."""
    sources = [task.name for task in graph.tasks if task.kind == "source"]
    found: dict[str, Schedule] = {}
    for option in given:
        name, equals, text = option.partition("=")
        if not equals or name not in sources:
            if len(sources) > 1:
                raise BesideError(
                    f"--load {option}: the flow has several sources; write {sources[0]}=... for one of"
                    f" {', '.join(sources)}"
                )
            name, text = sources[0], option
        found[name] = _load(text, f"--load {option}")
    return found


def _load(text: str, option: str) -> Schedule:
    """Items a second, steps of `TIME:RATE`, or a CSV file with options."""
    first, *more = text.split(",")
    try:
        if first.removesuffix(".gz").endswith(".csv"):
            own = _options(more, _TraceOptions)
            return trace(Path(first), own.column, own.time_column, own.speed_up, own.scale)
        if ":" in first:
            parts = [part.partition(":") for part in text.split(",")]
            return steps([(time, float(rate)) for time, _, rate in parts])
        return constant(float(text))
    except OSError as error:
        raise BesideError(f"{option}: {first} cannot be read: {error.strerror}") from None
    except (ScheduleError, DurationError, ValueError) as error:
        raise BesideError(f"{option}: {error}") from None


def _options(given: Sequence[str], kind: type[S]) -> S:
    pairs = [part.partition("=") for part in given]
    try:
        return msgspec.convert({name: value for name, _, value in pairs}, kind, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind))
        raise ValueError(f"{error}; after a comma there may be {known}") from None


def _named(option: str, called: str, example: str) -> tuple[str, str]:
    name, equals, text = option.partition("=")
    if not equals or not name or not text:
        raise BesideError(f"{called} {option}: write it like {called} {example}")
    return name, text
