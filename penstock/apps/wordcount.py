"""Word count, the job of Dhalion and DS2 (OSDI 2018, section 5.2), with stages of limited rate.

source -> splitter (elastic) -> counter (elastic) -> sink

Heron's run has 1M sentences/min, 100k sentences/min a splitter and 1M words/min a counter, 20 words a
sentence: 10 splitters and 20 counters are just enough. The ratios are the same here, at rates for two cores.
Replicas are 4 % faster than the nominal limits, because exactly 10 x 100k = 1M leaves no room for handing
over an item.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import penstock
from penstock.apps.board import Board
from penstock.apps.rate_limited import RateLimit, RateLimited
from penstock.durations import Duration
from penstock.flow.parallelism import Parallelism
from penstock.io.schedule import Schedule

WORDS_PER_SENTENCE = 20
SENTENCES_PER_S = 100.0
ROOM = 1.04
SPLITTER_PER_S = SENTENCES_PER_S / 10 * ROOM
COUNTER_PER_S = SENTENCES_PER_S * WORDS_PER_SENTENCE / 20 * ROOM
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru")
VOCABULARY = tuple(a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:5])

Wiring = Literal["round_robin", "key"]


def sentence(partition: int, index: int, seed: int) -> str:
    """Twenty words, the same whenever they are asked for."""
    draw = random.Random(f"{seed}/{partition}/{index}")
    return " ".join(draw.choices(VOCABULARY, k=WORDS_PER_SENTENCE))


class PartialCounts:
    """Counts the words of one replica and sends the counts on once a second, and what is left at its end.

    Nothing is kept for longer, so any replica may have any word, and replicas come and go inside a batch.
    """

    every = "1 s"

    def __init__(self, words_per_s: float | None) -> None:
        self._limit = RateLimit(words_per_s)
        self._counts: Counter[str] = Counter()

    def process(self, item: str, out: Callable[[dict[str, int]], None]) -> None:  # noqa: ARG002 - sent by the timer
        begun_s = self._limit.begin()
        self._counts[item] += 1
        self._limit.end(begun_s)

    def timer(self, out: Callable[[dict[str, int]], None]) -> None:
        if self._counts:
            out(dict(self._counts))
            self._counts.clear()

    def close(self, out: Callable[[dict[str, int]], None]) -> None:
        self.timer(out)


def wordcount_flow(
    rate: float | Schedule,
    sink: Any,
    *,
    splitters: Parallelism | int,
    counters: Parallelism | int,
    splitter_per_s: float | None = SPLITTER_PER_S,
    counter_per_s: float | None = COUNTER_PER_S,
    wiring: Wiring = "round_robin",
    bound: Duration = "500 ms",
    window: Duration = "5 s",
    lifetime: Duration = "5 ms",
    seconds: Duration | None = None,
    seed: int = 0,
) -> penstock.Flow:
    """The flow with all that can be varied; a limit of None leaves a stage as fast as it can be.

    Words go to the counters in turn; with wiring="key" all occurrences of a word meet in one of them, and
    their number changes at boundaries only. The sink gets dicts of counts that are still to be added up.
    """
    chosen = penstock.Flow("wordcount")
    source = chosen.source(penstock.paced(sentence, rate, seed=seed, seconds=seconds), name="source")
    split = RateLimited(str.split, splitter_per_s)
    words = source.batched(lifetime).flat_map(split, name="splitter", parallelism=splitters)
    ways = words.by_key(str) if wiring == "key" else words.round_robin()
    counted = ways.batched(lifetime).task(PartialCounts(counter_per_s), name="counter", parallelism=counters)
    counted.sink(sink, name="sink")
    chosen.constrain(bound, start="source->splitter", end="counter", window=window)
    return chosen


def flow(
    *,
    seconds: float = 180.0,
    sentences_per_s: float = SENTENCES_PER_S,
    splitters: int = 1,
    counters: int = 1,
    wiring: Wiring = "round_robin",
    out: str | None = None,
    seed: int = 0,
) -> penstock.Flow:
    """For `penstock run wordcount`: `splitters` and `counters` are the replicas at the start."""
    return wordcount_flow(
        sentences_per_s,
        Board(out),
        splitters=penstock.elastic(1, 20, initial=splitters, pool=20),
        counters=penstock.elastic(1, 40, initial=counters, pool=40),
        wiring=wiring,
        seconds=seconds,
        seed=seed,
    )
