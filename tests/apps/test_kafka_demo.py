"""The demo with a broker at both ends."""

import pytest
from typer.testing import CliRunner

from penstock.apps.kafka_demo import Outcome, kafka_demo
from penstock.cli import demo_kafka
from penstock.cli.main import app
from penstock.testing import KafkaBroker
from penstock.testing.kafka_jars import JarsError


def test_what_never_arrived_is_lost_and_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(sent=10, doubled=1, times_ms=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    monkeypatch.setattr(demo_kafka, "kafka_demo", lambda seconds, rate, say: outcome)
    ran = CliRunner().invoke(app, ["demo-kafka"])
    assert ran.exit_code == 1
    assert "lost: 1, doubled: 1" in ran.output
    assert "p50 5.0 ms, p99 8.9 ms" in ran.output


def test_jars_that_cannot_be_fetched_are_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(seconds: float, rate: float, say: object) -> Outcome:
        raise JarsError("the jars of Kafka 4.1.1 cannot be fetched: no network")

    monkeypatch.setattr(demo_kafka, "kafka_demo", unreachable)
    ran = CliRunner().invoke(app, ["demo-kafka"])
    assert ran.exit_code == 1
    assert "penstock: the jars of Kafka 4.1.1 cannot be fetched: no network" in ran.output


@pytest.mark.slow
@pytest.mark.spark
def test_nothing_is_lost(broker: KafkaBroker) -> None:
    said: list[str] = []
    assert kafka_demo(3.0, 200.0, said.append).lost == 0
    assert said == ["a broker and Spark start", "records flow for 3 s"]
