"""From what a user gave to a `Task`: settings are merged, checked, and defaults noted.

The settings of the call win over those of the decorator, and these over the attributes of a class.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from penstock.durations import Duration
from penstock.flow.bodies import check_function, check_object, check_sink, is_async
from penstock.flow.decorator import attached
from penstock.flow.errors import FlowError
from penstock.flow.graph import DEFAULT_BATCH_SIZE, DEFAULT_OUTPUT, Form, Kind, Task
from penstock.flow.names import check_name, own_name
from penstock.flow.options import (
    TaskOptions,
    check_known,
    checked_chain,
    checked_concurrency,
    checked_latency_kind,
    checked_memory,
    checked_on_error,
    checked_ordered,
    checked_outputs,
    checked_parallelism,
    checked_positive_ms,
    checked_retries,
    checked_size,
    checked_timeout_ms,
    declared_by,
)
from penstock.flow.parallelism import Parallelism, fixed
from penstock.flow.stateful import checked_state, checked_was

DEFAULT_CONCURRENCY: Final = 20
"""How many calls of an async body are open at once if nothing is said."""

# What a task of each form calls itself in messages and in the default names of lambdas.
_WORDS: Final[dict[Form, str]] = {"object": "task", "sink_function": "sink", "sink_object": "sink"}
_FUNCTIONS: Final[tuple[Form, ...]] = ("map", "flat_map", "filter", "map_batches", "flat_map_batches")
_BATCHED: Final[tuple[Form, ...]] = ("map_batches", "flat_map_batches", "sink_batches")


def declare_source(
    flow: str,
    source: Any,
    name: str | None,
    on_error: object = "fail",
    *,
    replicas: object = None,
    catch_up: Duration | None = None,
) -> Task:
    """A source, with one replica for each of its splits unless it is said otherwise."""
    own = getattr(source, "name", None)
    chosen = next(said for said in (name, own, type(source).__name__.lower()) if said is not None)
    check_name(chosen, f'flow "{flow}": source name')
    where = f'source "{chosen}" of flow "{flow}"'
    splits = getattr(source, "splits", None)
    if isinstance(splits, str) or not isinstance(splits, Sequence) or not all(map(_is_split, splits)):
        raise FlowError(f"{where}: attribute splits must be the names of its parts, not {splits!r}")
    if not splits or len(set(splits)) < len(splits):
        raise FlowError(
            f"{where}: its splits must be one or more, each with a name of its own, not {splits!r}"
        )
    return Task(
        chosen,
        "source",
        "source",
        source,
        fixed(len(splits)) if replicas is None else _replicas(source, replicas, where),
        on_error=checked_on_error(on_error, where),
        defaults=("name",) if name is None else (),
        catch_up_s=(
            None if catch_up is None else checked_positive_ms(catch_up, f"{where}: catch_up") / 1000.0
        ),
    )


def _replicas(source: Any, given: object, where: str) -> Parallelism:
    """Of a source. None is held ready: a replica has splits to read, or it is not there."""
    found = checked_parallelism(given, where, setting="replicas")
    if found.max > len(source.splits) and not callable(getattr(source, "discover", None)):
        raise FlowError(
            f"{where}: {found.max} replicas have only {len(source.splits)} splits to read:"
            f" {', '.join(source.splits)}; choose fewer replicas"
        )
    return replace(found, pool=found.initial)


def _is_split(name: Any) -> bool:
    return isinstance(name, str) and name != ""


def declare_task(
    flow: str, form: Form, body: object, options: TaskOptions, *, taken: Collection[str]
) -> Task:
    """A task or a sink. `taken` are the names already in the flow."""
    word = _WORDS.get(form, form)
    check_known(options, f'flow "{flow}": {word}')
    functional = form in _FUNCTIONS
    told: dict[str, Any] = {} if functional else declared_by(body)
    for settings in (attached(body), options):
        told.update((setting, value) for setting, value in settings.items() if value is not None)
    kind: Kind = "sink" if word == "sink" else "task"
    name = _name(flow, word, body, told.get("name"), taken)
    where = f'{kind} "{name}" of flow "{flow}"'
    if kind == "sink":
        form = check_sink(body, where)
        _refuse_beyond_a_sink(told, where)
    elif functional:
        check_function(body, form, where)
        _refuse_beyond_a_function(told, where)
    else:
        check_object(body, timed="every" in told, where=where)
    settable = ("name", "parallelism", "on_error", *(() if kind == "sink" else ("latency_kind",)))
    settable += ("outputs",) if form == "object" else ()
    batched = form in _BATCHED
    settable += ("size",) if batched else ()
    if not batched and "size" in told:
        raise FlowError(
            f"{where}: size is for map_batches, flat_map_batches and sinks with write_many(items); remove it"
        )
    awaited = is_async(body, form)
    if awaited:
        settable += ("concurrency", "ordered")
    else:
        _refuse_of_a_plain_body(told, where)
    state = () if functional else checked_state(body, form, where, awaited=awaited)
    chain = checked_chain(told.get("chain", True), where)
    outputs = () if kind == "sink" else checked_outputs(told.get("outputs", (DEFAULT_OUTPUT,)), where)
    return Task(
        name=name,
        kind=kind,
        form=form,
        body=body,
        parallelism=checked_parallelism(told.get("parallelism", 1), where),
        on_error=checked_on_error(told.get("on_error", "fail"), where),
        latency_kind=checked_latency_kind(told.get("latency_kind", "read_ready"), where),
        every_ms=checked_positive_ms(told["every"], f"{where}: every") if "every" in told else None,
        outputs=outputs,
        memory_bytes=checked_memory(told["memory"], where) if "memory" in told else None,
        timeout_ms=checked_timeout_ms(told["timeout"], where) if "timeout" in told else None,
        chain=chain and not any(spec.kind == "per replica" for spec in state),
        batch_size=checked_size(told.get("size", DEFAULT_BATCH_SIZE), where) if batched else None,
        concurrency=checked_concurrency(told.get("concurrency", DEFAULT_CONCURRENCY), where)
        if awaited
        else None,
        ordered=checked_ordered(told.get("ordered", True), where),
        retries=checked_retries(told.get("retries", 0), where),
        defaults=tuple(setting for setting in settable if setting not in told),
        state=state,
        was=checked_was(told.get("was"), state, where),
    )


def _name(flow: str, word: str, body: object, given: str | None, taken: Collection[str]) -> str:
    if given is not None:
        return check_name(given, f'flow "{flow}": {word} name')
    own = own_name(body)
    if own is None:
        return next(name for n in range(1, len(taken) + 2) if (name := f"{word}_{n}") not in taken)
    try:
        return check_name(own, f'flow "{flow}": {word} name')
    except FlowError as error:
        raise FlowError(f"{error}; or give it one with name=") from error


def _refuse_of_a_plain_body(told: dict[str, Any], where: str) -> None:
    for setting in ("concurrency", "ordered"):
        if setting in told:
            raise FlowError(
                f"{where}: {setting} is for calls that are awaited; make the body async, or remove it"
            )


def _refuse_beyond_a_sink(told: dict[str, Any], where: str) -> None:
    if told.get("outputs"):
        raise FlowError(f"{where}: a sink has no outputs; use .task(...) and give each output its own sink")
    if told.get("latency_kind", "read_ready") != "read_ready":
        raise FlowError(f"{where}: a sink writes no items, so its latency_kind is read_ready; remove it")
    if "every" in told:
        raise FlowError(f"{where}: a sink has no timer; use .task(...) before it, or remove every")


def _refuse_beyond_a_function(told: dict[str, Any], where: str) -> None:
    if "every" in told:
        raise FlowError(f"{where}: a function has no timer; use a class with timer(out), or remove every")
    if "outputs" in told:
        raise FlowError(f"{where}: a function has one output; use a class with process(item, out) for more")
