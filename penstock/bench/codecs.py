"""What a codec costs: bytes, and CPU to code and read an item, in envelopes of one item and of many.

Without Spark: one thread codes and reads again and again, and the CPU time of the thread is what counts, so
that whatever else the machine does matters little.
"""

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from penstock.bench.harness import Check, Effort, Result, ratio
from penstock.flow.codec import Codec
from penstock.io.msgspec_codec import msgspec_codec
from penstock.wire.codecs import coder_of

MANY = 100
ROWS = 1000


class Reading(msgspec.Struct):
    """An item as flows have them: a few numbers and short texts."""

    sensor: int
    site: str
    at_ms: int
    value: float
    unit: str
    labels: list[str]


class Row(Reading, array_like=True):
    """The same without the names of its fields."""


class Contestant(NamedTuple):
    """A codec and an item for it."""

    codec: Codec
    item: Any


def reading(number: int = 7) -> Reading:
    """One of them."""
    return Reading(number, "turbine hall", 1_700_000_000_000 + number, 21.5, "bar", ["inlet", "raw"])


def contestants() -> dict[str, Contestant]:
    """The same reading by every codec, and a record batch of a thousand rows."""
    import pyarrow as pa

    item = reading()
    rows = pa.record_batch({"sensor": pa.array(range(ROWS)), "value": pa.array([21.5] * ROWS)})
    return {
        "struct_by_msgspec": Contestant(msgspec_codec(Reading), item),
        "array_like_struct_by_msgspec": Contestant(msgspec_codec(Row), Row(**msgspec.structs.asdict(item))),
        "struct_by_pickle": Contestant("pickle", item),
        "dict_by_pickle": Contestant("pickle", msgspec.to_builtins(item)),
        "dict_by_json": Contestant(json, msgspec.to_builtins(item)),
        "record_batch_by_arrow": Contestant("arrow", rows),
        "record_batch_by_pickle": Contestant("pickle", rows),
    }


def cost(contestant: Contestant, count: int, rounds: int) -> dict[str, float]:
    """Of one item in an envelope of `count`; the least of several rounds, each of some milliseconds."""
    coder = coder_of(contestant.codec, "bench")
    items = _copies(contestant, count)
    body = coder.dump(items)
    view = memoryview(body)
    return {
        "bytes": len(body) / count,
        "code_us": _least_us(partial(coder.dump, items), rounds) / count,
        "read_us": _least_us(partial(coder.load, view), rounds) / count,
    }


def _copies(contestant: Contestant, count: int) -> list[Any]:
    """Items of their own: pickle would write the same object once."""
    coder = coder_of(contestant.codec, "bench")
    body = memoryview(coder.dump([contestant.item]))
    return [coder.load(body)[0] for _ in range(count)]


def _least_us(work: Any, rounds: int) -> float:
    taken_us = []
    for _ in range(rounds):
        begin_ns, times = time.thread_time_ns(), 0
        while (passed_ns := time.thread_time_ns() - begin_ns) < 2_000_000:
            for _ in range(20):
                work()
            times += 20
        taken_us.append(passed_ns / times * 1e-3)
    return min(taken_us)


def bench(effort: Effort) -> Result:
    """All codecs in turn."""
    rounds = 5 if effort is Effort.QUICK else 25
    known = contestants()
    figures = {
        f"{name}_{words}": cost(contestant, count, rounds)
        for name, contestant in known.items()
        for count, words in ((1, "alone"), (MANY, f"of_{MANY}"))
    }
    return Result("codecs", figures, checks(figures))


def checks(figures: dict[str, dict[str, float]]) -> Sequence[Check]:
    """A struct by msgspec is cheaper than by pickle, and smaller if the names of its fields are left out."""

    def over(part: str, struct: str = "struct") -> float | None:
        of = f"of_{MANY}"
        return ratio(figures[f"{struct}_by_msgspec_{of}"][part], figures[f"struct_by_pickle_{of}"][part])

    return [
        Check("bytes of an array-like struct over pickle", over("bytes", "array_like_struct"), "<=", 1.0),
        Check("CPU to code a struct over pickle", over("code_us"), "<=", 0.5),
        Check("CPU to read a struct over pickle", over("read_us"), "<=", 0.75),
    ]
