"""The Grafana dashboard and the alert rules name metrics and labels that a flow really has."""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace
from prometheus_client.metrics_core import Metric

from penstock.observe.prometheus import FlowCollector
from penstock.observe.reported import CommitTotals, Metrics
from penstock.stats.snapshot import QueueStats, Snapshot
from penstock.wire.reports import ShuffleHeld
from tests.dashboard.flows import WatchedJob, interval

PLACE = Path(__file__).resolve().parents[2] / "docs" / "grafana"
METRIC = re.compile(r"\bpenstock_\w+")
LABEL = re.compile(r"{{\s*(?:\$labels\.)?(\w+)\s*}}")
# What Prometheus adds to everything it scrapes.
SCRAPED = {"instance", "job"}


class Collector(FlowCollector):
    """Has measured everything already: what was not is absent, and its labels with it."""

    def _look(self) -> Snapshot | None:
        seen = interval(1)
        kept = [replace(one, p99_ms=20.0, held=True) for one in seen.constraints]
        queue = QueueStats(items=3, envelopes=1, bytes=900, age_ms=2.0)
        return replace(seen, constraints=kept, streams=[replace(one, queue=queue) for one in seen.streams])


class Job(WatchedJob):
    """Its executor holds something, and has refused somebody; it has commits by epoch marks."""

    def metrics(self) -> Metrics:
        commits = CommitTotals().committed(7, now_s=1.0, took_ms=90.0, state_bytes={})
        held = {"0": ShuffleHeld(900, 1000)}
        return dataclasses.replace(super().metrics(), shuffle=held, refused={"0": 1}, commits=commits)


def families() -> list[Metric]:
    return list(Collector(Job()).collect())


def samples() -> dict[str, set[str]]:
    """Every name that is scraped, with its labels."""
    found: dict[str, set[str]] = {}
    for family in families():
        names = {
            "counter": [f"{family.name}_total"],
            "summary": [f"{family.name}_sum", f"{family.name}_count"],
        }.get(family.type, [family.name])
        labels = {label for sample in family.samples for label in sample.labels}
        found.update((name, labels) for name in names)
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Every question that is asked, with the words that are shown beside its answers."""
    dashboard = json.loads((PLACE / "penstock.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"], ""
    rules = (PLACE / "alerts.yml").read_text()
    found = re.findall(r"expr: ([^\n]+)\n.*?summary: \"([^\n]+)\"\n", rules, re.DOTALL)
    assert len(found) == rules.count("- alert:")
    yield from found


def test_every_metric_that_is_asked_for_is_there() -> None:
    there = samples()
    asked = list(expressions())
    assert len(asked) > 25
    for expression, words in asked:
        metrics = METRIC.findall(expression)
        assert metrics, expression
        assert set(metrics) <= there.keys(), expression
        labels = set.union(SCRAPED, *(there[name] for name in metrics))
        assert set(LABEL.findall(words)) <= labels, words


def test_every_metric_is_shown_but_plain_totals() -> None:
    shown = {name for expression, _ in expressions() for name in METRIC.findall(expression)}
    assert samples().keys() - shown == {"penstock_task_items_in_total", "penstock_task_items_out_total"}


def test_every_metric_is_documented() -> None:
    page = (PLACE.parent / "metrics.md").read_text()
    assert {name for name in samples() if f"`{name}`" not in page} == set()
