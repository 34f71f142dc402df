"""The fewest replicas that keep all bounds."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.penstock.choice import Bound, Queue, choose, keeps
from penstock.policy.penstock.waiting import Fit, Wait


def queue(rate_per_s: float, service_ms: float, *, least: int = 1, most: int | None = 12) -> Queue:
    return Queue(Wait(service_ms, 1.0, rate_per_s, None, 1.0, 1, 0.0, Fit(), 5.0), least, most)


def bound(latency_ms: float, *queues: str, name: str = "c", sigmas: float = 0.0) -> Bound:
    return Bound(name, 10.0, queues, latency_ms, 1.0, sigmas)


def takes_ms(queues: dict[str, Queue], replicas: dict[str, int]) -> float:
    return 10.0 + sum(queues[name].wait.wait_ms(count)[0] for name, count in replicas.items())


@settings(max_examples=30)
@given(st.tuples(st.floats(10, 300), st.floats(10, 300)), st.floats(15, 200))
def test_no_other_numbers_are_fewer(rates: tuple[float, float], latency_ms: float) -> None:
    queues = {"a": queue(rates[0], 20.0), "b": queue(rates[1], 30.0)}
    choice = choose(queues, [bound(latency_ms, "a", "b")])
    if choice.infeasible:
        return
    assert takes_ms(queues, choice.replicas) <= latency_ms + 1e-6
    fewest = min(
        sum(counts)
        for counts in itertools.product(range(1, 13), repeat=2)
        if takes_ms(queues, dict(zip(queues, counts, strict=True))) <= latency_ms
        and all(queues[name].wait.busy(1) <= 0.97 * n for name, n in zip(queues, counts, strict=True))
    )
    assert sum(choice.replicas.values()) == fewest


def test_limits_and_backlogs_count() -> None:
    choice = choose({"a": queue(10.0, 20.0, least=5)}, [bound(500.0, "a")])
    assert choice.replicas == {"a": 5}
    choice = choose({"a": queue(400.0, 20.0, most=6)}, [bound(100.0, "a")])
    assert choice.replicas == {"a": 6}
    assert choice.infeasible == {"c": "it would need more replicas of a"}


def test_a_replica_that_gains_hardly_anything_is_not_spent() -> None:
    choice = choose({"a": queue(10.0, 20.0, most=None)}, [bound(10.01, "a")])
    assert choice.replicas["a"] <= 8
    assert "replicas do not help" in choice.infeasible["c"]


def test_what_one_bound_asks_for_is_there_for_the_others() -> None:
    queues = {"a": queue(100.0, 20.0), "b": queue(100.0, 20.0)}
    both = choose(queues, [bound(60.0, "a", "b", name="long"), bound(15.0, "a", name="short")])
    alone = choose(queues, [bound(15.0, "a", name="short")])
    assert both.replicas["a"] >= alone.replicas["a"]
    assert both.predicted_ms["long"] <= 60.0
    assert both.predicted_ms["short"] <= 15.0


def test_without_a_bound_the_work_is_done() -> None:
    assert choose({"a": queue(100.0, 20.0)}, []).replicas == {"a": 3}


def test_what_cannot_do_its_work_makes_nobody_else_larger() -> None:
    queues = {"a": queue(400.0, 20.0, most=6), "b": queue(100.0, 20.0, most=None)}
    choice = choose(queues, [bound(60.0, "a", "b")])
    assert choice.replicas["a"] == 6
    assert choice.replicas["b"] <= 5
    assert choice.infeasible == {"c": "it would need more replicas of a"}


def test_replicas_keep_a_bound_or_not() -> None:
    queues = {"a": queue(100.0, 20.0, least=3)}
    assert keeps(queues, [bound(60.0, "a")], {"a": 3, "other": 1})
    assert not keeps(queues, [bound(11.0, "a")], {"a": 3})
    assert not keeps(queues, [bound(60.0, "a")], {"a": 2}), "the backlog"


def test_of_what_is_broadcast_more_replicas_do_more() -> None:
    """Half of 100 items/s of 20 ms goes to one replica now, and to each of any number."""
    half = Queue(Wait(20.0, 1.0, 48.0, None, 1.0, 1, 0.0, Fit(), 5.0, copied=0.5), 1, None)
    choice = choose({"a": half}, [bound(60.0, "a")])
    assert 2 <= choice.replicas["a"] <= 4
    assert takes_ms({"a": half}, choice.replicas) <= 60.0
    full = Queue(Wait(20.0, 1.0, 400.0, None, 1.0, 4, 0.0, Fit(), 5.0, copied=0.5), 1, None)
    choice = choose({"a": full}, [bound(60.0, "a")])
    assert choice.replicas == {"a": 4}
    assert choice.infeasible
