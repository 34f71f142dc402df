"""What the dashboard costs a flow, and how soon a page has what is new; to be run where nothing else does."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from tests.dashboard.chromium import Browser, browser
from tests.spark.test_dashboard import flow

OF_DASHBOARD = ("penstock-dashboard", "penstock-watching", "AnyIO worker")
WATCHED_S = 30.0
MOST_SHARE = 0.02
WITHIN_S = 1.0
# When each interval was on the screen, by its number; the page writes the number into its body.
NOTE = """window.shownAt = {};
new MutationObserver(() => { shownAt[document.body.dataset.shown] ??= Date.now() / 1000; })
  .observe(document.body, { attributeFilter: ["data-shown"] });"""
AGES = """fetch("/api/columns").then((answer) => answer.json()).then((told) => Object.entries(shownAt)
  .map(([number, at]) => at - told.times[number - told.first]))"""


@pytest.fixture
def chrome(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as opened:
        yield opened


def cpu_s() -> float:
    """Of the threads of the dashboard."""
    clocks = [
        time.pthread_getcpuclockid(thread.ident)
        for thread in threading.enumerate()
        if thread.name.startswith(OF_DASHBOARD) and thread.ident is not None
    ]
    assert clocks
    return sum(map(time.clock_gettime, clocks))


@pytest.mark.spark
@pytest.mark.slow
def test_a_page_costs_little_and_has_what_is_new_within_a_second(
    spark: SparkSession, chrome: Browser
) -> None:
    job = ps.run(flow(), policy="nephele", interval="1 s", dashboard="127.0.0.1:0")
    try:
        page = chrome.page(job.dashboard_url or "")
        page.until(
            "document.querySelectorAll('canvas').length > 5 && Number(document.body.dataset.shown) > 5"
        )
        page.run(NOTE)
        before_s, began_s = cpu_s(), time.monotonic()
        time.sleep(WATCHED_S)
        share = (cpu_s() - before_s) / (time.monotonic() - began_s)
        ages_s = sorted(page.run(AGES))
        assert page.problems() == []
    finally:
        job.stop()
    print(
        f"{100 * share:.2f} % of a core; {len(ages_s)} intervals shown, the slowest after {ages_s[-1]:.2f} s"
    )
    assert len(ages_s) > WATCHED_S / 2
    assert share < MOST_SHARE
    assert ages_s[-1] < WITHIN_S
