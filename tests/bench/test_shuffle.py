"""What `penstock bench shuffle` makes of its turns; the turns are played by the test."""

from typing import Any

import pytest

from penstock.bench import shuffle
from penstock.bench.harness import Result
from penstock.bench.shuffle import OURS, SPARKS, Taken, take_turns
from penstock.bench.shuffle_contestant import Contestant, Cost, Gaps, Hop, Pool

GOOD: dict[tuple[str, str], Any] = {
    (OURS, "cpu"): Cost(90.0, 3000.0, 0),
    (SPARKS, "cpu"): Cost(200.0, 3000.0, 0),
    (OURS, "hop"): Hop(0.2, 0.3),
    (SPARKS, "jvm_hop"): Hop(0.2),
    (OURS, "throughput"): Cost(20.0, 60_000.0, 0),
    (SPARKS, "throughput"): Cost(20.0, 40_000.0, 0),
    (OURS, "threads"): 4,
    (SPARKS, "threads"): 400,
    (OURS, "small_pool"): Pool(0.02, 1),
    (OURS, "large_pool"): Pool(0.04, 1),
    (OURS, "boundary"): Gaps([100.0, None]),
    (SPARKS, "sparks_boundary"): Gaps([130.0]),
}


def played(changed: dict[tuple[str, str], Any], turns: int = 1) -> tuple[Result, list[str]]:
    asked: list[str] = []

    def ask(who: str, turn: str, kind: type[Any]) -> Any:
        asked.append(who)
        answer = {**GOOD, **changed}[who, turn]
        assert isinstance(answer, kind)
        return answer

    taken = Taken()
    for number in range(turns):
        take_turns(taken, ask, [OURS, SPARKS] if number % 2 == 0 else [SPARKS, OURS])
    return shuffle.summarise(taken), asked


def failed(**answer: Any) -> list[str]:
    """The checks that fail if one answer is another."""
    ((turn, value),) = answer.items()
    who = next(who for who, known in GOOD if known == turn)
    return [check.name for check in played({(who, turn): value})[0].checks if not check.ok]


def test_all_bars_are_kept_where_they_are_reached() -> None:
    result, _ = played({}, turns=2)
    assert result.ok
    assert result.figures["threads_added"] == {OURS: [4.0, 4.0], SPARKS: [400.0, 400.0]}


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        ({"cpu": Cost(91.0, 3000.0, 0)}, "JVM's CPU per item, two hops / Spark's shuffle"),
        ({"cpu": Cost(None, 3000.0, 0)}, "JVM's CPU per item, two hops / Spark's shuffle"),
        ({"cpu": Cost(90.0, 2600.0, 0)}, "valid run: lowest rate kept, items/s"),
        ({"cpu": Cost(90.0, 3000.0, 1)}, "items lost, duplicated or reordered"),
        ({"hop": Hop(0.21, 0.3)}, "one hop / JVM-only hop"),
        ({"hop": Hop(0.2, 2.1)}, "valid run: worst source lag p99, ms"),
        ({"throughput": Cost(20.0, 59_000.0, 0)}, "items/s at once / Spark's shuffle"),
        ({"threads": 101}, "threads added / Spark's shuffle"),
        ({"large_pool": Pool(0.05, 1)}, "cores of 63 idle replicas more"),
        ({"large_pool": Pool(0.04, 2)}, "processes of a pool of 64"),
        ({"boundary": Gaps([131.0])}, "boundary gap / Spark's own"),
        ({"boundary": Gaps([100.0], 1)}, "items lost, duplicated or reordered"),
    ],
)
def test_a_bar_that_is_missed_fails_alone(answer: dict[str, Any], check: str) -> None:
    assert failed(**answer) == [check]


def test_contestants_take_turns() -> None:
    _, asked = played({}, turns=2)
    assert asked[:2] == [OURS, SPARKS]
    assert asked[len(asked) // 2 :][:2] == [SPARKS, OURS]


def test_every_turn_that_is_asked_for_can_be_answered() -> None:
    assert all(callable(getattr(Contestant, turn)) for _, turn in GOOD)
