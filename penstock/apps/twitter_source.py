"""The tweets: topics by popularity, and crowds that all tweet about the same few."""

import itertools
import math
import random
import re
import statistics
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import msgspec

from penstock.apps.texts import text
from penstock.io.schedule import Schedule

TOPICS = 10_000
ZIPF_EXPONENT = 1.1
CROWD_SHARE = 0.8
CROWD_TOPICS = "abc"
# A trace does not say what its bursts are about: where it is so far above its median, they are about little.
CROWDED_OVER_MEDIAN = 2.0
HASHTAG = re.compile(r"#(\w+)")


class Tweet(msgspec.Struct, frozen=True):
    """As it travels: JSON."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """From `begin_s` to `end_s` of the schedule, most tweets are about three topics of its own."""

    begin_s: float
    end_s: float


@dataclass(frozen=True)
class TweetMaker:
    """`make` of a paced source: a text with the hashtag of its topic, encoded as JSON.

    The topic is drawn from Zipf's law, P(rank k) ~ k ** -1.1; in a crowd it is one of the crowd's own three
    with a probability of 0.8. Crowds are in the order of time.
    """

    schedule: Schedule
    crowds: tuple[Crowd, ...] = ()
    texts: str | None = None
    topics: int = TOPICS

    def __call__(self, partition: int, index: int, seed: int) -> bytes:
        assert partition == 0, "the source of tweets has one partition"
        return msgspec.json.encode(self.tweet(index, seed))

    def tweet(self, number: int, seed: int) -> Tweet:
        """Tweet number `number`, the same whenever it is asked for."""
        draw = random.Random(f"topic/{seed}/{number}")
        crowd = self._crowd_at(self.schedule.due_s(number))
        if crowd is not None and draw.random() < CROWD_SHARE:
            topic = f"crowd{crowd}{draw.choice(CROWD_TOPICS)}"
        else:
            topic = f"topic{bisect_right(_shares(self.topics), draw.random())}"
        return Tweet(number, f"{text(number, seed, self.texts)} #{topic}")

    def _crowd_at(self, time_s: float) -> int | None:
        if self.schedule.repeats:
            time_s = math.fmod(time_s, self.schedule.starts_s[-1])
        place = bisect_right(self.crowds, time_s, key=lambda crowd: crowd.begin_s) - 1
        return place if place >= 0 and time_s < self.crowds[place].end_s else None


@cache
def _shares(topics: int) -> tuple[float, ...]:
    """Cumulative shares of all topics but the last, most popular first."""
    weights = [rank**-ZIPF_EXPONENT for rank in range(1, topics + 1)]
    whole = math.fsum(weights)
    return tuple(itertools.accumulate(weight / whole for weight in weights[:-1]))


def topics_of(words: str) -> list[str]:
    """The hashtags of a text, each once, in lower case."""
    return list(dict.fromkeys(found.lower() for found in HASHTAG.findall(words)))


def crowds_of(schedule: Schedule) -> tuple[Crowd, ...]:
    """Where a schedule is more than twice its median rate, as crowds."""
    bar = CROWDED_OVER_MEDIAN * statistics.median(schedule.rates_per_s)
    segments = zip(schedule.rates_per_s, itertools.pairwise(schedule.starts_s), strict=True)
    return tuple(_joined(span for rate, span in segments if rate > bar))


def _joined(spans: Iterable[tuple[float, float]]) -> list[Crowd]:
    crowds: list[Crowd] = []
    for begin_s, end_s in spans:
        if crowds and crowds[-1].end_s == begin_s:
            crowds[-1] = Crowd(crowds[-1].begin_s, end_s)
        else:
            crowds.append(Crowd(begin_s, end_s))
    return crowds
