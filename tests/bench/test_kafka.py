"""Bench `kafka` without Spark: its clients, and what it makes of turns."""

from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from penstock.bench import kafka, precedence
from penstock.bench.harness import Result
from penstock.bench.kafka_clients import RECORD_BYTES, Arrived, Listener, PacedProducer, Sent, fill, record
from penstock.bench.kafka_contestants import PEERS, connector_version
from penstock.bench.peer_environments import PeerMissingError
from penstock.testing import KafkaBroker
from penstock.testing.kafka_jars import pinned
from tests.kafka_cluster import new_topic

TURN = kafka.Turn(
    p50_ms=2.0,
    p99_ms=9.0,
    cpu_us=300.0,
    records=4000,
    lost=0,
    doubled=0,
    late_p99_ms=0.4,
    precedence="real time",
)
LATE = replace(TURN, late_p99_ms=4.6)


def measured(real_time_ms: float = 1.5, micro_ms: float = 200.0) -> kafka.Measured:
    return kafka.Measured(
        turns={
            kafka.BARE: [replace(TURN, p50_ms=1.0)],
            kafka.OWN: [TURN],
            kafka.REAL_TIME: [replace(TURN, p50_ms=real_time_ms)],
            kafka.MICRO: [replace(TURN, p50_ms=micro_ms)],
        },
        highest_per_s={kafka.OWN: [20_000.0], kafka.OWN_BATCHED: [49_000.0, 70_000.0, 90_000.0]},
    )


def failed(result: Result) -> list[str]:
    return [check.name for check in result.checks if not check.ok]


def test_the_bars() -> None:
    result = kafka.summarise(measured())
    assert result.ok
    assert result.figures["clients_precedence"] == ["real time"]
    assert failed(kafka.summarise(measured(real_time_ms=1.3))) == ["p50 / JVM-only real-time query"]
    assert failed(kafka.summarise(measured(micro_ms=19.0))) == ["p50 / micro-batches"]
    slow = measured()
    slow.highest_per_s[kafka.OWN_BATCHED] = [49_000.0]
    assert failed(kafka.summarise(slow)) == ["records/s of 100 bytes, batched"]
    bad = measured()
    bad.turns[kafka.OWN] = [replace(LATE, lost=1, doubled=2)]
    assert failed(kafka.summarise(bad)) == [
        "valid run: worst lag of the producer p99, ms",
        "records lost",
        "records duplicated",
    ]


@pytest.mark.parametrize(
    ("found", "counted", "repeated"),
    [
        ([TURN], TURN, []),
        ([LATE, TURN], TURN, [LATE]),
        ([LATE, LATE, LATE, TURN], LATE, [LATE, LATE]),
        ([LATE, None, TURN], TURN, [LATE, None]),
        ([None, None, None, TURN], None, [None, None]),
    ],
)
def test_a_turn_whose_producer_was_late_or_that_is_empty_is_repeated_and_told(
    found: list[kafka.Turn | None], counted: kafka.Turn | None, repeated: list[kafka.Turn | None]
) -> None:
    contest, said = measured(), list[str]()
    contest.turns[kafka.OWN] = []
    coming = iter(found)
    contest.take_turn(kafka.OWN, lambda: next(coming), said.append)
    assert contest.turns[kafka.OWN] == [counted]
    assert contest.repeated.get(kafka.OWN, []) == repeated
    assert sum("the producer was 4.6 ms late" in line for line in said) == repeated.count(LATE)
    assert sum("nothing came, so repeated" in line for line in said) == repeated.count(None)
    result = kafka.summarise(contest)
    assert result.figures["repeated_since_not_valid"].get(kafka.OWN, []) == [
        None if one is None else one.figures() for one in repeated
    ]
    assert ("records lost" in failed(result)) == (None in found), "of ours nothing may stay away"
    assert ("valid run: worst lag of the producer p99, ms" in failed(result)) == (counted == LATE)


def test_what_a_turn_lost_that_was_repeated_is_lost() -> None:
    lossy = measured()
    lossy.repeated = {kafka.OWN: [replace(LATE, lost=3)]}
    assert failed(kafka.summarise(lossy)) == ["records lost"]


def _fail(contest: kafka.Measured, name: str) -> None:
    with contest.told(name, print):
        raise RuntimeError("no connector\nat java.lang.Thread")


def test_who_cannot_take_part_is_told_and_its_check_fails() -> None:
    lacking = measured()
    lacking.turns[kafka.REAL_TIME] = []
    _fail(lacking, kafka.REAL_TIME)
    result = kafka.summarise(lacking)
    assert result.figures["spark_real_time_skipped"] == "RuntimeError: no connector"
    assert kafka.REAL_TIME not in result.figures["at_1000_records_per_s"]
    assert failed(result) == ["p50 / JVM-only real-time query"]
    with pytest.raises(RuntimeError):
        _fail(lacking, kafka.OWN)


def test_only_those_that_were_asked_for_have_checks() -> None:
    alone = measured()
    del alone.turns[kafka.REAL_TIME]
    assert failed(kafka.summarise(alone)) == ["p50 / JVM-only real-time query"]
    result = kafka.summarise(alone, only=(kafka.MICRO,))
    assert result.ok
    assert "p50 / micro-batches" in [check.name for check in result.checks]


def test_peers_that_are_not_installed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take minutes to install, so that is done only if they are asked for."""

    def cannot(_: object) -> Path:
        raise PeerMissingError("no index")

    spark = "a session"
    monkeypatch.setattr(kafka, "connector_session", lambda: spark)
    monkeypatch.setattr(kafka, "is_made", lambda _: False)
    monkeypatch.setattr(kafka, "python_of", cannot)
    contest = kafka.Measured()
    assert [*kafka.contestants((), contest)] == [kafka.OWN, kafka.REAL_TIME, kafka.MICRO]
    assert contest.skipped == {
        name: f"not installed; penstock bench kafka --only {name} does that" for name in PEERS
    }
    contest = kafka.Measured()
    assert [*kafka.contestants(["bytewax"], contest)] == [kafka.OWN]
    assert contest.skipped == {"bytewax": "cannot be installed: no index"}
    monkeypatch.setattr(kafka, "python_of", lambda _: Path("python"))
    assert [*kafka.contestants(["bytewax"], contest)] == [kafka.OWN, "bytewax"]


def test_nothing_measured_fails() -> None:
    nothing = measured()
    nothing.turns[kafka.OWN] = [None]
    assert {"p50 / micro-batches", "records lost"} <= {*failed(kafka.summarise(nothing))}


def arrived(numbers: list[int], late_ms: float = 2.0) -> Arrived:
    due_ns = numpy.array(numbers, dtype=numpy.int64) * 1_000_000
    return Arrived(numpy.array(numbers, dtype=numpy.int64), due_ns, due_ns + round(late_ms * 1e6))


def test_a_turn_counts_what_was_due_after_the_warm_up_and_misses_none() -> None:
    length = kafka.Length(turn_s=4, warm_up_s=2, turns=1, full=1, drain_s=1)
    numbers = [number for number in range(6001) if number != 17]
    late_ns = numpy.full(6000, 300_000)
    late_ns[:1000] = 10**10
    found = kafka.turn(arrived([*numbers, 5999]), Sent(late_ns, "real time"), length, cpu_s=1.2)
    assert found is not None
    assert (found.p50_ms, found.lost, found.doubled) == (2.0, 1, 1)
    assert found.records == pytest.approx(4000, abs=3)
    assert found.cpu_us == pytest.approx(300)
    assert found.late_p99_ms == pytest.approx(0.3), "only what was sent after the warm-up counts"
    assert kafka.turn(arrived([]), Sent(late_ns[:0], "none"), length, cpu_s=0.0) is None


def test_the_rate_of_a_drained_topic_is_that_of_its_middle() -> None:
    at_ns = numpy.concatenate([numpy.zeros(100), numpy.arange(800) * 1_000_000, numpy.full(100, 10**12)])
    numbers = numpy.arange(1000)
    drained = Arrived(numbers, numpy.zeros(1000, dtype=numpy.int64), at_ns.astype(numpy.int64))
    assert drained.per_s is not None
    assert replace(drained, arrived_ns=at_ns[:1].astype(numpy.int64)).per_s is None
    steady = Arrived(numbers, numbers, numbers * 1_000_000)
    assert steady.per_s == pytest.approx(1000)


def test_the_connector_is_pinned() -> None:
    from penstock.bench import kafka_contestants

    jars = pinned(kafka_contestants._CONNECTOR)
    assert connector_version().startswith("4.")
    assert all(len(jar.sha256) == 64 for jar in jars)


def test_the_clients_send_at_even_times_and_note_all_that_comes(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    fill(broker.servers, topic, 1)
    with (
        Listener(broker.servers, topic, prompt=True) as listener,
        PacedProducer(broker.servers, topic, 1000.0) as producer,
    ):
        assert producer.begun()
        assert listener.begun()
        sent = producer.stop()
        came = listener.await_all(sent.records, 10.0)
    assert (came.missing(sent.records), came.doubled) == (0, 0)
    assert came.due_ns[0] == 0, "the record that shows that all is ready"
    assert set(numpy.diff(came.due_ns[1:])) <= {1_000_000}
    assert (came.arrived_ns >= came.due_ns).all()
    assert len(record(7)) == RECORD_BYTES
    assert sent.precedence in (precedence.REAL_TIME, precedence.NICE, precedence.NONE)


def test_a_full_topic_holds_every_record_once(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    fill(broker.servers, topic, 5000)
    with Listener(broker.servers, topic) as listener:
        came = listener.await_many(5000, 10.0)
    assert (came.missing(5000), came.gaps, came.doubled) == (0, 0, 0)
    assert replace(came, number=came.number[came.number != 17]).gaps == 1
