"""A flow in the process of a test: the items, times, hooks and errors of Spark, without Spark."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.testing import at, run
from penstock.wire.ids import origin_of, stream_code


class Numbers:
    """A source that can only be given."""

    def __init__(self, *splits: str) -> None:
        self.splits = splits or ("all",)


def double(item: int) -> int:
    return 2 * item


def identity(item: Any) -> Any:
    return item


def drop(item: Any) -> None:
    pass


def sevens_fail(item: int) -> int:
    if item % 7 == 0:
        raise ValueError(f"no {item}")
    return item


def numbers(flow: penstock.Flow, *splits: str) -> Any:
    source: Any = Numbers(*splits)
    return flow.source(source, name="numbers")


class Totals:
    """Counts keys; sends its counts every 200 ms if there are any, and what is left at the end."""

    every = "200 ms"

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}

    def process(self, item: Any, out: Any) -> None:
        self.counts[item] = self.counts.get(item, 0) + 1

    def timer(self, out: Any) -> None:
        if self.counts:
            out(dict(self.counts))
            self.counts.clear()

    def close(self, out: Any) -> None:
        self.timer(out)


def test_a_paced_source_runs_by_the_virtual_clock() -> None:
    def reading(partition: int, index: int, seed: int) -> int:
        return index

    flow = penstock.Flow("hours")
    flow.source(penstock.paced(reading, rate=1, seconds="2 h"), name="readings").sink(drop)
    result = run(flow)
    assert result["drop"] == list(range(7200))
    assert [arrival.at_s for arrival in result.arrivals["drop"]] == list(range(7200))
    assert result.seconds == 7199


def test_a_replayed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    flow = penstock.Flow("words")
    flow.source(penstock.replay(tmp_path / "words.txt"), name="words").map(str.upper).sink(drop)
    assert run(flow)["drop"] == ["A", "B", "C"]


def test_every_map_flat_map_and_filter() -> None:
    flow = penstock.Flow("steps")
    source = numbers(flow)
    source.map(double).sink(drop, name="doubled")
    source.flat_map(range).sink(drop, name="spread")
    source.filter(lambda item: item > 1, name="large").sink(drop, name="kept")
    result = run(flow, {"numbers": [1, 2, 3]})
    assert result["doubled"] == [2, 4, 6]
    assert result["spread"] == [0, 0, 1, 0, 1, 2]
    assert result["kept"] == [2, 3]


def test_wirings() -> None:
    flow = penstock.Flow("wirings")
    source = numbers(flow)
    source.sink(drop, name="in_turn", parallelism=2)
    source.by_key(lambda item: item % 5).sink(drop, name="keyed", parallelism=3)
    source.broadcast().sink(drop, name="all", parallelism=2)
    spread = source.map(identity, name="spread", parallelism=2)
    spread.forward().sink(drop, name="twins", parallelism=2)
    result = run(flow, {"numbers": range(20)})
    assert result.by_replica("in_turn") == {0: list(range(0, 20, 2)), 1: list(range(1, 20, 2))}
    assert result.by_replica("all") == {0: list(range(20)), 1: list(range(20))}
    assert result.by_replica("twins") == result.by_replica("in_turn")
    keyed = result.by_replica("keyed")
    assert sorted(result["keyed"]) == list(range(20))
    assert len(keyed) > 1
    for key in range(5):
        assert sum(key in {item % 5 for item in items} for items in keyed.values()) == 1


def test_an_elastic_task_has_its_initial_replicas() -> None:
    flow = penstock.Flow("elastic")
    numbers(flow).sink(drop, parallelism=penstock.elastic(1, 8, initial=3))
    assert set(run(flow, {"numbers": range(9)}).by_replica("drop")) == {0, 1, 2}


def test_splits_take_turns_or_are_given_by_name() -> None:
    flow = penstock.Flow("splits")
    numbers(flow, "left", "right").forward().sink(drop, parallelism=2)
    assert run(flow, {"numbers": [1, 2, 3]}).by_replica("drop") == {0: [1, 3], 1: [2]}
    assert run(flow, {"numbers": {"right": [1, 2]}}).by_replica("drop") == {1: [1, 2]}


class IdsOf:
    """Sends the id of each item, the stream by which it came, and the batch."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Any, out: Any) -> None:
        out((item, self.context.item_id, self.context.input, self.context.batch))


def test_ids_are_those_of_spark() -> None:
    flow = penstock.Flow("ids", ids=True)
    numbers(flow).flat_map(range, name="spread").broadcast().task(IdsOf, name="ids_of").sink(drop)
    origin = origin_of("numbers", "all")
    first, second = stream_code("numbers->spread"), stream_code("spread->ids_of")
    assert run(flow, {"numbers": [1, 2]})["drop"] == [
        (0, (origin, 0, first, second, 0), "spread->ids_of", 0),
        (0, (origin, 1, first, second, 0), "spread->ids_of", 0),
        (1, (origin, 1, first, second + 1, 0), "spread->ids_of", 0),
    ]


class Parity:
    outputs = ("even", "odd")

    def process(self, item: int, out: Any) -> None:
        out(item, "odd" if item % 2 else "even")


def test_named_outputs() -> None:
    flow = penstock.Flow("outputs")
    parity = numbers(flow).task(Parity, name="parity")
    parity.sink(drop, name="evens")
    parity["odd"].sink(drop, name="odds")
    result = run(flow, {"numbers": range(5)})
    assert (result["evens"], result["odds"]) == ([0, 2, 4], [1, 3])


def test_timers_run_by_the_virtual_clock_and_what_is_left_comes_at_the_end() -> None:
    flow = penstock.Flow("timers")
    numbers(flow).task(Totals, name="totals").sink(drop)
    items = ["a", "a", *at("150 ms", "b"), *at("200 ms", "c"), *at("500 ms", "a"), *at("700 ms", "d")]
    result = run(flow, {"numbers": items})
    assert [(arrival.at_s, arrival.item) for arrival in result.arrivals["drop"]] == [
        (0.2, {"a": 2, "b": 1, "c": 1}),  # an item that comes with a timer comes before it
        (pytest.approx(0.6), {"a": 1}),
        (pytest.approx(0.7), {"d": 1}),
    ]
    assert result.seconds == pytest.approx(0.7)


def test_until_lets_time_pass_or_ends_the_sources() -> None:
    flow = penstock.Flow("until")
    numbers(flow).task(Totals, name="totals").sink(drop)
    late = run(flow, {"numbers": ["a"]}, until="1 s")
    assert [(arrival.at_s, arrival.item) for arrival in late.arrivals["drop"]] == [(0.2, {"a": 1})]
    assert late.seconds == 1
    early = run(flow, {"numbers": ["a", *at("2 s", "b")]}, until="1 s")
    assert early["drop"] == [{"a": 1}]


def test_a_batch_lifetime_passes_by_the_virtual_clock() -> None:
    flow = penstock.Flow("lifetimes")
    source = numbers(flow)
    source.batched("20 ms").sink(drop, name="batched")
    source.sink(drop, name="at_once")
    result = run(flow, {"numbers": [1, *at("5 ms", 2), *at("30 ms", 3), *at("1 s", 4)]})
    assert [(a.item, a.at_s) for a in result.arrivals["at_once"]] == [(1, 0), (2, 0.005), (3, 0.03), (4, 1.0)]
    assert [(a.item, a.at_s) for a in result.arrivals["batched"]] == [
        (1, 0.02), (2, 0.02), (3, 0.05), (4, 1.0),
    ]  # fmt: skip


class Hooks:
    """Sends what it was called with."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def open(self, context: Any) -> None:
        self.context = context
        self.called.append(f"open {context.task} {context.replica}")

    def process(self, item: Any, out: Any) -> None:
        self.called.append(f"process {item} in {self.context.batch}")

    def flush(self) -> None:
        self.called.append(f"flush {self.context.batch}")

    def close(self, out: Any) -> None:
        out(self.called)


def test_hooks_are_called_and_commits_cut_batches() -> None:
    flow = penstock.Flow("hooks")
    numbers(flow).task(Hooks, name="hooks").sink(drop)
    (called,) = run(flow, {"numbers": [1, *at("3 s", 2)]}, commit="2 s")["drop"]
    assert called == ["open hooks 0", "process 1 in 0", "flush 0", "process 2 in 1", "flush 1"]
    (called,) = run(flow, {"numbers": [1, *at("3 s", 2)]})["drop"]
    assert called == ["open hooks 0", "process 1 in 0", "process 2 in 0", "flush 0"]


def test_what_waits_is_sent_before_a_commit_and_timers_begin_anew() -> None:
    flow = penstock.Flow("commits")
    numbers(flow).batched("10 s").task(Totals, name="totals").sink(drop)
    result = run(flow, {"numbers": ["a", *at("0.5 s", "b")]}, commit="300 ms", until="1 s")
    assert [(round(a.at_s, 3), a.item) for a in result.arrivals["drop"]] == [
        (0.5, {"a": 1}),  # shipped by the commit at 300 ms, and counted for 200 ms from then on
        (0.8, {"b": 1}),
    ]


def test_replicas_have_bodies_of_their_own() -> None:
    mine = Totals()
    flow = penstock.Flow("copies")
    numbers(flow).task(mine, name="totals", parallelism=2).sink(drop)
    assert run(flow, {"numbers": ["a", "a", "a"]})["drop"] == [{"a": 2}, {"a": 1}]
    assert run(flow, {"numbers": ["a"]})["drop"] == [{"a": 1}]
    assert mine.counts == {}


def faulty(on_error: Any) -> penstock.Flow:
    flow = penstock.Flow("faulty")
    numbers(flow).map(sevens_fail, on_error=on_error, parallelism=2).sink(drop)
    return flow


def test_fail_raises_the_words_of_spark_with_the_error_as_cause() -> None:
    with pytest.raises(penstock.JobFailed) as caught:
        run(faulty("fail"), {"numbers": [1, 2, 3, 7]})
    words = str(caught.value)
    assert words.startswith('flow "faulty", task "sevens_fail", replica 1: ValueError: no 7\nitem: 7\n')
    assert "Traceback" in words
    assert isinstance(caught.value.__cause__, ValueError)


def test_skip_counts() -> None:
    result = run(faulty("skip"), {"numbers": range(15)})
    assert result.skipped == {"sevens_fail": 3}
    assert result["drop"] == [item for item in range(15) if item % 7]


def test_dead_letters_hold_the_items() -> None:
    result = run(faulty("dead_letter"), {"numbers": range(8)})
    assert [(letter.replica, letter.load(), letter.error) for letter in result.dead_letters] == [
        (0, 0, "ValueError: no 0"),
        (1, 7, "ValueError: no 7"),
    ]
    assert result.dead_letters[0].input == "numbers->sevens_fail"
    assert result["drop"] == [1, 2, 3, 4, 5, 6]


def locked(item: int) -> Any:
    return threading.Lock() if item == 1 else item


@pytest.mark.parametrize("lifetime", ["0 ms", "10 ms"])
def test_a_result_that_cannot_travel_is_an_error_of_its_task(lifetime: str) -> None:
    flow = penstock.Flow("travel")
    numbers(flow).map(locked, on_error="dead_letter").batched(lifetime).sink(drop)
    result = run(flow, {"numbers": [0, 1, 2]})
    assert result["drop"] == [0, 2]
    (letter,) = result.dead_letters
    assert "pickle" in letter.error
    with pytest.raises(penstock.FlowError, match='of task "locked" holds no item that could come again'):
        letter.load()


def broken_copy() -> None:
    raise OSError("no such device")


class OneWay:
    def __reduce__(self) -> Any:
        return broken_copy, ()


def one_way(item: int) -> OneWay:
    return OneWay()


def test_a_result_that_cannot_be_unpickled_stops_the_flow() -> None:
    flow = penstock.Flow("one_way")
    numbers(flow).map(one_way).sink(drop)
    with pytest.raises(penstock.JobFailed, match='flow "one_way": an envelope: items cannot be read: no'):
        run(flow, {"numbers": [1]})


class Unopenable(Totals):
    def open(self, context: Any) -> None:
        raise RuntimeError("no database")


def test_an_error_in_a_hook_names_it() -> None:
    flow = penstock.Flow("closed")
    numbers(flow).task(Unopenable, name="totals").sink(drop)
    with pytest.raises(penstock.JobFailed, match=r'task "totals", replica 0: open\(\) raised RuntimeError'):
        run(flow, {"numbers": []})


def test_an_error_in_a_source_names_it() -> None:
    def broken(partition: int, index: int, seed: int) -> int:
        raise KeyError("nothing to make")

    flow = penstock.Flow("dry")
    flow.source(penstock.paced(broken, rate=10, count=5), name="readings").sink(drop)
    with pytest.raises(penstock.JobFailed, match='task "readings", replica 0: reading the source raised'):
        run(flow)


class Swallows:
    """Catches whatever its own calls raise, also what a task behind it in its process raised."""

    def process(self, item: int, out: Any) -> None:
        try:
            out(item)
        except BaseException:  # noqa: BLE001 - what must not be held up
            out(0)


def test_chained_tasks_give_the_same_and_fail_as_themselves() -> None:
    flow = penstock.Flow("chained", ids=True)
    doubled = numbers(flow).map(double, parallelism=2)
    doubled.forward().task(IdsOf, name="ids_of").forward().sink(drop)
    apart = run(flow, {"numbers": range(6)})
    joined = run(flow, {"numbers": range(6)}, chains=[["double", "ids_of", "drop"]])
    assert joined.by_replica("drop") == apart.by_replica("drop")
    with pytest.raises(penstock.FlowError, match="numbers -> double is no chain"):
        run(flow, {"numbers": []}, chains=[["numbers", "double"]])
    flow = penstock.Flow("held_up")
    numbers(flow).task(Swallows, name="swallows").forward().map(sevens_fail).sink(drop)
    with pytest.raises(penstock.JobFailed, match='task "sevens_fail", replica 0: ValueError: no 7'):
        run(flow, {"numbers": [7]}, chains=[["swallows", "sevens_fail"]])


def unwritable(item: int) -> None:
    if item == 2:
        raise OSError("disk full")


def test_sinks_collect_and_write_only_if_asked_to(tmp_path: Path) -> None:
    flow = penstock.Flow("written")
    source = numbers(flow)
    source.sink(penstock.jsonl(tmp_path / "out"), name="out")
    source.sink(unwritable, on_error="skip")
    result = run(flow, {"numbers": [1, 2, 3]})
    assert result["out"] == result["unwritable"] == [1, 2, 3]
    assert list(tmp_path.iterdir()) == []
    result = run(flow, {"numbers": [1, 2, 3]}, write=True)
    assert (result["out"], result["unwritable"]) == ([1, 2, 3], [1, 3])
    assert (tmp_path / "out" / "part-00000.jsonl").read_text() == "1\n2\n3\n"


def test_a_run_is_the_same_whenever_it_is_repeated() -> None:
    flow = penstock.Flow("again")
    source = numbers(flow, "a", "b", "c")
    spread = source.batched("3 ms").map(identity, name="spread", parallelism=3)
    other = source.by_key(identity).map(double, parallelism=2)
    spread.by_key(identity).task(Totals, other.batched("7 ms"), name="totals", parallelism=2).sink(drop)
    items = [entry for n in range(50) for entry in at(n * 0.01, n % 9, n % 4)]
    first, second = run(flow, {"numbers": items}), run(flow, {"numbers": items})
    assert first.arrivals == second.arrivals
    assert len(first["drop"]) > 2


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"letters": []}, 'inputs: flow "wrong" has no source "letters"; its sources are numbers'),
        ({}, 'source "numbers" of flow "wrong" cannot be read; give its items, as in inputs={"numbers"'),
        ({"numbers": "abc"}, "give a list of items, not 'abc'"),
        ({"numbers": 3}, "give a list of items, not 3"),
        ({"numbers": {"left": []}}, "there is no split 'left'; its splits are 'all'"),
        ({"numbers": [*at(2, "a"), *at(1, "b")]}, "'b' comes before the item that stands before it"),
    ],
)  # fmt: skip
def test_wrong_inputs_are_told(inputs: Any, words: str) -> None:
    flow = penstock.Flow("wrong")
    numbers(flow).sink(drop)
    with pytest.raises(penstock.FlowError) as caught:
        run(flow, inputs)
    assert words in str(caught.value)


def test_an_endless_source_needs_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")

    def index(partition: int, index: int, seed: int) -> int:
        return index

    sources: list[Any] = [penstock.paced(index, rate=10), penstock.replay(tmp_path / "a", loop=True)]
    for source in sources:
        flow = penstock.Flow("endless")
        flow.source(source, name="numbers").sink(drop)
        with pytest.raises(penstock.FlowError, match='"numbers" of flow "endless" never ends'):
            run(flow)
    flow = penstock.Flow("ended")
    flow.source(penstock.paced(index, rate=10), name="numbers").sink(drop)
    assert run(flow, until="450 ms")["drop"] == [0, 1, 2, 3, 4]


def test_one_replica_reads_several_splits() -> None:
    def item(partition: int, index: int, seed: int) -> tuple[int, int]:
        return partition, index

    flow = penstock.Flow("shared", ids=True)
    source = penstock.paced(item, rate=10, count=6, partitions=3)
    flow.source(source, name="numbers", replicas=2).sink(drop)
    arrived = run(flow, commit="150 ms").arrivals["drop"]
    assert [(one.item, round(one.at_s, 6)) for one in arrived] == [
        ((number % 3, number // 3), number / 10) for number in range(6)
    ], "each when it is due, though one of its replicas waits for two splits"
    given: Any = Numbers("a", "b", "c")
    flow = penstock.Flow("given")
    flow.source(given, name="numbers", replicas=1).sink(drop)
    assert run(flow, {"numbers": {"a": [1], "b": [2, 3], "c": at("1 s", 4)}})["drop"] == [1, 2, 3, 4]


def test_a_sink_that_is_not_there_is_told() -> None:
    flow = penstock.Flow("sinks")
    numbers(flow).sink(drop)
    result = run(flow, {"numbers": []})
    with pytest.raises(LookupError, match='no sink "out"; its sinks are drop'):
        result["out"]


def test_what_cannot_be_sent_to_workers_is_refused_here_too() -> None:
    lock = threading.Lock()
    flow = penstock.Flow("stuck")
    numbers(flow).filter(lambda item: lock.acquire(), name="locks").sink(drop)
    with pytest.raises(penstock.FlowError, match='task "locks" of flow "stuck" cannot be sent to workers'):
        run(flow, {"numbers": []})


def test_no_spark_is_imported() -> None:
    code = """
import sys, penstock, penstock.testing
flow = penstock.Flow("small")
flow.source(penstock.paced(lambda partition, index, seed: index, rate=9, count=3)).sink(print)
assert penstock.testing.run(flow)["print"] == [0, 1, 2]
print([name for name in ("pyspark", "py4j", "numpy") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
