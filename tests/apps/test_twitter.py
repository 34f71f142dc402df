"""TwitterSentiments: its load, its graph, and its results on Spark against a single process."""

from collections import Counter
from pathlib import Path

import pytest

import penstock
from penstock.apps.board import Board, read_board
from penstock.apps.sentiment import sentiment
from penstock.apps.twitter import LISTS, Limits, day, flow, twitter_flow
from penstock.apps.twitter_source import TweetMaker, topics_of
from penstock.apps.twitter_tasks import HOTTEST, Judged, per_topic
from penstock.io.schedule import constant
from penstock.sim.workloads import twitter as simulated
from penstock.testing import Collector, run

RATE = 300


def judged(tweets: TweetMaker, number: int, seed: int) -> Judged:
    """What should come of a tweet."""
    tweet = tweets.tweet(number, seed)
    return Judged(number, topics_of(tweet.text), sentiment(tweet.text))


def test_the_graph_is_that_of_the_thesis() -> None:
    graph = flow().graph()
    assert [task.name for task in graph.tasks] == [
        "source", "hot_topics", "merger", "filter", "sentiment", "sink",
    ]  # fmt: skip
    assert [task.name for task in graph.tasks if task.parallelism.elastic] == [
        "hot_topics", "filter", "sentiment",
    ]  # fmt: skip
    assert {stream.name: stream.wiring for stream in graph.streams if stream.wiring != "round_robin"} == {
        LISTS: "broadcast"
    }
    assert graph.task("hot_topics").every_ms == 200
    model = simulated.model()
    for name in ("hot_topics", "merger"):
        modelled = model.task(name)
        assert modelled.every_s is not None
        assert graph.task(name).every_ms == pytest.approx(1000 * modelled.every_s), "as in the simulator"
        assert graph.task(name).latency_kind == modelled.latency
    assert graph.task("hot_topics").latency_kind == graph.task("merger").latency_kind == "read_write"
    topics, sentiments = graph.constraints
    assert topics.latency_ms == 215
    assert topics.sequence == (
        "source->hot_topics", "hot_topics", "hot_topics->merger", "merger", "merger->filter", "filter",
    )  # fmt: skip
    assert sentiments.latency_ms == 30
    assert sentiments.sequence == (
        "source->filter", "filter", "filter->sentiment", "sentiment", "sentiment->sink",
    )  # fmt: skip


def test_a_day_has_a_night_a_burst_and_a_crowd() -> None:
    schedule, (crowd,) = day(240, 80, 300)
    assert schedule.rate_at(0) == pytest.approx(80, abs=1)
    assert max(schedule.rates_per_s) == pytest.approx(1.3 * 300, rel=0.03)
    assert schedule.rate_at(crowd.begin_s + 1) > 1.2 * schedule.rate_at(crowd.begin_s - 2)


def test_rates_may_come_from_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("timestamp,value\n" + "".join(f"{300 * n},{10 if n != 3 else 90}\n" for n in range(6)))
    tweets = flow(trace=str(path), speed_up=300, scale=2).graph().task("source").body
    assert isinstance(tweets, penstock.io.Paced)
    assert tweets.schedule.rate_at(0.5) == 20
    assert tweets.schedule.rate_at(3.5) == 180
    assert tweets.total == 280


def test_without_vader_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.extras.find_spec", lambda module: None)
    with pytest.raises(
        penstock.extras.MissingExtraError, match=r"twitter needs vaderSentiment; install penstock\[apps\]"
    ):
        flow()


def test_tweets_on_hot_topics_are_judged_once_it_is_known_what_is_hot() -> None:
    """As many topics as fit on the list of the hottest: all are judged after the first lists."""
    tweets = TweetMaker(constant(RATE), topics=HOTTEST)
    watched = twitter_flow(
        tweets, print, hot_topics=2, filters=2, sentiments=3, lifetime="5 ms", seconds=2, seed=5
    )
    found = run(watched)["sink"]
    numbers = [one.number for one in found]
    assert len(numbers) == len(set(numbers))
    assert set(range(RATE, 2 * RATE)) <= set(numbers)
    assert min(numbers) >= 0.2 * RATE, "nothing is hot before the first timer"
    assert {one.number: one for one in found} == {n: judged(tweets, n, 5) for n in numbers}


@pytest.mark.spark
def test_sentiments_on_spark_are_those_of_a_single_process() -> None:
    """There are as many topics as fit on the list of the hottest: after the start, every tweet is judged."""
    tweets = TweetMaker(constant(RATE), topics=HOTTEST)
    with Collector() as collector:
        watched = twitter_flow(
            tweets,
            collector,
            hot_topics=2,
            filters=penstock.elastic(1, 3, initial=2),
            sentiments=penstock.elastic(1, 3),
            seconds=4,
            seed=5,
        )
        job = penstock.run(watched, policy=None)
        if not job.await_termination(2):
            job.set_active("sentiment", 3)
        assert job.await_termination(60)
        found = [Judged(*item) for item in collector.items()]
        passed = job.metrics().tasks["filter"].items_out
    numbers = [one.number for one in found]
    assert len(numbers) == len(set(numbers)) == passed, "each that passed the filter is judged once"
    assert set(range(2 * RATE, 4 * RATE)) <= set(numbers), "every topic is hot after two seconds"
    assert {one.number: one for one in found} == {n: judged(tweets, n, 5) for n in numbers}


@pytest.mark.spark
def test_totals_per_topic_and_sentiment_on_spark_are_those_of_the_tweets_judged(tmp_path: Path) -> None:
    board = tmp_path / "sentiments.json"
    tweets = TweetMaker(constant(RATE), topics=1000)
    watched = twitter_flow(
        tweets, Board(board, per_topic), hot_topics=2, filters=2, sentiments=2,
        limits=Limits(hot_topics=2000, filter=2000, sentiment=2000), seconds=4, seed=6,
    )  # fmt: skip
    job = penstock.run(watched, policy=None)
    assert job.await_termination(60)
    totals = read_board(board)
    expected: Counter[str] = Counter()
    for number in range(4 * RATE):
        expected.update(per_topic(judged(tweets, number, 6)))
    assert sum(totals.values()) == job.metrics().tasks["sink"].items_in
    assert set(totals) <= set(expected)
    assert all(count <= expected[key] for key, count in totals.items())
    assert "topic0" in {key.split()[0] for key in totals}, "the most popular topic is hot"
    # Hot are few of the thousand topics, and those are nearly always hot once they are.
    most = {key: count for key, count in expected.items() if key.startswith("topic0 ")}
    assert sum(totals.get(key, 0) for key in most) > 0.6 * sum(most.values())
