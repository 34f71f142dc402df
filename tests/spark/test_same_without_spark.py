"""Random flows give the same items, ids and errors on Spark and in the process of a test."""

import tempfile
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import penstock as ps
from penstock.flow import Output
from penstock.flow.graph import OnError
from penstock.io.letters import letters_path, whole_lines
from penstock.io.protocol import SinkContext
from penstock.testing import Collector, run

pytestmark = pytest.mark.spark
ITEMS = 12
GOES_ON: tuple[OnError, ...] = ("skip", "dead_letter")


def number(partition: int, index: int, seed: int) -> int:
    return 100 * seed + 10 * index + partition


def plus_one(item: int) -> int:
    return item + 1


def some_fail(item: int) -> int:
    if item % 5 == 0:
        raise ValueError(f"no {item}")
    return item


def some_fail_together(items: list[int]) -> list[int]:
    return [some_fail(item) for item in items]


def parts_together(items: list[int]) -> list[list[int]]:
    return [parts(item) for item in items]


def parts(item: int) -> list[int]:
    return [item, -item][: item % 3]


def is_odd(item: int) -> bool:
    return item % 2 == 1


def last_digit(item: int) -> int:
    return item % 10


class Split:
    """Two outputs."""

    outputs = ("low", "high")

    def process(self, item: int, out: Any) -> None:
        out(item, "low" if item % 100 < 50 else "high")


class Sums:
    """Keeps sums of its keys until the end; all items of a key come to one replica."""

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}

    def process(self, item: int, out: Any) -> None:
        self._sums[last_digit(item)] = self._sums.get(last_digit(item), 0) + item

    def close(self, out: Any) -> None:
        for found in sorted(self._sums.values()):
            out(found)


@dataclass
class Identified(Collector):
    """Collects items with their ids."""

    def open(self, context: SinkContext) -> None:
        super().open(context)
        self._context = context

    def write(self, item: Any) -> None:
        super().write((self._context.item_id, item))


class Drawn:
    """A random flow, and the collectors that are its sinks."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.flow = ps.Flow("random", ids=draw(st.booleans()))
        self.sinks: dict[str, Identified] = {}
        self._draw = draw
        unread: list[Output[Any]] = []
        for seed in range(draw(st.integers(1, 2))):
            source = ps.paced(number, rate=2000, count=ITEMS, partitions=draw(st.integers(1, 2)), seed=seed)
            unread.append(self.flow.source(source, name=f"source{seed}"))
        for place in range(draw(st.integers(0, 4))):
            read = draw(st.lists(st.sampled_from(unread), min_size=1, max_size=2, unique=True))
            if draw(st.booleans()):  # others may read it, too
                unread = [output for output in unread if output not in read]
            unread += self._task(f"task{place}", read)
        for place, output in enumerate(unread):
            self.sinks[f"sink{place}"] = Identified()
            self._wired(output).sink(
                self.sinks[f"sink{place}"], name=f"sink{place}", parallelism=self._width()
            )

    def _task(self, name: str, read: list[Output[Any]]) -> list[Output[Any]]:
        first, *others = [self._wired(output) for output in read]
        on_error = self._draw(st.sampled_from(GOES_ON))
        kinds = ("map", "fails", "fails_together", "flat_map", "flat_together", "filter", "split", "sums")
        kind = self._draw(st.sampled_from(kinds))
        width = self._width()
        if kind == "sums":
            keyed, *rest = [output.by_key(last_digit) for output in read]
            return [keyed.task(Sums, *rest, name=name, parallelism=width)]
        if kind == "split":
            split = first.task(Split, *others, name=name, parallelism=width)
            return [split, split["high"]]
        if kind == "flat_map":
            return [first.flat_map(parts, *others, name=name, parallelism=width)]
        if kind == "flat_together":
            return [first.flat_map_batches(parts_together, *others, name=name, parallelism=width, size=5)]
        if kind == "fails_together":
            return [
                first.map_batches(
                    some_fail_together, *others, name=name, parallelism=width, on_error=on_error
                )
            ]
        if kind == "filter":
            return [first.filter(is_odd, *others, name=name, parallelism=width)]
        body = some_fail if kind == "fails" else plus_one
        return [first.map(body, *others, name=name, parallelism=width, on_error=on_error)]

    def _width(self) -> int:
        return self._draw(st.integers(1, 2))

    def _wired(self, output: Output[Any]) -> Output[Any]:
        batched = output.batched("5 ms") if self._draw(st.booleans()) else output
        wiring = self._draw(st.sampled_from(("round_robin", "by_key", "broadcast")))
        return batched.by_key(last_digit) if wiring == "by_key" else getattr(batched, wiring)()

    def taken(self) -> dict[str, Counter[Any]]:
        """What the sinks have got, in any order; they forget it."""
        found = {}
        for name, sink in self.sinks.items():
            found[name] = Counter(sink.items())
            sink.clear()
        return found

    def close(self) -> None:
        for sink in self.sinks.values():
            sink.close()


@pytest.mark.timeout(400)
@settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_flows_give_the_same_items(spark: SparkSession, data: st.DataObject) -> None:
    drawn = Drawn(data.draw)  # type: ignore[arg-type]  # both draw
    try:
        here = run(drawn.flow, write=True)
        expected = drawn.taken()
        with tempfile.TemporaryDirectory() as letters:
            job = ps.run(drawn.flow, dead_letters=letters)
            assert job.await_termination(60)
            assert drawn.taken() == expected
            found = job.metrics().tasks
            assert {name: task.skipped for name, task in found.items() if task.skipped} == here.skipped
            written = Counter(
                (letter.task, letter.item, letter.error, letter.id, letter.input)
                for task in drawn.flow.graph().tasks
                for replica in range(task.parallelism.initial)
                if (path := letters_path(letters, task.name, replica)).exists()
                for letter, _ in whole_lines(path, 0)[0].letters()
            )
        assert written == Counter((n.task, n.item, n.error, n.id, n.input) for n in here.dead_letters)
    finally:
        drawn.close()
