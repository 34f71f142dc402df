"""The topic classifier: its traffic, its graphs, and its labels on Spark against a single process."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.apps.board import Board, read_board
from penstock.apps.classifier import TWEETS_PER_S, Traffic, flow, traffic
from penstock.apps.classifier_graphs import TASKS, branches, row
from penstock.apps.classifier_tasks import Classify, Labelled, Tweets, is_opinion, judge, per_path
from penstock.apps.store import Store, stored
from penstock.testing import run

RATE, COUNT, SEED = 200, 500, 3


def tweets() -> penstock.io.Paced[Labelled]:
    return penstock.paced(Tweets(), RATE, count=COUNT, seed=SEED)


def in_a_row(number: int) -> Labelled:
    """What should come of a tweet."""
    item = Tweets()(0, number, SEED)
    for _ in TASKS:
        item = Classify()(item)
    return item


def by_branches(number: int) -> Labelled:
    """What should come of a tweet, by the other graph."""
    item = Tweets()(0, number, SEED)
    if is_opinion(item.text):
        return Classify(before=2)(judge(item._replace(labels=("opinion",))))
    return Classify(before=1)(Classify(before=1)(item._replace(labels=("news",))))


@pytest.mark.parametrize("shape", ["gaussian", "peaks"])
def test_traffic_has_its_length_and_its_height(shape: Traffic) -> None:
    schedule = traffic(shape, 120, 250)
    assert schedule.starts_s[-1] == pytest.approx(120)
    assert max(schedule.rates_per_s) == pytest.approx(250)
    assert min(schedule.rates_per_s) < 30


def test_ten_peaks_are_ten() -> None:
    rates = traffic("peaks", 120, 250).rates_per_s
    heights = [b for a, b, c in zip(rates, rates[1:], rates[2:], strict=False) if a < b >= c]
    assert len(heights) == 10
    assert heights[:8] == sorted(heights[:8]), "higher and higher up to the eighth"


def test_the_row_is_that_of_the_paper() -> None:
    graph = flow().graph()
    assert [task.name for task in graph.tasks] == ["source", *TASKS, "sink"]
    assert all(graph.task(name).parallelism.elastic for name in TASKS)
    assert graph.constraints[0].sequence[0] == "source->topic"
    assert graph.constraints[0].sequence[-1] == "subcategory->sink"


def test_branches_part_and_meet_again() -> None:
    graph = flow(graph="branches").graph()
    assert [stream.name for stream in graph.streams] == [
        "source->kind", "kind->topic", "kind.opinions->sentiment", "topic->subtopic", "subtopic->sink",
        "sentiment->subject", "subject->sink",
    ]  # fmt: skip
    assert [constraint.name for constraint in graph.constraints] == ["news", "opinions"]


def test_rates_may_come_from_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("timestamp,value\n0,10\n300,40\n")
    source: Any = flow(trace=str(path), speed_up=300).graph().task("source").body
    assert source.total == 50


def test_the_peak_needs_more_than_one_replica() -> None:
    source: Any = flow().graph().task("source").body
    assert max(source.schedule.rates_per_s) >= 2 * TWEETS_PER_S


def test_without_vader_branches_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.extras.find_spec", lambda module: None)
    with pytest.raises(
        penstock.extras.MissingExtraError, match=r"needs vaderSentiment; install penstock\[apps\]"
    ):
        flow(graph="branches")
    assert flow().graph()


def test_labels_of_the_row_are_those_of_a_single_process() -> None:
    found = run(row(tweets(), print, replicas=2))["sink"]
    assert {item.number: item for item in found} == {number: in_a_row(number) for number in range(COUNT)}
    assert len(found) == COUNT


def test_labels_of_the_branches_are_those_of_a_single_process() -> None:
    found = run(branches(tweets(), print, replicas=2))["sink"]
    assert {item.number: item for item in found} == {number: by_branches(number) for number in range(COUNT)}
    assert len(found) == COUNT


@pytest.mark.spark
def test_labels_on_spark_are_those_of_a_single_process(tmp_path: Path) -> None:
    board = tmp_path / "labels.json"
    replicas = penstock.elastic(1, 2)
    job = penstock.run(
        row(tweets(), Board(board, per_path), replicas=replicas, tweets_per_s=2000), policy=None
    )
    if not job.await_termination(1):
        job.set_active("category", 2)
    assert job.await_termination(60)
    expected: Counter[str] = Counter()
    for number in range(COUNT):
        expected.update(per_path(in_a_row(number)))
    assert read_board(board) == dict(expected)


@pytest.mark.spark
def test_the_database_on_spark_holds_every_tweet_once(tmp_path: Path) -> None:
    path = tmp_path / "tweets.sqlite"
    job = penstock.run(branches(tweets(), Store(path), replicas=2), policy=None)
    assert job.await_termination(60)
    assert stored(path) == {number: "/".join(by_branches(number).labels) for number in range(COUNT)}
