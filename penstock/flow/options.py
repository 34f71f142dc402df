"""The settings of a task: what the user may say, and the checks of each value."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, TypeVar, get_args

from penstock.durations import Duration, DurationError, format_ms, milliseconds
from penstock.flow.errors import FlowError
from penstock.flow.graph import LatencyKind, OnError
from penstock.flow.names import check_name
from penstock.flow.parallelism import Parallelism, fixed
from penstock.flow.retries import Retries, retry
from penstock.sizes import Size, SizeError, format_size, size_bytes


class TaskOptions(TypedDict, total=False):
    """Settings of a task; None says the same as leaving a setting out."""

    name: str | None
    parallelism: int | Parallelism | None
    on_error: OnError | None
    memory: Size | None
    timeout: Duration | None
    concurrency: int | None
    ordered: bool | None
    retries: int | Retries | None
    chain: bool | None
    latency_kind: LatencyKind | None
    every: Duration | None
    outputs: Sequence[str] | None
    size: int | None
    was: str | None


KNOWN: Final = tuple(TaskOptions.__annotations__)
CLASS_ATTRIBUTES: Final = ("every", "outputs", "latency_kind")
_ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)
_LEAST_MEMORY_BYTES: Final = 10_000_000  # what a worker itself may come to need
_LEAST_TIMEOUT_MS: Final = 100.0  # any busy machine stands still for some tens of milliseconds
_LATENCY_KINDS: Final[tuple[LatencyKind, ...]] = get_args(LatencyKind)

Choice = TypeVar("Choice", bound=str)


def check_known(options: Mapping[str, object], where: str) -> None:
    """Refuse a setting that does not exist."""
    for option in options:
        if option not in KNOWN:
            raise FlowError(f'{where}: unknown setting "{option}"; the settings are {", ".join(KNOWN)}')


def declared_by(body: object) -> dict[str, Any]:
    """The settings that a class declares as attributes."""
    found = {name: getattr(body, name, None) for name in CLASS_ATTRIBUTES}
    return {name: value for name, value in found.items() if value is not None and not callable(value)}


def checked_parallelism(value: object, where: str, *, setting: str = "parallelism") -> Parallelism:
    """A number of replicas or the result of `elastic`."""
    if isinstance(value, Parallelism):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FlowError(
            f"{where}: {setting} must be a whole number of at least 1 or elastic(...), not {value!r}"
        )
    return fixed(value)


def checked_on_error(value: object, where: str) -> OnError:
    """One of the three ways to go on after an exception."""
    return one_of(value, _ON_ERROR, f"{where}: on_error")


def checked_latency_kind(value: object, where: str) -> LatencyKind:
    """One of the two definitions of task latency."""
    return one_of(value, _LATENCY_KINDS, f"{where}: latency_kind")


def checked_duration_ms(value: Any, what: str) -> float:
    """A duration, in milliseconds."""
    try:
        return milliseconds(value)
    except DurationError as error:
        raise FlowError(f"{what}: {error}") from error


def checked_positive_ms(value: Any, what: str) -> float:
    """A duration above zero, in milliseconds."""
    found_ms = checked_duration_ms(value, what)
    if found_ms == 0:
        raise FlowError(f"{what}: {value!r} is zero; it must be longer")
    return found_ms


def checked_memory(value: object, where: str) -> int:
    """How much memory a replica may use, in bytes."""
    try:
        found = size_bytes(value)
    except SizeError as error:
        raise FlowError(f"{where}: memory: {error}") from error
    if found < _LEAST_MEMORY_BYTES:
        least = format_size(_LEAST_MEMORY_BYTES)
        raise FlowError(f"{where}: memory: {value!r} is less than the {least} that a worker itself may need")
    return found


def checked_timeout_ms(value: Any, where: str) -> float:
    """How long a single item may take, in milliseconds."""
    found_ms = checked_duration_ms(value, f"{where}: timeout")
    if found_ms < _LEAST_TIMEOUT_MS:
        raise FlowError(
            f"{where}: timeout: {value!r} is less than {format_ms(_LEAST_TIMEOUT_MS)}; it is for items that"
            " hang, and a busy machine makes any item wait for some tens of milliseconds"
        )
    return found_ms


def checked_concurrency(value: object, where: str) -> int:
    """How many calls of an async body a replica may have open at once."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FlowError(f"{where}: concurrency must be a whole number of at least 1, not {value!r}")
    return value


def checked_ordered(value: object, where: str) -> bool:
    """Whether results of an async body are sent in the order of their items."""
    if not isinstance(value, bool):
        raise FlowError(
            f"{where}: ordered must be True or False, not {value!r}; False sends results as they come"
        )
    return value


def checked_retries(value: Any, where: str) -> Retries | None:
    """A number of further tries, or the result of `retry`; 0 is none."""
    if isinstance(value, Retries):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FlowError(f"{where}: retries must be a whole number or retry(...), not {value!r}")
    return retry(value) if value else None


def checked_chain(value: object, where: str) -> bool:
    """Whether a task may share a process with its neighbours."""
    if not isinstance(value, bool):
        raise FlowError(
            f"{where}: chain must be True or False, not {value!r}; False keeps it in a process of its own"
        )
    return value


def checked_size(value: object, where: str) -> int:
    """How many items a batch has at most."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FlowError(f"{where}: size must be a whole number of at least 1, not {value!r}")
    return value


def checked_outputs(value: object, where: str) -> tuple[str, ...]:
    """The names of the outputs of a task: at least one, all different."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise FlowError(f'{where}: outputs must be a tuple of names such as ("hits", "late"), not {value!r}')
    names = tuple(check_name(name, f"{where}: output name") for name in value)
    if not names:
        raise FlowError(f"{where}: outputs is empty; a task without outputs is a sink, so use .sink(...)")
    for name in names:
        if names.count(name) > 1:
            raise FlowError(f'{where}: output "{name}" is listed twice; give every output its own name')
    return names


def one_of(value: object, allowed: tuple[Choice, ...], what: str) -> Choice:
    """The choice that `value` is."""
    for choice in allowed:
        if value == choice:
            return choice
    raise FlowError(f"{what} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
