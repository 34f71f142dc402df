"""From runs of the policy `penstock` to figures and checks, without Spark."""

from collections.abc import Sequence

import msgspec

from penstock.apps import twitter
from penstock.bench import control_penstock
from penstock.bench.control_penstock import DAY_S, HIGH_PER_S, LOW_PER_S, Watched
from penstock.bench.control_settings import INTERVAL_S, control_plan
from penstock.control.loop import Cycle
from penstock.stats.snapshot import Snapshot
from tests.bench.controlled import decision, snapshot


def watched(latencies_ms: Sequence[float], testers: Sequence[int] | None = None) -> Watched:
    """A run with these stream latencies; the tester takes 4 ms on top, and there are two streams."""
    seen = [
        snapshot(count, ms)
        for count, ms in zip(testers or [4] * len(latencies_ms), latencies_ms, strict=True)
    ]
    return of(seen)


def of(seen: Sequence[Snapshot]) -> Watched:
    cycles = [
        Cycle(
            number=number,
            at_s=INTERVAL_S * number,
            snapshot=one,
            decision=decision("penstock", one.tasks["tester"].parallelism),
        )
        for number, one in enumerate(seen)
    ]
    return Watched(control_plan("penstock"), cycles, None)


def test_a_climb_is_judged_by_what_was_held() -> None:
    figures, checks = control_penstock.summarise_climb({"penstock": watched([5.0] * 18 + [50.0] * 2)})
    assert figures["penstock"]["held"] == {"c1": 0.9}
    assert figures["penstock"]["over_s"] == {"c1": 2 * INTERVAL_S}
    assert all(check.ok for check in checks)
    _, checks = control_penstock.summarise_climb({"penstock": watched([5.0] * 16 + [50.0] * 4)})
    assert not any(check.ok for check in checks)


def test_replica_seconds_and_changes_are_those_of_all_elastic_tasks() -> None:
    figures = control_penstock.outcome(watched([5.0] * 4, [1, 3, 3, 2]))
    assert figures["replica_seconds"] == 9 * INTERVAL_S
    assert figures["changes"] == 2


def test_of_a_day_the_crowd_counts_by_itself() -> None:
    _, (crowd,) = twitter.day(DAY_S, LOW_PER_S, HIGH_PER_S)
    intervals = round(DAY_S / INTERVAL_S)

    def late(begin_s: float, count: int) -> dict[str, bool]:
        first = round(begin_s / INTERVAL_S) + 1
        latencies = [50.0 if first <= number < first + count else 5.0 for number in range(intervals)]
        _, checks = control_penstock.summarise_tweets({"penstock": watched(latencies)})
        return {check.name: check.ok for check in checks}

    assert list(late(crowd.begin_s, 2).values()) == [True, True]
    assert list(late(crowd.begin_s, 3).values()) == [False, False]
    assert list(late(20.0, 3).values()) == [False, True]


def test_a_percentile_is_judged_by_itself() -> None:
    def with_p95(p95_ms: float) -> Snapshot:
        one = snapshot(4, 5.0)
        bound = msgspec.structs.replace(one.constraints[0], statistic="p95", p95_ms=p95_ms)
        return msgspec.structs.replace(one, constraints=[bound])

    def held(late: int) -> bool:
        seen = [with_p95(19.0)] * (100 - late) + [with_p95(21.0)] * late
        (check,) = control_penstock.summarise_percentile({"penstock": of(seen)})[1]
        return check.ok

    assert held(3)
    assert not held(4)
