"""The properties of the protocol, in the model, under any interleaving. docs/epochs.md has the list.

The same few runs each time. `make epochs` tries others, and more: PENSTOCK_EXAMPLES of each property.
"""

import os
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.epochs.model.graph import Graph, Stream, Task, Wiring
from tests.epochs.model.rules import Rules
from tests.epochs.model.scenarios import (
    diamond,
    direct,
    forward_unit,
    keyed_unit,
    plain,
    spread,
    through_map,
)
from tests.epochs.model.world import Setting, World

EXAMPLES = settings(
    max_examples=int(os.environ.get("PENSTOCK_EXAMPLES", "8")),
    derandomize="PENSTOCK_EXAMPLES" not in os.environ,
)
EVERYTHING = (
    "kill",
    "crash",
    "wake",
    "late",
    "void",
    "lose",
    "activate",
    "retire",
    "compact",
    "rescale",
    "boundary",
    "chain",
)

seeds = st.integers(0, 10**6)
limits = st.sampled_from([0, 1, 2, 5, 100])
rooms = st.integers(1, 4)
to_sinks: st.SearchStrategy[Wiring] = st.sampled_from(["round_robin", "broadcast"])
slow = st.sampled_from(["nothing", "k", "r", "k works", "r works", "load", "commit", "driver"])


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Sources, tasks without and with state in any order, sinks at what is left over."""
    pool = st.integers(1, 3)
    tasks = [Task("s", "source", draw(pool)), Task("u", "source", draw(st.integers(1, 2)))]
    streams: list[Stream] = []
    for name in ["r", "k", "m", "j"][: draw(st.integers(1, 4))]:
        keyed = name in "kj"
        senders = draw(st.lists(st.sampled_from(tasks), min_size=1, max_size=2, unique=True))
        forward = not keyed and senders[0].kind == "map" and draw(st.booleans())
        task = Task(name, "keyed" if keyed else "map", senders[0].pool if forward else draw(pool))
        if forward:
            streams.append(Stream(senders[0].name, name, "forward"))
        else:
            relayed = st.booleans()
            streams += [
                Stream(s.name, name, "key" if keyed else "round_robin", draw(relayed)) for s in senders
            ]
        tasks.append(task)
    for number, sender in enumerate([t for t in tasks if all(s.sender != t.name for s in streams)]):
        sink = Task(f"t{number}", draw(st.sampled_from(["transactional", "plain"])), draw(st.integers(1, 2)))
        tasks.append(sink)
        wiring = draw(to_sinks)
        streams.append(Stream(sender.name, sink.name, wiring, puts=draw(st.integers(1, 2))))
    return Graph(tuple(tasks), tuple(streams), draw(st.integers(0, 6)))


def run(setting: Setting, seed: int, steps: int = 150) -> World:
    """Every entry on the way, and the end, are checked (model/check.py)."""
    world = World(setting, Rules())
    world.run(Random(seed), steps)
    return world


@EXAMPLES
@given(graphs(), seeds, rooms, slow)
def test_1_every_entry_is_a_cut(graph: Graph, seed: int, room: int, slow: str) -> None:
    assert run(Setting(graph, room, slow=slow), seed).commits >= 1


@EXAMPLES
@given(seeds, slow, st.sampled_from([through_map(), diamond(), forward_unit(), plain()]))
def test_2_senders_change_their_receivers_at_any_step(seed: int, slow: str, graph: Graph) -> None:
    run(Setting(graph, faults=("activate", "retire"), fault_rate=0.3, slow=slow), seed)


@EXAMPLES
@given(graphs(), seeds, st.floats(0.01, 0.1), slow)
def test_3_any_process_is_killed_at_any_frame(graph: Graph, seed: int, rate: float, slow: str) -> None:
    run(Setting(graph, faults=("kill", "kill", "crash"), fault_rate=rate, slow=slow), seed)


@EXAMPLES
@given(graphs(), seeds, limits, rooms, slow)
def test_4_every_schedule_ends(graph: Graph, seed: int, limit: int, room: int, slow: str) -> None:
    """With a store of any size; four voids in a row are a violation, too."""
    run(Setting(graph, room, limit, slow=slow, faults=("activate",)), seed)


@EXAMPLES
@given(graphs(), seeds, limits, slow)
def test_5_epochs_are_void_and_reports_come_late_or_twice(
    graph: Graph, seed: int, limit: int, slow: str
) -> None:
    run(Setting(graph, 2, limit, ("void", "late", "lose", "compact"), 0.1, slow), seed)


@EXAMPLES
@given(seeds, limits, slow, st.sampled_from([direct(6, 3), diamond(), forward_unit()]), st.booleans())
def test_6_groups_move_at_any_step(seed: int, limit: int, slow: str, graph: Graph, also: bool) -> None:
    faults = ("rescale", "rescale", "void", "lose", "kill", "boundary") if also else ("rescale",)
    run(Setting(graph, 2, limit, faults, 0.1, slow), seed)


def test_6_a_source_that_missed_a_table_flags_what_went_away_and_came_back() -> None:
    """A schedule that once broke: by the source's own two tables nothing had moved."""
    faults = ("rescale", "rescale", "void", "lose", "kill", "boundary")
    run(Setting(diamond(), 2, 0, faults, 0.1), 8673)


@EXAMPLES
@given(seeds, limits, st.sampled_from(["load", "k works"]), st.sampled_from([direct(16), keyed_unit(12)]))
def test_6_state_is_long_on_its_way(seed: int, limit: int, slow: str, graph: Graph) -> None:
    """Committed moves whose state arrives epochs later."""
    run(Setting(graph, 2, limit, ("rescale", "rescale", "lose"), 0.1, slow), seed)


@EXAMPLES
@given(seeds, limits, slow, st.sampled_from([direct(12, 3), diamond(), forward_unit()]), st.booleans())
def test_6_the_entry_of_an_epoch_hands_state_over(
    seed: int, limit: int, slow: str, graph: Graph, also: bool
) -> None:
    """As the runtime does it: one move at a time, in an epoch that is never void."""
    faults = ("rescale", "void", "lose", "kill", "boundary", "crash", "compact") if also else ("rescale",)
    run(Setting(graph, 2, limit, ("rescale", *faults), 0.1, slow, by_entry=True), seed)


@EXAMPLES
@given(graphs(), seeds, slow)
def test_7_two_drivers(graph: Graph, seed: int, slow: str) -> None:
    """test_log.py has every file operation of it."""
    run(Setting(graph, faults=("crash", "wake", "late", "compact"), fault_rate=0.06, slow=slow), seed)


@EXAMPLES
@given(graphs(), seeds, slow, st.integers(0, 150))
def test_8_a_flow_ends_at_any_moment(graph: Graph, seed: int, slow: str, steps: int) -> None:
    """Boundaries, orders that are overtaken by an end; what was committed last is seen."""
    run(Setting(graph, faults=("boundary", "lose", "crash"), fault_rate=0.05, slow=slow), seed, steps)


@EXAMPLES
@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_9_ids_and_output_do_not_depend_on_replicas(seed: int, one: int, other: int) -> None:
    def published(replicas: int) -> set[tuple[str | int, ...]]:
        world = run(Setting(direct(6, replicas), faults=("kill", "crash", "rescale"), fault_rate=0.03), seed)
        return {item.id for items in world.outside.published.values() for item in items}

    assert published(one) == published(other)


@EXAMPLES
@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_9_ids_do_not_depend_on_the_width_of_a_broadcast(seed: int, one: int, other: int) -> None:
    """A replica gets the same copies however many others do."""

    def published_by_the_first(width: int) -> set[tuple[str | int, ...]]:
        world = run(Setting(spread(width=width), faults=("kill", "crash"), fault_rate=0.03), seed)
        mine = [items for handle, items in world.outside.published.items() if handle.replica == 0]
        return {item.id for items in mine for item in items}

    assert published_by_the_first(one) == published_by_the_first(other)


@EXAMPLES
@given(seeds, limits, slow, st.sampled_from([keyed_unit(), forward_unit()]), st.booleans())
def test_10_tasks_share_a_process_at_any_step(
    seed: int, limit: int, slow: str, graph: Graph, also: bool
) -> None:
    """test_state.py has what becomes of the state of one process."""
    faults = ("chain", "chain", "rescale", "kill", "void", "boundary") if also else ("chain",)
    run(Setting(graph, 2, limit, faults, 0.15, slow), seed)


@EXAMPLES
@given(graphs(), seeds, limits, rooms, slow)
def test_all_at_once(graph: Graph, seed: int, limit: int, room: int, slow: str) -> None:
    run(Setting(graph, room, limit, EVERYTHING, 0.05, slow), seed)
