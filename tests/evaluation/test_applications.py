"""What each application says of its runs, from recordings made by hand."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from penstock.apps.classifier_graphs import TASKS
from penstock.evaluation import classifier, livestream, primetest, twitter, wordcount
from penstock.evaluation.document import part_in, recording_of, write_document
from penstock.evaluation.part import Application, Part
from penstock.stats.snapshot import Snapshot
from tests.evaluation.histories import INTERVAL_S, history, interval, record


def rendered(application: Application, runs: Mapping[str, Sequence[Snapshot]], directory: Path) -> Part:
    for name, snapshots in runs.items():
        record(recording_of(name, directory), snapshots)
    found = part_in(application, directory)
    assert found is not None
    write_document({"found": found}, directory / "document.md")
    for picture in found.pictures:
        assert (directory / "pictures" / f"{picture.name}.png").exists()
    return found


def verdicts(part: Part) -> dict[str, bool]:
    return {check.name.partition(": ")[2]: check.ok for check in part.checks}


def tweets(in_crowd: int, late: Iterable[int] = (), *, hot_topics: int = 1) -> list[Snapshot]:
    """A day at 80 tweets/s until the crowd; `in_crowd` sentiment replicas during it, two before.

    `hot_topics` has one before, `filter` two all day.
    """
    begin_s, end_s = twitter.crowd()
    late = set(late)
    return [
        interval(
            {
                "hot_topics": hot_topics if crowded else 1,
                "filter": 2,
                "sentiment": in_crowd if crowded else 2,
            },
            rate=300.0 if crowded else 80.0,
            latency_ms=300.0 if place in late else 20.0,
            bounds_ms={"topics": 215.0, "sentiments": 30.0},
        )
        for place in range(round(twitter.SECONDS / INTERVAL_S))
        for crowded in [begin_s <= place * INTERVAL_S < end_s]
    ]


def test_twitter_with_a_crowd_that_only_sentiment_feels(tmp_path: Path) -> None:
    found = rendered(twitter, {"twitter": tweets(in_crowd=8)}, tmp_path)
    assert all(verdicts(found).values())


def test_twitter_misses_a_bar_when_the_others_grow_too(tmp_path: Path) -> None:
    found = verdicts(rendered(twitter, {"twitter": tweets(in_crowd=8, hot_topics=2)}, tmp_path))
    assert found["sentiment in the crowd over before"]
    assert not found["any other task in the crowd over before"]


def test_twitter_misses_its_bars_when_intervals_break_or_nothing_scales(tmp_path: Path) -> None:
    found = verdicts(rendered(twitter, {"twitter": tweets(in_crowd=2, late=range(6))}, tmp_path))
    assert found["topics held"]
    assert not found["sentiments held"]
    assert not found["sentiment in the crowd over before"]
    assert not found["growth of sentiment over that of any other task"]


FILM = {"decoder": 1, "encoder": 1}
CHAIN = [["decoder", "encoder"]]


def film(latency_ms: float, cores: float, *, chained_from: int | None = None) -> list[Snapshot]:
    return [
        interval(
            FILM,
            latency_ms=latency_ms,
            cores=cores,
            bounds_ms={"live": 50.0},
            chains=CHAIN if chained_from is not None and place >= chained_from else [],
        )
        for place in range(20)
    ]


def test_livestream_holds_chaining_against_batching(tmp_path: Path) -> None:
    runs = {
        livestream.IMMEDIATE: film(15.0, 0.7),
        livestream.BATCHING: film(42.0, 0.6),
        livestream.CHAINING: film(20.0, 0.3, chained_from=4),
    }
    found = rendered(livestream, runs, tmp_path)
    assert all(verdicts(found).values())
    assert found.tables[0].rows[2][1] == "20.0 ms"
    slow = rendered(livestream, {**runs, livestream.CHAINING: film(22.0, 0.5, chained_from=4)}, tmp_path)
    assert list(verdicts(slow).values()) == [False, False, True]


def test_a_film_that_was_never_chained_proves_nothing() -> None:
    assert livestream.held_since_chained(history(film(20.0, 0.3))) is None
    broken = [*film(20.0, 0.3, chained_from=0), *film(60.0, 0.3, chained_from=0)]
    assert livestream.held_since_chained(history(broken)) == pytest.approx(19 / 39)


def test_word_count_tells_steps_and_the_final_configuration(tmp_path: Path) -> None:
    def counting(*steps: tuple[int, int]) -> list[Snapshot]:
        return [interval({"splitter": s, "counter": c}) for s, c in steps for _ in range(8)]

    runs = {
        "wordcount-ds2": counting((1, 1), (10, 20)),
        "wordcount-dhalion": counting((1, 1), (5, 1), (5, 10), (12, 25)),
    }
    found = rendered(wordcount, runs, tmp_path)
    assert [row[1] for row in found.tables[0].rows] == ["1", "3"]
    assert [row[3] for row in found.tables[0].rows] == ["10 and 20", "12 and 25"]
    assert found.tables[1].rows[0] == ("ds2", "1/1 at 0 s, 10/20 at 16 s")


def test_classifier_and_primetest_have_a_row_for_every_run(tmp_path: Path) -> None:
    labels = [interval(dict.fromkeys(TASKS, 2), bounds_ms={"tweets": 500.0}) for _ in range(5)]
    found = rendered(classifier, {trial.name: labels for trial in classifier.trials()}, tmp_path)
    assert [len(table.rows) for table in found.tables] == [2, 3]
    assert found.tables[0].rows[0][5] == "100.0 %"
    primes = [interval({"tester": 3}) for _ in range(5)]
    found = rendered(primetest, {trial.name: primes for trial in primetest.trials()}, tmp_path)
    assert [[row[0] for row in table.rows] for table in found.tables] == [list(primetest.POLICIES)] * 2
    assert found.tables[0].rows[0][4] == "30"
