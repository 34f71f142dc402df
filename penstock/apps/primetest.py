"""PrimeTest, the job of the thesis (section 5.1.2) and the ICDCS paper: are random numbers prime?

source -> tester (elastic) -> sink, all round robin; one constraint over (stream, tester, stream)
"""

import hashlib
from functools import partial
from typing import Any, Literal

import penstock
from penstock.apps.probable_prime import is_probable_prime
from penstock.apps.rate_limited import RateLimited
from penstock.durations import Duration
from penstock.flow.parallelism import Parallelism
from penstock.io.schedule import Schedule, steps

Work = Literal["cpu", "rate_limited"]
NUMBER_BYTES = 32
STEPS = 6
LOW_PER_S, HIGH_PER_S = 2_000.0, 20_000.0
# Spans of the profile for two cores, in parts of its whole length of 210 s.
REST, CLIMB, PLATEAU = 30 / 210, 60 / 210, 30 / 210
# With fewer steps, so that each lasts several intervals of 2 s: spans, and shares of the highest rate.
SHORT = ((10.0, 0.1), (8.0, 0.4), (8.0, 0.7), (14.0, 1.0), (8.0, 0.5), (12.0, 0.1))


def number(
    partition: int, index: int, seed: int, due_ns: int, size: int = NUMBER_BYTES
) -> tuple[int, int, int, int, bytes]:
    """A random number of so many bytes, at most 64, the same whenever it is asked for; unmarked yet."""
    key = b"%d/%d/%d" % (seed, partition, index)
    return partition, index, due_ns, 0, hashlib.blake2b(key, digest_size=size).digest()


def tester(item: tuple[int, int, int, int, bytes]) -> tuple[int, int, int, int, bytes]:
    """Tests a number; the mark says whether it is prime."""
    partition, index, due_ns, _, digits = item
    return partition, index, due_ns, int(is_probable_prime(int.from_bytes(digits, "big"))), digits


def untested(item: tuple[int, int, int, int, bytes]) -> tuple[int, int, int, int, bytes]:
    """In place of the test where only its time counts; the marks of these items say nothing."""
    return item


def profile(seconds: float, low_per_s: float = LOW_PER_S, high_per_s: float = HIGH_PER_S) -> Schedule:
    """Low, six steps up, a plateau, six steps down, low: the two-core profile, stretched to a length."""
    heights = [low_per_s + (high_per_s - low_per_s) * (step + 1) / STEPS for step in range(STEPS)]
    climb = [(CLIMB * seconds / STEPS, height) for height in heights]
    rest = (REST * seconds, low_per_s)
    return steps([rest, *climb, (PLATEAU * seconds, high_per_s), *reversed(climb), rest])


def short_profile(high_per_s: float) -> Schedule:
    """A minute: low, three steps up to ten times as much in 28 s, a plateau, down again."""
    return steps((span, share * high_per_s) for span, share in SHORT)


def prime_flow(
    schedule: Schedule,
    sink: Any,
    *,
    testers: Parallelism | int,
    bound: Duration = "20 ms",
    window: Duration = "5 s",
    statistic: str = "mean",
    share: float | None = None,
    lifetime: Duration = 0,
    work: Work = "cpu",
    items_per_s: float = 1000.0,
    number_bytes: int = NUMBER_BYTES,
    seed: int = 0,
) -> penstock.Flow:
    """The flow with all that can be varied; `items_per_s` limits a replica if work is rate_limited."""
    chosen = penstock.Flow("primetest")
    made = partial(number, size=number_bytes)
    numbers = chosen.source(penstock.paced(made, schedule, seed=seed), name="numbers").batched(lifetime)
    test = tester if work == "cpu" else RateLimited(untested, items_per_s)
    tested = numbers.map(test, name="tester", parallelism=testers)
    tested.batched(lifetime).sink(sink, name="results")
    sequence = ["numbers->tester", "tester", "tester->results"]
    chosen.constrain(bound, sequence, window=window, statistic=statistic, share=share)
    return chosen


def flow(
    *,
    seconds: float = 210.0,
    low_per_s: float = LOW_PER_S,
    high_per_s: float = HIGH_PER_S,
    work: Work = "cpu",
    items_per_s: float = 2000.0,
    seed: int = 0,
) -> penstock.Flow:
    """For `penstock run primetest`: the two-core profile, results counted and dropped.

    With work=rate_limited a tester takes `items_per_s` without using the processor, and there are up to 16.
    """
    most = 4 if work == "cpu" else 16
    return prime_flow(
        profile(seconds, low_per_s, high_per_s),
        drop,
        testers=penstock.elastic(1, most, initial=1, pool=most),
        lifetime="5 ms",
        work=work,
        items_per_s=items_per_s,
        seed=seed,
    )


def drop(item: Any) -> None:
    """A sink for those who only want to watch."""
