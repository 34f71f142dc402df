"""The plan of a flow in words, without starting anything."""

from collections.abc import Iterable
from typing import Final

from penstock.durations import format_ms
from penstock.flow import spark_conf
from penstock.flow.codec import codec_name
from penstock.flow.commits import commits_in_words
from penstock.flow.delivery import delivery_in_words
from penstock.flow.graph import ITEM_ID, Constraint, Graph, Stream, Task
from penstock.flow.layers import Layer, Layout, Unit, lay_out, max_slots
from penstock.flow.names import own_name
from penstock.flow.parallelism import Parallelism
from penstock.flow.reach import out_of_reach
from penstock.flow.stateful import state_in_words
from penstock.sizes import format_size

_FUNCTIONS: Final = ("map", "flat_map", "filter", "map_batches", "flat_map_batches")


def explain(graph: Graph) -> str:
    """Layers, pools, slots, wirings, constraints, commits, state, output, all defaults, Spark's settings."""
    layout = lay_out(graph)
    items = "items with ids" if graph.ids else "items without ids (default)"
    lines = [f'flow "{graph.name}": {items}', "", "layers"]
    for layer in layout.layers:
        lines += _indented(_layer(layout, layer))
    lines += ["", "streams"]
    for stream in graph.streams:
        lines += _indented(_stream(layout, stream))
    lines += ["", "constraints"]
    lines += _indented(_constraints(layout))
    lines += ["", "commits", *_indented(commits_in_words(graph))]
    if kept := state_in_words(graph):
        lines += ["", "state", *_indented(kept)]
    lines += ["", "output", *_indented(delivery_in_words(graph))]
    lines += ["", f"slots needed: {layout.slots} ({max_slots(graph)} if every pool grew to its maximum)"]
    lines += ["", "Spark settings", *_indented(spark_conf.describe())]
    return "\n".join(lines)


def _layer(layout: Layout, layer: Layer) -> list[str]:
    lines = [f"layer {layer.index}: {_counted(layer.partitions, 'partition')}"]
    for unit in layer.units:
        lines += _indented([_unit(unit)])
        for name in unit.tasks:
            lines += _indented(_indented(_task(layout.graph, layout.graph.task(name))))
    if layer.relay is not None:
        passing = [stream.name for stream in layout.graph.streams if _skips(layout, stream, layer.index)]
        lines += _indented([f"partition {layer.relay}: relay for {', '.join(passing)}"])
    return lines


def _unit(unit: Unit) -> str:
    last = unit.first + unit.pool - 1
    span = f"partition {last}" if unit.pool == 1 else f"partitions {unit.first} to {last}"
    return f"{span}: pool of {unit.pool}, {unit.initial} active at the start"


def _task(graph: Graph, task: Task) -> list[str]:
    named = f"{task.name} (default name)" if "name" in task.defaults else task.name
    said = [f"{named}: {task.form if task.form in _FUNCTIONS else task.kind}"]
    said.append(_marked(_parallelism(task.parallelism), "parallelism", task.defaults, "parallelism"))
    splits = len(getattr(task.body, "splits", ())) if task.kind == "source" else 0
    if splits != task.parallelism.initial and splits:
        said.append(_counted(splits, "split"))
    if task.kind != "source" or task.on_error != "fail":
        said.append(_marked(task.on_error, "on_error", task.defaults, "on_error"))
    if task.kind == "task":
        said.append(_marked(task.latency_kind, "latency_kind", task.defaults, "latency_kind"))
    if task.form == "object":
        said.append(_marked(", ".join(task.outputs), "outputs", task.defaults, "outputs"))
    if task.batch_size is not None:
        said.append(_marked(f"batches of at most {task.batch_size} items", "size", task.defaults))
    if task.memory_bytes is not None:
        said.append(f"memory {format_size(task.memory_bytes)}")
    if task.timeout_ms is not None:
        said.append(f"timeout {format_ms(task.timeout_ms)}")
    if task.concurrency is not None:
        said.append(_marked(str(task.concurrency), "concurrency", task.defaults, "async, concurrency"))
        said.append(_marked(str(task.ordered), "ordered", task.defaults, "ordered"))
    if task.retries is not None:
        said.append(f"retries {task.retries}")
    if task.catch_up_s is not None:
        said.append(f"catch_up {format_ms(task.catch_up_s * 1000)}")
    if not task.chain:
        said.append("chain False: always in a process of its own")
    if task.every_ms is not None:
        said.append(f"every {format_ms(task.every_ms)}")
    if task.state:
        said.append(f"state {', '.join(spec.words for spec in task.state)}")
    read = {stream.output for stream in graph.outputs_of(task.name)}
    unread = [f'nothing reads output "{output}": its items are dropped' for output in task.outputs]
    kept = [line for line, output in zip(unread, task.outputs, strict=True) if output not in read]
    return ["; ".join(said), *_indented(kept)]


def _parallelism(parallelism: Parallelism) -> str:
    if not parallelism.elastic:
        return str(parallelism.min)
    initial = _marked(f"initial={parallelism.initial}", "initial", parallelism.defaults)
    pool = _marked(f"pool={parallelism.pool}", "pool", parallelism.defaults)
    return f"elastic({parallelism.min}, {parallelism.max}, {initial}, {pool})"


def _stream(layout: Layout, stream: Stream) -> list[str]:
    said = [
        _marked(_wiring(stream), "wiring", stream.defaults),
        _marked(codec_name(stream.codec), "codec", stream.defaults, "codec"),
        _marked(format_ms(stream.batch_lifetime_ms), "batch_lifetime_ms", stream.defaults, "batch lifetime"),
        _marked(f"{stream.batch_bytes} bytes", "batch_bytes", stream.defaults, "at most"),
    ]
    if layout.is_local(stream):
        said.append("stays in its partition")
    lines = [f"{stream.name}: {'; '.join(said)}"]
    reason = layout.why_apart(stream)
    if reason is not None:
        lines += _indented([f"forward through the shuffle, replica i to replica i, because {reason}"])
    return lines


def _wiring(stream: Stream) -> str:
    if stream.key is None:
        return f"{stream.wiring}, balanced" if stream.balanced else stream.wiring
    return "key: item id" if stream.key is ITEM_ID else f"key: {own_name(stream.key) or 'a lambda'}"


def _constraints(layout: Layout) -> list[str]:
    constraints = layout.graph.constraints
    if not constraints:
        return ["none, so it runs without a policy"]
    lines = ["kept by policy penstock (default)"]
    for constraint in constraints:
        obstacle = out_of_reach(layout, constraint)
        lines += [_constraint(constraint), *_indented([] if obstacle is None else [obstacle])]
    return lines


def _constraint(constraint: Constraint) -> str:
    name = f"{constraint.name} (default name)" if "name" in constraint.defaults else constraint.name
    statistic = _marked(constraint.statistic, "statistic", constraint.defaults)
    window = _marked(format_ms(constraint.window_s * 1000), "window", constraint.defaults)
    bound = format_ms(constraint.latency_ms)
    which = "any" if constraint.share is None else f"{constraint.share:.4g} of all"
    return f"{name}: {statistic} of at most {bound} in {which} {window} over {', '.join(constraint.sequence)}"


def _skips(layout: Layout, stream: Stream, layer: int) -> bool:
    return layout.unit_of(stream.sender).layer < layer < layout.unit_of(stream.receiver).layer


def _marked(value: str, setting: str, defaults: tuple[str, ...], label: str | None = None) -> str:
    shown = value if label is None else f"{label} {value}"
    return f"{shown} (default)" if setting in defaults else shown


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
