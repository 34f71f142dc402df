"""Word count: its sentences, its graph, and its counts on Spark against a plain count."""

from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.apps.board import Board, read_board
from penstock.apps.wordcount import (
    COUNTER_PER_S,
    SENTENCES_PER_S,
    SPLITTER_PER_S,
    VOCABULARY,
    WORDS_PER_SENTENCE,
    Wiring,
    flow,
    sentence,
    wordcount_flow,
)
from penstock.testing import at, run


@given(st.integers(0, 5), st.integers(0, 1000), st.integers(0, 5))
def test_sentences_depend_on_partition_index_and_seed_only(partition: int, index: int, seed: int) -> None:
    words = sentence(partition, index, seed).split()
    assert len(words) == WORDS_PER_SENTENCE
    assert set(words) <= set(VOCABULARY)
    assert sentence(partition, index, seed) == sentence(partition, index, seed)
    assert sentence(partition, index, seed) != sentence(partition, index + 1, seed)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.4, 1.0, 2.0]), st.sampled_from(["a b a", "c", "b"]))),
    st.sampled_from(["round_robin", "key"]),
)
def test_partial_counts_are_sent_once_a_second_and_add_up(
    paused: list[tuple[float, str]], wiring: Wiring
) -> None:
    counting = wordcount_flow(
        1, print, splitters=2, counters=3, splitter_per_s=None, counter_per_s=None, wiring=wiring
    )
    times_s = accumulate(pause_s for pause_s, _ in paused)
    items = [entry for time_s, (_, words) in zip(times_s, paused, strict=True) for entry in at(time_s, words)]
    result = run(counting, {"source": items})
    added: Counter[str] = Counter()
    for arrival in result.arrivals["sink"]:
        assert arrival.item, "nothing is sent when nothing was counted"
        assert arrival.at_s == result.seconds or arrival.at_s.is_integer()
        added.update(arrival.item)
    assert added == Counter(word for _, words in paused for word in words.split())


def test_ten_splitters_and_twenty_counters_are_just_enough() -> None:
    assert 9 < SENTENCES_PER_S / SPLITTER_PER_S < 10
    assert 19 < SENTENCES_PER_S * WORDS_PER_SENTENCE / COUNTER_PER_S < 20


@pytest.mark.parametrize("wiring", ["round_robin", "key"])
def test_the_graph_is_that_of_the_paper(wiring: Wiring) -> None:
    graph = wordcount_flow(10, print, splitters=2, counters=3, wiring=wiring).graph()
    assert [task.name for task in graph.tasks] == ["source", "splitter", "counter", "sink"]
    assert graph.stream("splitter->counter").wiring == wiring
    assert graph.constraints[0].sequence == ("source->splitter", "splitter", "splitter->counter", "counter")


def test_the_application_is_a_valid_flow() -> None:
    graph = flow(splitters=3, counters=4).graph()
    assert graph.task("splitter").parallelism.initial == 3
    assert graph.task("counter").parallelism.initial == 4


@pytest.mark.spark
@pytest.mark.parametrize("wiring", ["round_robin", "key"])
def test_words_are_counted_on_spark_while_counters_come_and_go(wiring: Wiring, tmp_path: Path) -> None:
    sentences = 400
    board = tmp_path / "counts.json"
    counting = wordcount_flow(
        200,
        Board(board),
        splitters=2,
        counters=penstock.elastic(1, 4, initial=4),
        splitter_per_s=None,
        counter_per_s=2000,
        wiring=wiring,
        seconds=sentences / 200,
        seed=7,
    )
    job = penstock.run(counting, policy=None)
    if not job.await_termination(1):
        job.set_active("counter", 2)
    assert job.await_termination(60)
    expected = Counter(word for index in range(sentences) for word in sentence(0, index, 7).split())
    assert read_board(board) == dict(expected)
