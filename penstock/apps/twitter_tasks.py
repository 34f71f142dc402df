"""The tasks of TwitterSentiments (thesis, section 5.1.3), one class each."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.apps.rate_limited import RateLimit
from penstock.apps.sentiment import Sentiment, sentiment
from penstock.apps.twitter_source import Tweet, topics_of

Counts = list[tuple[str, int]]
PARTIAL_LIST = 20
HOTTEST = 5
# Popularity counts among about the last so many mentions: quickly hot, and forgotten some seconds later.
REMEMBERED_MENTIONS = 1000


class Hit(NamedTuple):
    """A tweet on popular topics."""

    number: int
    text: str
    topics: list[str]


class Judged(NamedTuple):
    """What its author feels."""

    number: int
    topics: list[str]
    sentiment: Sentiment


class HotTopics:
    """Counts the topics of its share of the tweets; every 200 ms the most frequent are sent on."""

    every = "200 ms"
    latency_kind = "read_write"

    def __init__(self, tweets_per_s: float | None = None) -> None:
        self._limit = RateLimit(tweets_per_s)
        self._counts: Counter[str] = Counter()

    def process(self, item: bytes, out: Callable[[Counts], None]) -> None:  # noqa: ARG002 - sent by the timer
        begun_s = self._limit.begin()
        self._counts.update(topics_of(msgspec.json.decode(item, type=Tweet).text))
        self._limit.end(begun_s)

    def timer(self, out: Callable[[Counts], None]) -> None:
        if self._counts:
            out(self._counts.most_common(PARTIAL_LIST))
            self._counts.clear()

    def close(self, out: Callable[[Counts], None]) -> None:
        self.timer(out)


class HotTopicsMerger:
    """Merges the lists that come; every 5 ms the hottest topics of all are sent to every filter.

    The thesis says "periodically" and not how often; after windows of 200 ms a bound of 215 ms leaves little.
    Nothing is sent when no list came. Counts are halved when they sum up to more than 1,000 mentions, so that
    what was hot is forgotten.
    """

    every = "5 ms"
    latency_kind = "read_write"

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._news = False

    def process(self, item: Counts, out: Callable[[list[str]], None]) -> None:  # noqa: ARG002 - sent by the timer
        self._counts.update(dict(item))
        if self._counts.total() > REMEMBERED_MENTIONS:
            self._counts = Counter({topic: count // 2 for topic, count in self._counts.items() if count > 1})
        self._news = True

    def timer(self, out: Callable[[list[str]], None]) -> None:
        if self._news:
            self._news = False
            out([topic for topic, _ in self._counts.most_common(HOTTEST)])

    def close(self, out: Callable[[list[str]], None]) -> None:
        self.timer(out)


class Filter:
    """Lets the tweets on hot topics pass; before the first list there are none."""

    def __init__(self, lists: str, tweets_per_s: float | None = None) -> None:
        self._lists = lists
        self._limit = RateLimit(tweets_per_s)
        self._hot: frozenset[str] = frozenset()

    def open(self, context: Any) -> None:
        self._context = context

    def process(self, item: Any, out: Callable[[Hit], None]) -> None:
        if self._context.input == self._lists:
            self._hot = frozenset(item)
            return
        begun_s = self._limit.begin()
        tweet = msgspec.json.decode(item, type=Tweet)
        hits = [topic for topic in topics_of(tweet.text) if topic in self._hot]
        self._limit.end(begun_s)
        if hits:
            out(Hit(tweet.number, tweet.text, hits))


class SentimentTask:
    """Judges the tweets on hot topics."""

    def __init__(self, tweets_per_s: float | None = None) -> None:
        self._limit = RateLimit(tweets_per_s)

    def open(self, context: Any) -> None:  # noqa: ARG002 - for its effect
        sentiment("")  # loads the lexicon, which the first tweet would have to wait for

    def process(self, item: Hit, out: Callable[[Judged], None]) -> None:
        begun_s = self._limit.begin()
        judged = Judged(item.number, item.topics, sentiment(item.text))
        self._limit.end(begun_s)
        out(judged)


def per_topic(judged: Judged) -> Mapping[str, int]:
    """What a board counts: sentiments per topic."""
    return {f"{topic} {judged.sentiment}": 1 for topic in judged.topics}
