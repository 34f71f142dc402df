"""Metrics as Prometheus sees them: a real scrape of a running flow."""

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

import penstock as ps
from penstock.extras import MissingExtraError
from penstock.observe.metrics_server import metrics_address
from tests.spark.items import Item, make_item

Labels = tuple[tuple[str, str], ...]


def same(item: Item) -> Item:
    return item


def drop(item: Item) -> None:
    """The end."""


def flow() -> ps.Flow:
    made = ps.Flow("scraped")
    numbers = made.source(ps.paced(make_item, 400), name="numbers")
    numbers.batched("3 ms").map(same, name="work", parallelism=ps.elastic(1, 4, initial=2)).sink(
        drop, name="drop"
    )
    made.constrain("50 ms", ["numbers->work", "work", "work->drop"], name="fast")
    return made


def scrape(url: str) -> dict[tuple[str, Labels], float]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def scrapes(url: str) -> Iterator[Callable[..., float | None]]:
    """Ask by name and label, again and again, some seconds apart."""
    for _ in range(20):
        time.sleep(1.2)
        values = scrape(url)
        yield lambda name, values=values, **labels: values.get((name, tuple(sorted(labels.items()))))


@pytest.mark.spark
def test_a_running_flow_is_scraped(spark: SparkSession) -> None:
    job = ps.run(flow(), sampling=0.5, measure_every="0.5 s", policy="static", interval="1 s", metrics=0)
    try:
        url = job.metrics_url
        assert url is not None
        for value in scrapes(url):
            if (value("penstock_task_items_in_total", task="drop") or 0) > 200:
                break
        assert url.startswith("http://127.0.0.1:")
        look_at(value)
        assert value("penstock_decisions_total") in (len(job.decisions()) - 1, len(job.decisions()))
    finally:
        job.stop()
    with pytest.raises(urllib.error.URLError):
        scrape(url)


def look_at(value: Callable[..., float | None]) -> None:
    """Everything an operator asks for is there; what does not exist is absent."""
    assert value("penstock_running") == 1.0
    assert value("penstock_constraint_bound_seconds", constraint="fast") == 0.05
    assert 0 < (value("penstock_constraint_latency_seconds", constraint="fast") or 0) < 5
    assert 0 < (value("penstock_task_items_per_second", task="work") or 0) < 4000
    for gauge in ("utilization_ratio", "queue_wait_seconds", "service_seconds"):
        assert value(f"penstock_task_{gauge}", task="work") is not None
    assert value("penstock_task_replicas", task="work") == 2
    assert value("penstock_task_pool_replicas", task="work") == 4
    assert value("penstock_task_queue_wait_seconds", task="numbers") is None, "a source has no queue"
    assert value("penstock_stream_batch_lifetime_seconds", stream="numbers->work") == 0.003
    assert value("penstock_stream_latency_seconds", stream="numbers->work") is not None
    assert (value("penstock_sink_latency_seconds_count", sink="drop") or 0) > 10


@pytest.mark.spark
def test_a_port_that_is_taken_is_named(spark: SparkSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ps.FlowError, match=f"cannot be served at 127.0.0.1:{port}: Address already"):
            ps.run(flow(), metrics=port)
    assert not spark.streams.active, "a flow without its handle could never be stopped"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (9464, ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:9464", ("::1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
    ],
)
def test_addresses(address: str | int, expected: tuple[str, int]) -> None:
    assert metrics_address(address) == expected


@pytest.mark.parametrize("address", ["", "here", "host:", "1:70000", "-1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ps.FlowError) as refused:
        metrics_address(address)
    assert str(refused.value) == (
        f'"{address}" is no address for metrics; give [HOST:]PORT, for example 9464'
    )


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.extras.find_spec", lambda module: None)
    with pytest.raises(MissingExtraError) as refused:
        metrics_address(9464)
    assert str(refused.value) == "serving metrics needs prometheus_client; install penstock[metrics]"
