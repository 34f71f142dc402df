"""TwitterSentiments (thesis, sections 5.1.3 and 5.3.2): what do people feel about the topics of the moment?

source -> hot_topics (elastic) -> merger -broadcast-> filter
source -> filter (elastic) -> sentiment (elastic) -> sink

Two constraints: 215 ms until the filters know what is hot, 30 ms from a tweet to its sentiment. The data set
of the thesis is not public; the load here has its traits: day and night, bursts, and a crowd that tweets
about few topics, so that the sentiment task gets far more than its usual share.
"""

from dataclasses import dataclass
from typing import Any, Literal

import penstock
from penstock.apps.board import Board
from penstock.apps.texts import checked_texts
from penstock.apps.twitter_source import Crowd, TweetMaker, crowds_of
from penstock.apps.twitter_tasks import Filter, HotTopics, HotTopicsMerger, SentimentTask, per_topic
from penstock.durations import Duration
from penstock.extras import require
from penstock.flow.parallelism import Parallelism
from penstock.io.day_night import Burst, day_night
from penstock.io.schedule import Schedule
from penstock.io.trace import trace as read_trace

Work = Literal["cpu", "rate_limited"]
TOPICS_BOUND, SENTIMENTS_BOUND = "215 ms", "30 ms"
LISTS = "merger->filter"


@dataclass(frozen=True, slots=True)
class Limits:
    """Tweets per second of one replica; None for as fast as it can."""

    hot_topics: float | None = None
    filter: float | None = None
    sentiment: float | None = None


# VADER takes 45 us a tweet, the library of the thesis some ms. With these limits scaling shows on two cores:
# a crowd's third more tweets fit into the replicas of a busy day, its twice as many matches do not.
SLOW = Limits(hot_topics=400, filter=333, sentiment=100)


def day(seconds: float, low_per_s: float, high_per_s: float) -> tuple[Schedule, tuple[Crowd, ...]]:
    """One day in `seconds`: a burst of everything in the morning, a crowd on few topics after noon."""
    morning = Burst(at=0.25 * seconds, lasts=0.08 * seconds, factor=1.4)
    crowd = Burst(at=0.55 * seconds, lasts=0.12 * seconds, factor=1.3)
    begin_s = 0.55 * seconds
    schedule = day_night(low_per_s, high_per_s, seconds, [morning, crowd])
    return schedule, (Crowd(begin_s, begin_s + 0.12 * seconds),)


def twitter_flow(
    tweets: TweetMaker,
    sink: Any,
    *,
    hot_topics: Parallelism | int,
    filters: Parallelism | int,
    sentiments: Parallelism | int,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    lifetime: Duration = 0,
    window: Duration = "5 s",
    seconds: Duration | None = None,
    seed: int = 0,
) -> penstock.Flow:
    """The flow with all that can be varied. The sink gets a `Judged` for every tweet on a hot topic."""
    require("vaderSentiment", "apps", "the application twitter")
    chosen = penstock.Flow("twitter")
    paced = penstock.paced(tweets, tweets.schedule, seed=seed, seconds=seconds)
    source = chosen.source(paced, name="source").coded("bytes").batched(lifetime)
    hot = source.task(HotTopics(limits.hot_topics), name="hot_topics", parallelism=hot_topics)
    merged = hot.batched(lifetime).task(HotTopicsMerger, name="merger")
    lists = merged.batched(lifetime).broadcast()
    hits = source.task(Filter(LISTS, limits.filter), lists, name="filter", parallelism=filters)
    judge = SentimentTask(limits.sentiment)
    judged = hits.batched(lifetime).task(judge, name="sentiment", parallelism=sentiments)
    judged.batched(lifetime).sink(sink, name="sink")
    chosen.constrain(TOPICS_BOUND, start="source->hot_topics", end="filter", window=window, name="topics")
    chosen.constrain(
        SENTIMENTS_BOUND, start="source->filter", end="sentiment->sink", window=window, name="sentiments"
    )
    return chosen


def flow(
    *,
    seconds: float = 240.0,
    low_per_s: float = 80.0,
    high_per_s: float = 300.0,
    trace: str | None = None,
    column: str = "value",
    speed_up: float = 200.0,
    scale: float = 1.0,
    work: Work = "rate_limited",
    texts: str | None = None,
    out: str | None = None,
    seed: int = 0,
) -> penstock.Flow:
    """For `penstock run twitter`: a day in `seconds`, or a CSV trace of rates, `speed_up` times as fast.

    The totals of each topic and sentiment are written to the file `out`.
    """
    if trace is None:
        schedule, crowds = day(seconds, low_per_s, high_per_s)
    else:
        schedule = read_trace(trace, column, speed_up=speed_up, scale=scale)
        crowds = crowds_of(schedule)
    return twitter_flow(
        TweetMaker(schedule, crowds, checked_texts(texts)),
        Board(out, per_topic),
        hot_topics=penstock.elastic(1, 8, initial=2),
        filters=penstock.elastic(1, 8, initial=2),
        sentiments=penstock.elastic(1, 24, initial=2, pool=24),
        limits=SLOW if work == "rate_limited" else Limits(),
        seconds=seconds,
        seed=seed,
    )
