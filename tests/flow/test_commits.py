"""What a commit is, in words."""

from typing import Any

import penstock
from penstock.flow.commits import commits_in_words, stops_for_commits


def numbers(sink: Any) -> penstock.Flow:
    flow = penstock.Flow("f")
    source = flow.source(penstock.paced(lambda partition, index, seed: index, rate=10), name="numbers")
    source.sink(sink, name="out")
    return flow


def test_what_stops_and_what_a_death_costs_is_said() -> None:
    with_marks, in_store, without, deaths = commits_in_words(numbers(print).graph())
    assert with_marks == "with a checkpoint: every 1 s, by marks that travel with the items; nothing stops"
    assert "every 30 s, at boundaries, for which sources stop" in in_store
    assert "every 10 min, at boundaries" in without
    assert deaths.startswith("a worker that ends is replaced, and all goes on")
    assert commits_in_words(numbers(penstock.jsonl("files")).graph())[-1].startswith(
        "if a worker of numbers, out ends, the flow goes back to its last commit"
    )


def test_what_stops_is_told() -> None:
    words = (
        "commits are boundaries, 30 s apart, and sources stop for some tenths of a second for each: it is S3"
    )
    assert stops_for_commits(30_000, "it is S3") == words
