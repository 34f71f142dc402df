"""The tasks of TwitterSentiments, and the tweets they read."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.apps.twitter_source import CROWD_SHARE, Crowd, Tweet, TweetMaker, crowds_of, topics_of
from penstock.apps.twitter_tasks import (
    HOTTEST,
    REMEMBERED_MENTIONS,
    Filter,
    Hit,
    HotTopics,
    HotTopicsMerger,
    Judged,
    SentimentTask,
    per_topic,
)
from penstock.io.day_night import day_night
from penstock.io.schedule import Schedule, constant, steps
from penstock.testing import at, run


def encoded(words: str, number: int = 0) -> bytes:
    return msgspec.json.encode(Tweet(number, words))


def topics(maker: TweetMaker, numbers: range) -> Counter[str]:
    return Counter(topics_of(maker.tweet(number, 0).text)[-1] for number in numbers)


def test_tweets_are_json_and_the_same_whenever_they_are_asked_for() -> None:
    maker = TweetMaker(constant(100))
    assert msgspec.json.decode(maker(0, 7, 1), type=Tweet) == maker.tweet(7, 1)
    assert maker.tweet(7, 1) != maker.tweet(7, 2)


def test_topics_follow_the_law_of_zipf() -> None:
    counts = topics(TweetMaker(constant(100), topics=50), range(4000))
    whole = sum(rank**-1.1 for rank in range(1, 51))
    for rank in (1, 2, 10):
        assert counts[f"topic{rank - 1}"] / 4000 == pytest.approx(rank**-1.1 / whole, abs=0.03)
    assert set(counts) <= {f"topic{rank}" for rank in range(50)}


@pytest.mark.parametrize("schedule", [constant(100), steps([(20, 100)]), day_night(100, 100, "20 s")])
def test_a_crowd_tweets_about_few_topics_and_only_while_it_is_there(schedule: Schedule) -> None:
    maker = TweetMaker(schedule, (Crowd(1, 2), Crowd(5, 10)))
    few = {"crowd1a", "crowd1b", "crowd1c"}
    inside, outside = topics(maker, range(500, 1000)), topics(maker, range(1000, 1500))
    assert sum(inside[topic] for topic in few) / 500 == pytest.approx(CROWD_SHARE, abs=0.06)
    assert not any(topic.startswith("crowd") for topic in outside)
    assert {topic[:6] for topic in topics(maker, range(100, 200))} >= {"crowd0", "topic0"}


def test_crowds_of_a_trace_are_where_it_is_far_above_its_median() -> None:
    schedule = steps([(10, 100), (10, 120), (5, 300), (5, 250), (10, 110), (10, 90), (1, 900), (9, 100)])
    assert crowds_of(schedule) == (Crowd(20, 30), Crowd(50, 51))


def test_hashtags_are_topics() -> None:
    assert topics_of("#Rain and #sun, #rain again; # no") == ["rain", "sun"]


@given(st.lists(st.sampled_from(["#a", "#b #c", "#a #c", "none"])), st.integers(0, 20))
def test_hot_topics_sends_its_counts_and_begins_anew(words: list[str], cut: int) -> None:
    task, out = HotTopics(), list[Any]()
    for part in (words[:cut], words[cut:]):
        for one in part:
            task.process(encoded(one), out.append)
        task.timer(out.append)
    task.close(out.append)
    sent: Counter[str] = Counter()
    for partial in out:
        sent.update(dict(partial))
        assert [count for _, count in partial] == sorted((count for _, count in partial), reverse=True)
    assert sent == Counter(topic for one in words for topic in topics_of(one))
    assert len(out) <= 2, "nothing is sent when there was nothing"


def test_the_merger_adds_lists_up_and_sends_the_hottest_when_it_is_time() -> None:
    merger, out = HotTopicsMerger(), list[Any]()
    merger.process([("a", 3), ("b", 2)], out.append)
    merger.timer(out.append)
    merger.process([("b", 2), ("c", 1)], out.append)
    merger.process([("c", 4)], out.append)
    assert out == [["a", "b"]], "however many lists come meanwhile"
    merger.timer(out.append)
    merger.timer(out.append)
    assert out == [["a", "b"], ["c", "b", "a"]], "and nothing when none came"
    merger.process([(f"t{n}", 10) for n in range(9)], out.append)
    merger.close(out.append)
    assert len(out[-1]) == HOTTEST


def test_the_merger_forgets() -> None:
    merger, out = HotTopicsMerger(), list[Any]()
    for _, lists in ((1, [("old", REMEMBERED_MENTIONS)]), *((n, [("new", 100)]) for n in range(150))):
        merger.process(lists, out.append)
        merger.timer(out.append)
    assert out[0] == ["old"]
    assert out[-1][0] == "new"
    assert "old" not in out[-1], "and in the end it is not even on the list"


def test_the_filter_lets_hot_topics_pass_once_it_knows_them() -> None:
    flow = penstock.Flow("filter")
    tweets = flow.source(penstock.paced(TweetMaker(constant(100)), 100, count=9), name="tweets")
    lists = flow.source(penstock.paced(TweetMaker(constant(100)), 100, count=9), name="lists")
    tweets.task(Filter("lists->filter"), lists.broadcast(), name="filter", parallelism=2).sink(print)
    later = [encoded(words, number) for number, words in enumerate(["#a and #c", "#c", "#B"], start=2)]
    inputs: dict[str, Any] = {
        "tweets": [encoded("#a is hot", 1), *at("2 s", *later)],
        "lists": at("1 s", ["a", "b"]),
    }
    assert run(flow, inputs)["print"] == [Hit(2, "#a and #c", ["a"]), Hit(4, "#B", ["b"])]


def test_the_sentiment_task_judges() -> None:
    task, out = SentimentTask(), list[Any]()
    task.open(None)
    task.process(Hit(3, "I love #a and #b", ["a", "b"]), out.append)
    assert out == [Judged(3, ["a", "b"], "positive")]
    assert per_topic(out[0]) == {"a positive": 1, "b positive": 1}
