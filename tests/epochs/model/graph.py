"""Flows of the model: tasks with pools, streams between them, the items, and what an oracle makes of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

GROUPS = 4
KEYS = 6

Kind = Literal["source", "map", "keyed", "transactional", "plain"]
Wiring = Literal["round_robin", "key", "forward", "broadcast"]
ItemId = tuple[str | int, ...]
Splits = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Task:
    """`plain` is a sink without transactions."""

    name: str
    kind: Kind
    pool: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A `relayed` one shares its way to a receiver with all others that are; `puts` is how many items its
    sender makes of one for it. All replicas of a sink may be sent all by broadcast, no other task.
    """

    sender: str
    receiver: str
    wiring: Wiring = "round_robin"
    relayed: bool = False
    puts: int = 1


@dataclass(frozen=True, slots=True)
class Item:
    """`id` names source, split, ordinal and its hops; `value` is what state made of it."""

    id: ItemId
    key: int
    time: int
    value: int = 0


@dataclass(frozen=True)
class Graph:
    """Tasks in the order of the flow."""

    tasks: tuple[Task, ...]
    streams: tuple[Stream, ...]
    items: int

    def task(self, name: str) -> Task:
        return next(task for task in self.tasks if task.name == name)

    def inputs(self, name: str) -> list[int]:
        return [number for number, stream in enumerate(self.streams) if stream.receiver == name]

    def outputs(self, name: str) -> list[int]:
        return [number for number, stream in enumerate(self.streams) if stream.sender == name]

    def exact(self, name: str) -> bool:
        """Has state, is a transactional sink, or lies upstream of one."""
        if self.task(name).kind in ("keyed", "transactional"):
            return True
        return any(self.exact(self.streams[number].receiver) for number in self.outputs(name))

    def of_kind(self, kind: Kind) -> list[Task]:
        return [task for task in self.tasks if task.kind == kind]

    def hop(self, number: int, put: int, copy: int = 0) -> int:
        """What an item's way through a stream adds to its id: which of those that were made of one item it
        is, and of a broadcast who gets the copy.
        """
        return number + len(self.streams) * (put + self.streams[number].puts * copy)

    def sender_at(self, hop: int) -> Task:
        """Who has sent what has this hop."""
        return self.task(self.streams[hop % len(self.streams)].sender)

    def hops(self, number: int) -> Iterator[int]:
        """All that a stream makes of an item."""
        stream = self.streams[number]
        copies = self.task(stream.receiver).pool if stream.wiring == "broadcast" else 1
        yield from (self.hop(number, put, copy) for put in range(stream.puts) for copy in range(copies))

    def paths(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        """Every way from a source to a task, by hops."""
        if self.task(name).kind == "source":
            return [(name, ())]
        return [
            (source, (*path, hop))
            for number in self.inputs(name)
            for hop in self.hops(number)
            for source, path in self.paths(self.streams[number].sender)
        ]

    def expected(self, name: str, positions: Splits) -> Iterator[Item]:
        """What reaches a task of the items before some positions."""
        for source, path in self.paths(name):
            for split, position in positions.get(source, {}).items():
                for ordinal in range(position):
                    item = read(source, int(split), ordinal)
                    yield Item((*item.id, *path), item.key, item.time)


def read(source: str, split: int, ordinal: int) -> Item:
    """An item of a source."""
    return Item((source, split, ordinal), (3 * ordinal + split) % KEYS, ordinal)


def group_of(key: object) -> int:
    assert isinstance(key, int)
    return key % GROUPS
