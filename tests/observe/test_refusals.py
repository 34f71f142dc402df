"""Connections that executors closed: totals, and who hears of them."""

import json

from penstock.observe.refusals import TOLD_EVERY_S, RefusalNotices
from penstock.observe.reported import Reported
from penstock.wire.reports import Refused


def said(executor: str, count: int) -> dict[str, object]:
    return {"executor": executor, "said": {"refused": {"count": count, "last": f"10.0.0.7: number {count}"}}}


def test_the_last_total_of_each_executor_counts() -> None:
    reported = Reported()
    reported.add(json.dumps([said("0", 1), said("1", 4), said("0", 3)]).encode())
    assert reported.metrics({}, {}).refused == {"0": 3, "1": 4}
    assert reported.refused()["0"] == Refused(3, "10.0.0.7: number 3")


def test_the_first_is_told_at_once_and_the_others_once_a_minute() -> None:
    now_s = 0.0
    notices = RefusalNotices(lambda: now_s)
    assert notices.of({}) == []
    (told,) = notices.of({"0": Refused(1, "10.0.0.7: it does not know the secret")})
    assert "executor 0 has closed 1 connections" in told
    assert "10.0.0.7: it does not know the secret" in told
    now_s = TOLD_EVERY_S - 1
    more = {"0": Refused(9, "10.0.0.8: a second greeting"), "1": Refused(2, "10.0.0.8: a second greeting")}
    (other,) = notices.of(more)
    assert "executor 1 has closed 2" in other
    now_s = TOLD_EVERY_S
    (later,) = notices.of(more)
    assert "executor 0 has closed 9" in later
    now_s = 3 * TOLD_EVERY_S
    assert notices.of(more) == []
