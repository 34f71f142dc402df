"""From topic to topic: a real broker at both ends of a flow on Spark."""

import contextlib
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io.kafka_records import ID_HEADER
from penstock.io.kafka_transactions import KafkaCommitter
from penstock.testing import KafkaBroker
from penstock.wire.ids import origin_of
from tests.kafka_cluster import PASSWORD, consumed, count, new_topic, produce, seen

if TYPE_CHECKING:
    from penstock.io.kafka_spool import Spooled
    from penstock.stats.snapshot import TaskStats

pytestmark = pytest.mark.spark

SOON_S = 60.0


def doubled(item: int) -> int:
    return 2 * item


def flow_between(
    broker: KafkaBroker, source: str, sink: str, replicas: int | None = None, **options: Any
) -> ps.Flow:
    flow = ps.Flow("bridge", ids=True)
    numbers = flow.source(
        ps.kafka(source, servers=broker.servers, value="json"),
        name="numbers",
        on_error="dead_letter",
        replicas=replicas,
    )
    results = numbers.map(doubled)
    results.sink(ps.to_kafka(sink, servers=broker.servers, value="json", **options), name="results")
    return flow


def numbers(first: int, last: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, last)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.05)


def arrived(broker: KafkaBroker, topic: str) -> list[int]:
    return [json.loads(message.value()) for message in consumed(broker, topic)]


def test_stopped_and_started_again_everything_is_there_once(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    source, sink = new_topic(broker, 2), new_topic(broker)
    produce(broker, source, [*numbers(0, 300), b"no number", *numbers(300, 400)])
    letters = tmp_path / "letters"

    def run(until_there: int, replicas: int | None) -> None:
        flow = flow_between(broker, source, sink, replicas)
        job = ps.run(flow, checkpoint=tmp_path / "checkpoint", dead_letters=letters)
        until(lambda: count(broker, sink) >= until_there)
        job.stop()

    run(400, replicas=None)
    produce(broker, source, numbers(400, 500), partition=1)
    run(500, replicas=1)
    messages = consumed(broker, sink)
    assert sorted(json.loads(message.value()) for message in messages) == [
        2 * number for number in range(500)
    ]
    ids = [dict(message.headers())[ID_HEADER].split(b".") for message in messages]
    origins = [origin_of("numbers", f"{source}-{partition}") for partition in (0, 1)]
    offsets = Counter((int(origin), int(offset)) for origin, offset, *_ in ids)
    assert offsets == Counter(
        [(origins[0], offset) for offset in range(401) if offset != 300]
        + [(origins[1], o) for o in range(100)]
    )
    (letter,) = [json.loads(line) for line in (letters / "numbers-0.jsonl").read_text().splitlines()]
    assert "offset=300" in letter["item"]
    assert "no number" in letter["item"]


def test_workers_that_are_killed_lose_nothing(spark: SparkSession, broker: KafkaBroker) -> None:
    """The sink holds records back for seconds, so that what it has taken and not delivered dies with it."""
    source, sink = new_topic(broker), new_topic(broker)
    job = ps.run(flow_between(broker, source, sink, config={"linger.ms": 2000}))
    try:
        produce(broker, source, numbers(0, 50))
        until(lambda: job.metrics().tasks["results"].items_in >= 50)
        assert arrived(broker, sink) == []  # taken, and on nobody's disk
        for task in ("results", "numbers"):
            for pid in job.metrics().tasks[task].processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        produce(broker, source, numbers(50, 60))
        until(lambda: {*arrived(broker, sink)} == {2 * number for number in range(60)})
        assert job.metrics().tasks["results"].restarts == 1
    finally:
        job.stop()
    by_id: dict[bytes, set[bytes]] = {}
    for message in consumed(broker, sink):
        by_id.setdefault(dict(message.headers())[ID_HEADER], set()).add(message.value())
    assert len(by_id) == 60
    assert all(len(values) == 1 for values in by_id.values())


def test_exactly_once_though_the_driver_ends_before_it_sends_and_before_it_commits(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, sink = new_topic(broker), new_topic(broker)
    flow = flow_between(broker, source, sink, exactly_once=True)
    settings: dict[str, Any] = {"checkpoint": tmp_path, "commit": "0.2 s", "policy": None}

    def made() -> list[int]:
        return [json.loads(message.value()) for message in seen(broker, sink)]

    ended: list[int] = []
    send = KafkaCommitter._send

    def ends(committer: KafkaCommitter, number: int, files: "dict[Path, Spooled]") -> None:
        """Once, between the entry in the log and the transaction."""
        if made() and not ended:
            ended.append(number)
            raise ConnectionError("no route")
        send(committer, number, files)

    monkeypatch.setattr(KafkaCommitter, "_send", ends)
    job = ps.run(flow, **settings)
    produce(broker, source, numbers(0, 100))
    until(lambda: len(made()) == 100)
    produce(broker, source, numbers(100, 200))
    until(lambda: len(made()) == 200)
    until(lambda: job.metrics().restarts == len(ended) == 1)
    produce(broker, source, numbers(200, 250))
    job.abandon()
    again = ps.run(flow, **settings)
    produce(broker, source, numbers(250, 300))
    until(lambda: len(made()) >= 300)
    again.stop()
    assert made() == [2 * number for number in range(300)]
    assert not [*(tmp_path / "epochs" / "prepared").iterdir()]


def test_partitions_and_topics_that_are_added_are_read(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    broker.create_topic("added-1")
    sink = new_topic(broker)
    notices: list[str] = []

    def start() -> ps.Job:
        flow = ps.Flow("grows", ids=True)
        topics = ps.kafka(
            re.compile(r"added-\d"), servers=broker.servers, value="json", start="latest", discover="500 ms"
        )
        read = flow.source(topics, name="numbers", replicas=2)
        read.sink(ps.to_kafka(sink, servers=broker.servers, value="json"), name="out")
        return ps.run(flow, checkpoint=tmp_path, on_notice=notices.append)

    job = start()
    try:
        produce(broker, "added-1", numbers(0, 10))
        until(lambda: count(broker, sink) >= 10)
        broker.add_partitions("added-1", 2)
        broker.create_topic("added-2", 2)
        for topic, partition, first in [("added-1", 1, 10), ("added-2", 0, 20), ("added-2", 1, 30)]:
            produce(broker, topic, numbers(first, first + 10), partition=partition)
        until(lambda: count(broker, sink) >= 40)
        told = [notice for notice in notices if "also reads" in notice]
        assert ", ".join(told).count("added-") == 3
    finally:
        job.stop()
    broker.add_partitions("added-1", 3)
    produce(broker, "added-1", numbers(40, 50), partition=2)
    job = start()
    until(lambda: count(broker, sink) >= 50)
    job.stop()
    assert sorted(arrived(broker, sink)) == [*range(50)], "also what came to a partition while nobody read"


def test_the_lag_of_the_broker_is_that_of_the_source(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    """Records that are too large for many of them to be on their way, so that the source is held back."""
    source = new_topic(broker)
    more = tmp_path / "more"
    produce(broker, source, [b"x" * 100_000] * 60)

    def slow(item: Any) -> None:
        while not more.exists():
            time.sleep(0.01)

    flow = ps.Flow("behind")
    read = flow.source(ps.kafka(source, servers=broker.servers), name="numbers", catch_up="30 s")
    read.sink(slow, name="slow")
    job = ps.run(flow, measure_every="500 ms")
    seen: list[TaskStats] = []

    def look() -> float | None:
        time.sleep(1.0)
        seen.append(job.snapshot(1.0).tasks["numbers"])
        return seen[-1].lag_items

    try:
        until(lambda: bool(look()))
        assert seen[-1].catch_up_s == 30
        produce(broker, source, [b"x" * 100_000] * 30)
        more.touch()
        until(lambda: look() == 0)
    finally:
        job.abandon()
    behind = [one for one in seen if one.lag_items]
    came = [one.rate_total or 0.0 for one in seen[seen.index(behind[0]) + 1 :]]
    assert sum(came) == pytest.approx(30, abs=2), "what arrived since, whenever it was read"


def test_a_source_that_falls_behind_gets_replicas(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    """A replica reads less than a thousand records a second, and four thousand are there."""
    source, sink = new_topic(broker, 4), new_topic(broker)
    for partition in range(4):
        produce(broker, source, numbers(1000 * partition, 1000 * partition + 1000), partition=partition)

    def slowly(value: bytes) -> int:
        time.sleep(0.001)
        return int(value)

    flow = ps.Flow("behind")
    read = flow.source(
        ps.kafka(source, servers=broker.servers, value=slowly),
        name="numbers",
        replicas=ps.elastic(1, 8),
        catch_up="2 s",
    )
    read.sink(ps.to_kafka(sink, servers=broker.servers, value="json"), name="out")
    job = ps.run(
        flow, checkpoint=tmp_path, policy="ds2", interval="1 s", settings="guards.warm_up_s=0", commit="1 min"
    )
    until(lambda: job.metrics().tasks["out"].items_in >= 4000)
    replicas = job.metrics().tasks["numbers"].active
    job.stop()
    assert 2 <= replicas <= 4, "no more than one for each partition"
    assert sorted(arrived(broker, sink)) == [*range(4000)]
    assert job.control is not None
    changed = [one.decision for one in job.control.decisions() if one.effect is not None]
    whys = [reason.why for decision in changed for reason in decision.reasons if reason.task == "numbers"]
    assert any(re.match(r"numbers must read \d+.* items/s and a replica can read \d+", why) for why in whys)
    assert any("items behind: to drain them in 2 s" in why for why in whys)


def test_the_password_is_in_nothing_that_a_flow_leaves(
    spark: SparkSession,
    broker: KafkaBroker,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "penstock")
    source, sink = new_topic(broker), new_topic(broker)
    produce(broker, source, [b"1", b"x"])
    (tmp_path / "password").write_text(PASSWORD)
    config = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "penstock",
        "sasl.password": ps.secret(file=tmp_path / "password"),
    }
    flow = ps.Flow("guarded")
    places: dict[str, Any] = {"servers": broker.secured_servers, "config": config}
    read = flow.source(ps.kafka(source, value="json", **places), name="numbers", on_error="dead_letter")
    read.sink(ps.to_kafka(sink, value="json", **places), name="results")
    flow.constrain("1 s", ["numbers->results"])
    left = tmp_path / "left"
    left.mkdir()
    job = ps.run(
        flow,
        checkpoint=left / "checkpoint",
        dead_letters=left / "letters",
        recording=left / "recording.jsonl",
        interval="1 s",
    )
    until(lambda: arrived(broker, sink) == [1])
    until(lambda: bool(list(left.glob("letters/*"))) and (left / "recording.jsonl").exists())
    job.stop()
    said = capfd.readouterr()
    assert PASSWORD not in flow.explain() + said.out + said.err + caplog.text + repr(flow.graph())
    files = [path for path in left.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_what_the_broker_refuses_fails_the_flow_in_words(spark: SparkSession, broker: KafkaBroker) -> None:
    source, sink = new_topic(broker), new_topic(broker, config={"max.message.bytes": 1000})
    produce(broker, source, [b'"%s"' % (b"x" * 5000)])
    job = ps.run(flow_between(broker, source, sink))
    with pytest.raises(ps.JobFailed, match=rf'task "results".*a record is too large for topic "{sink}"'):
        job.await_termination(60)
