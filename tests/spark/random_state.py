"""Random flows with state for Spark, and what a single process would make of all that they have read.

Items come in no order that is known: what a task keeps and sends does not hang on it, or is compared without.
"""

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import penstock as ps
from penstock import Output, state
from penstock.flow import Parallelism
from tests.spark.items import Item, numbered

KEYS = 40
MOST = 4
RATE = 300.0


def key_of(item: Item) -> int:
    return item.index % KEYS


def number_of(item: Item) -> int:
    """Different for each item."""
    return 10 * item.index + item.partition


def same(item: Any) -> Any:
    return item


class Values:
    by = state.key(int)
    seen = state.value(0)

    def process(self, item: Item, out: Any) -> None:
        self.seen += 1
        out((self.by, self.seen))


class Lists:
    by = state.key(int)
    numbers = state.list_of(int)

    def process(self, item: Item, out: Any) -> None:
        self.numbers.append(number_of(item))
        out((self.by, len(self.numbers)))


class Maps:
    by = state.key(int)
    times = state.map_of(int, int)

    def process(self, item: Item, out: Any) -> None:
        self.times[item.partition] = self.times.get(item.partition, 0) + 1
        out((self.by, sum(self.times.values())))


class Timed:
    """A timer tells how many items have come since it told last: how many at once is up to the clock."""

    by = state.key(int)
    counts = state.map_of(str, int)
    quiet = state.timer()

    def process(self, item: Item, out: Any) -> None:
        self.counts["waiting"] = self.counts.get("waiting", 0) + 1
        self.quiet.set("100 ms")

    @quiet.fires
    def tell(self, out: Any) -> None:
        waiting = self.counts.pop("waiting")
        self.counts["told"] = self.counts.get("told", 0) + waiting
        out((self.by, waiting))


def added(one: Item, other: Item) -> Item:
    return Item(0, one.index + other.index)


def counted(known: int, item: Item) -> tuple[int, tuple[int, int]]:
    return known + 1, (key_of(item), known + 1)


def evenly(value: int, replicas: int) -> list[int]:
    return [value // replicas + (number < value % replicas) for number in range(replicas)]


class Sums:
    """Values of replicas, without keys."""

    merged = state.per_replica(0, merge=operator.add)
    divided = state.per_replica(0, merge=operator.add, divide=evenly)

    def write(self, item: Item) -> None:
        self.merged += 1
        self.divided += 1


class Heard:
    """Every replica gets all, and one that is new knows what the others do."""

    heard = state.per_replica(0, copied=True)

    def write(self, item: Item) -> None:
        self.heard += 1


def up_to(items: Sequence[Item]) -> list[Any]:
    """What is sent of a key by who counts."""
    return [[key_of(items[0]), count] for count in range(1, len(items) + 1)]


class Kind(NamedTuple):
    """A way to keep state of keys.

    `of` makes the task of keyed inputs and options, `kept` and `sent` tell what comes of the items of a key;
    `shown` is what does not hang on their order, of a line in a file.
    """

    of: Callable[..., Output[Any]]
    kept: Callable[[list[Item]], Any]
    sent: Callable[[list[Item]], list[Any]] = up_to
    shown: Callable[[Any], Any] = same
    most_inputs: int = 1

    def check(self, kept: dict[Any, Any], lines: list[Any], items: dict[int, list[Item]]) -> None:
        """What was kept and written, against a single process that has read these items by key."""
        found = {key: comparable(value) for key, value in kept.items()}
        assert found == {key: self.kept(those) for key, those in items.items()}
        sent = [line for those in items.values() for line in self.sent(those)]
        assert sorted(map(self.shown, lines)) == sorted(sent)


class ByTimer(Kind):
    """One whose timers send: each item is waiting, or was told of once."""

    def check(self, kept: dict[Any, Any], lines: list[Any], items: dict[int, list[Item]]) -> None:
        assert {key: sum(counts.values()) for key, counts in kept.items()} == {
            key: len(those) for key, those in items.items()
        }
        told = Counter[int]()
        for key, waiting in lines:
            told[key] += waiting
        assert told == Counter({key: counts["told"] for key, counts in kept.items() if "told" in counts})
        assert told, "no timer has fired"


def declaring(body: type, kept: Callable[[list[Item]], Any]) -> Kind:
    return Kind(lambda keyed, *more, **options: keyed.task(body, *more, **options), kept, most_inputs=2)


KINDS: dict[str, Kind] = {
    "timed": ByTimer(lambda keyed, *more, **options: keyed.task(Timed, *more, **options), len, most_inputs=2),
    "values": declaring(Values, len),
    "lists": declaring(Lists, lambda items: Counter(map(number_of, items))),
    "maps": declaring(Maps, lambda items: Counter(item.partition for item in items)),
    "count": Kind(lambda keyed, **options: keyed.count(**options), len),
    "scan": Kind(lambda keyed, **options: keyed.scan(counted, 0, **options), len),
    "reduce": Kind(
        lambda keyed, **options: keyed.reduce(added, **options),
        lambda items: sum(item.index for item in items),
        lambda items: [key_of(item) for item in items],
        operator.itemgetter(0),
    ),
    "distinct": Kind(
        lambda keyed, **options: keyed.distinct("1 h", **options),
        lambda items: True,
        lambda items: [key_of(items[0])],
        lambda line: key_of(Item(*line)),
    ),
}


def comparable(value: Any) -> Any:
    """What is kept, as `Kind.kept` tells it."""
    if isinstance(value, tuple):
        return value[0].index
    return Counter(value) if isinstance(value, list | dict) else value


@dataclass(frozen=True)
class Graph:
    """What is drawn of a flow for all its starts.

    With `relayed` items pass two tasks before they come to state, and with `both` they come a second time,
    past these. With `forward` what is sent goes one to one through another task to its file.
    """

    partitions: int
    relayed: bool
    both: bool
    forward: bool
    kinds: tuple[str, ...]

    @classmethod
    def drawn(cls, chance: Random) -> "Graph":
        relayed = chance.random() < 0.7
        return cls(
            chance.randint(1, 2),
            relayed,
            relayed and chance.random() < 0.5,
            chance.random() < 0.6,
            tuple(chance.sample([*KINDS], 2)),
        )

    @property
    def elastic(self) -> list[str]:
        """Tasks whose number of replicas can change."""
        return [*(["first"] if self.relayed else []), *self.kinds, "sums", "heard"]

    @property
    def chains(self) -> list[list[str]]:
        """Tasks that can share a process."""
        front = [["first", "second"]] if self.relayed else []
        back = [[kind, f"{kind}-on", f"{kind}-file"] for kind in self.kinds] if self.forward else []
        return front + back

    def flow(self, files: Path, chance: Random) -> ps.Flow:
        """With other replicas each time, in pools that may be too small for what comes."""

        def several() -> Parallelism:
            initial = chance.randint(1, 3)
            return ps.elastic(1, MOST, initial=initial, pool=chance.randint(initial, MOST))

        flow = ps.Flow("drawn")
        source = items = flow.source(numbered(10**6, RATE, self.partitions), name="numbers")
        if self.relayed:
            abreast = several()
            items = source.map(same, name="first", parallelism=abreast).forward()
            items = items.map(same, name="second", parallelism=abreast)
        for name in self.kinds:
            kind, replicas = KINDS[name], several()
            inputs = [items, source][: self.inputs_of(name)]
            sent = kind.of(*(one.by_key(key_of) for one in inputs), name=name, parallelism=replicas)
            if self.forward:
                sent = sent.forward().map(same, name=f"{name}-on", parallelism=replicas).forward()
            sent.sink(ps.jsonl(files / name), name=f"{name}-file", parallelism=replicas)
        items.sink(Sums, name="sums", parallelism=several())
        items.broadcast().sink(Heard, name="heard", parallelism=several())
        return flow

    def inputs_of(self, kind: str) -> int:
        """How often each item comes to it."""
        return KINDS[kind].most_inputs if self.both else 1

    def check(self, job: ps.Job, files: Path, read: Sequence[Item]) -> None:
        """What was committed, against a single process that has read the same."""
        for name in self.kinds:
            kind, by_key = KINDS[name], defaultdict[int, list[Item]](list)
            for item in read:
                by_key[key_of(item)] += [item] * self.inputs_of(name)
            texts = [file.read_text() for file in (files / name).rglob("*.jsonl")]
            lines = [json.loads(line) for text in texts for line in text.splitlines()]
            print(f"{name}: {len(lines)} lines")
            kept = {one.key: one.value for one in job.state(name) if one.name != "quiet"}
            kind.check(kept, lines, by_key)
        sums = Counter[str]()
        for one in job.state("sums"):
            sums[one.name] += one.value
        assert sums == {"merged": len(read), "divided": len(read)}
        assert {one.value for one in job.state("heard")} == {len(read)}
