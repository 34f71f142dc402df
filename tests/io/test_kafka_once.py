"""Records that are in Kafka exactly once: prepared in files, sent in a transaction that knows its commit."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock
from penstock.epochs.entries import Handle
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.output import Sinks
from penstock.epochs.storage import LocalStorage
from penstock.io.kafka_client import KafkaError
from penstock.io.kafka_once import ToKafkaOnce
from penstock.io.kafka_records import ID_HEADER
from penstock.io.kafka_spool import Spooled, SpoolError
from penstock.io.kafka_transactions import KafkaCommitter
from penstock.io.protocol import FencedError
from penstock.testing import KafkaBroker
from tests.epochs.test_boundary import Quick
from tests.io.sink_context import FakeContext
from tests.kafka_cluster import new_topic, seen


@dataclass
class Known:
    """What the driver knows of a sink."""

    prepared_in: Path
    attempt: str
    task: str = "out"


class Bed:
    """A sink, its files, and what it wrote, as a driver and its workers would use it."""

    def __init__(self, broker: KafkaBroker, place: Path, partitions: int = 1, **more: Any) -> None:
        self.broker, self.place, self.partitions = broker, place, partitions
        self.topic = new_topic(broker, partitions)
        # Groups and transactional ids outlive a test, so that none may have those of another.
        self.checkpoint = self.topic.replace("-", "")
        self.attempt = f"{self.checkpoint}-00000001"
        self.attempts = 0
        self.more: dict[str, Any] = {"value": "text", **more}

    def sink(self) -> ToKafkaOnce:
        return penstock.to_kafka(self.topic, servers=self.broker.servers, exactly_once=True, **self.more)

    def opened(self, replica: int = 0, item_id: tuple[int, ...] | None = None) -> ToKafkaOnce:
        sink = self.sink()
        sink.open(FakeContext("out", replica, attempt=self.attempt, prepared_in=self.place, item_id=item_id))
        return sink

    def prepared(self, epoch: int, *items: str, replica: int = 0) -> str:
        sink = self.opened(replica)
        for item in items:
            sink.write(item)
        description = sink.prepare(epoch)
        assert description is not None
        return description

    def committer(self) -> KafkaCommitter:
        """Of the next attempt."""
        self.attempts += 1
        return self.sink().committer(Known(self.place, f"{self.checkpoint}-{self.attempts:08d}"))

    def seen(self, *, committed: bool = True) -> list[str]:
        found = seen(self.broker, self.topic, self.partitions, committed=committed)
        return [message.value().decode() for message in found]

    def left(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())


def test_readers_see_a_commit_whole_and_each_replica_in_order(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path, partitions=2, key=lambda item: item[0])
    committer = bed.committer()
    first = bed.opened(item_id=(4, 7, 0))
    for number in range(40):
        first.write(f"{'ab'[number % 2]}{number}")
    other = bed.prepared(3, "c1", "c2", replica=1)
    prepared = first.prepare(3)
    assert prepared is not None
    assert first.prepare(4) is None, "nothing was written"
    assert bed.seen(committed=False) == [], "they are in files"
    committer.commit(1, 3, [prepared, other])
    found = bed.seen()
    for key, numbers in (("a", range(0, 40, 2)), ("b", range(1, 40, 2)), ("c", (1, 2))):
        assert [item for item in found if item[0] == key] == [f"{key}{number}" for number in numbers]
    assert len(found) == 42
    ids = [message.headers() for message in seen(broker, bed.topic, 2) if message.key() == b"a"]
    assert ids == [[(ID_HEADER, b"4.7.0")]] * 20
    assert bed.left() == []


def test_a_commit_that_comes_again_sends_nothing(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    committer = bed.committer()
    one, two = bed.prepared(1, "one"), bed.prepared(2, "two")
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for number, description in ((1, one), (2, two), (2, two)):
        committer.commit(1, number, [description])
    for path, content in files.items():
        path.write_bytes(content)  # as if the driver had died before it removed them
    again = bed.committer()
    again.commit(1, 1, [one])
    again.commit(1, 2, [two])
    assert bed.seen(committed=False) == ["one", "two"], "not even an aborted transaction"
    assert bed.left() == []


class Dies(BaseException):
    """The driver is killed."""


def dies(path: Path, *, missing_ok: bool = False) -> None:
    raise Dies


class Client:
    """A producer before whose operation `last` the driver dies, or that has it `refused` once."""

    def __init__(self, producer: Any, last: int | None = None, refused: str = "") -> None:
        self._producer = producer
        self._last = last
        self._refused = refused
        self.passed: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._producer, name)

        def counted(*given: Any, **more: Any) -> Any:
            from confluent_kafka import KafkaError as Error
            from confluent_kafka import KafkaException

            if name in ("poll", "flush"):
                return call(*given, **more)
            if len(self.passed) == self._last:
                raise Dies
            self.passed.append(name)
            if name == self._refused:
                self._refused = ""
                raise KafkaException(Error(Error.INVALID_TXN_STATE, "no", txn_requires_abort=True))
            return call(*given, **more)

        return counted


TRANSACTION = ["begin_transaction", "produce", "produce", "send_offsets_to_transaction", "commit_transaction"]


def test_a_driver_may_die_before_any_operation_and_the_next_one_makes_up_for_it(
    broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = Bed(broker, tmp_path)
    for last in range(len(TRANSACTION) + 1):
        description = bed.prepared(last + 1, f"{last} a", f"{last} b")
        committer = bed.committer()
        client = Client(committer._producer, last)
        committer._producer = client

        with monkeypatch.context() as moment:
            moment.setattr(Path, "unlink", dies)
            moment.setattr(KafkaCommitter, "_abort", staticmethod(lambda producer: None))
            with pytest.raises(Dies):
                committer.commit(1, last + 1, [description])
        assert client.passed == TRANSACTION[:last]
        before = [f"{done} {letter}" for done in range(last) for letter in "ab"]
        is_committed = last == len(TRANSACTION)
        done = [*before, f"{last} a", f"{last} b"]
        assert bed.seen() == (done if is_committed else before)
        bed.committer().commit(1, last + 1, [description])
        assert bed.seen() == done
        assert bed.left() == []
    assert len(bed.seen(committed=False)) > len(bed.seen()), "some were sent and never committed"


def test_a_transaction_that_is_aborted_is_sent_again(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    committer = bed.committer()
    committer._producer = Client(committer._producer, refused="commit_transaction")
    committer.commit(1, 1, [bed.prepared(1, "one", "two")])
    assert bed.seen() == ["one", "two"]
    assert bed.seen(committed=False) == ["one", "two"] * 2
    committer.commit(1, 2, [bed.prepared(2, "three")])
    assert bed.seen() == ["one", "two", "three"]


def test_a_driver_that_another_has_followed_is_fenced_off(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    sleeping = bed.committer()
    sleeping.commit(1, 1, [bed.prepared(1, "one")])
    description = bed.prepared(2, "two")
    following = bed.committer()
    words = rf'another driver uses the transactional id "{following.name}" .* a copy of its checkpoint'
    with pytest.raises(FencedError, match=words):
        sleeping.commit(1, 2, [description])
    following.commit(2, 2, [description])
    assert bed.seen() == ["one", "two"]


def test_a_start_sends_what_the_newest_entry_names(broker: KafkaBroker, tmp_path: Path) -> None:
    """The driver died between its entry and the transaction, in which it had sent a record."""
    bed = Bed(broker, tmp_path / "prepared")
    storage, sinks = LocalStorage(tmp_path, Quick()), Sinks({"out": bed.sink()})
    log, place = begin_marks(storage, str(tmp_path), -1, {}, Asked(()), sinks=sinks)
    assert place.attempt_name is not None
    assert place.prepared_in is not None
    bed.attempt, bed.place = place.attempt_name, place.prepared_in
    prepared = {epoch: bed.prepared(epoch, f"in {epoch}") for epoch in (1, 2, 3)}
    handles = tuple(
        Handle(task="out", replica=0, attempt=1, epoch=epoch, content=prepared[epoch]) for epoch in (1, 2)
    )
    log.append(msgspec.structs.replace(log.entry, epoch=2, handles=handles))
    open_producer = sinks._committers["out"]._producer  # type: ignore[attr-defined]
    open_producer.begin_transaction()
    open_producer.produce(bed.topic, b"half of it")
    open_producer.flush()
    for _ in range(2):
        others = Sinks({"out": bed.sink()})
        again, _ = begin_marks(storage, str(tmp_path), -1, {}, Asked(()), sinks=others)
        assert bed.seen() == ["in 1", "in 2"], "nobody has to wait for the end of the transaction before"
    assert again.entry.handles == ()
    assert bed.left() == [], "what is in no entry is thrown away"


def test_what_kafka_has_forgotten_is_not_sent_twice_without_a_word(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    bed = Bed(broker, tmp_path)
    description = bed.prepared(1, "one")
    (path,) = tmp_path.iterdir()
    long_ago = time.time() - 2 * 86_400
    os.utime(path, (long_ago, long_ago))
    with pytest.raises(KafkaError, match=r"does not know group .* remove that file if they are in Kafka, to"):
        bed.committer().commit(1, 1, [description])
    path.touch()
    committer = bed.committer()
    committer.commit(1, 1, [description])
    with pytest.raises(KafkaError, match=r"0002-out, with output that is to be sent, is gone; bring it back"):
        committer.commit(1, 2, [description.replace("0-out", "0002-out")])
    assert bed.seen() == ["one"]
    other = Bed(broker, tmp_path)
    other.committer().commit(1, 1, [description])
    assert other.seen() == [], "it was sent, or its file would be there"


def test_a_checkpoint_that_was_put_back_is_refused(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    bed.committer()
    bed.committer().commit(2, 7, [bed.prepared(7, "one")])
    bed.attempts = 1
    with pytest.raises(
        KafkaError, match=r"has output of start 2 .* this is only start 2: it was put back to"
    ):
        bed.committer()


def test_a_damaged_file_is_named_and_nothing_of_it_seen(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    description = bed.prepared(1, "one", "two")
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    committer = bed.committer()
    for damaged in (
        content[:-1],
        content[:-7],
        content + b"\0\0\0\0",
        content.replace(b"two", b"twx"),
        b"\0",
    ):
        path.write_bytes(damaged)
        with pytest.raises(SpoolError, match=f"{path.name} is damaged"):
            committer.commit(1, 1, [description])
    path.write_bytes(content)
    committer.commit(1, 1, [description])
    assert bed.seen() == ["one", "two"]


def test_records_that_are_too_large_are_errors_of_their_items(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path, config={"message.max.bytes": 2000})
    sink = bed.opened()
    sink.write("small")
    with pytest.raises(KafkaError, match=rf'bytes is too large for topic "{bed.topic}": at most 2,000 are'):
        sink.write("x" * 1950)
    sink.write("x" * 1850)
    description = sink.prepare(1)
    assert description is not None
    bed.committer().commit(1, 1, [description])
    assert bed.seen() == ["small", "x" * 1850]


def test_what_the_broker_refuses_is_told(broker: KafkaBroker, tmp_path: Path) -> None:
    bed = Bed(broker, tmp_path)
    bed.topic = new_topic(broker, config={"max.message.bytes": 1000})
    with pytest.raises(KafkaError, match=rf'too large for topic "{bed.topic}" .*let it take such ones'):
        bed.committer().commit(1, 1, [bed.prepared(1, "x" * 2000)])
    assert bed.seen() == []
    place = Known(tmp_path, bed.attempt)
    with pytest.raises(KafkaError, match='has no topic "ordres": create it'):
        penstock.to_kafka("ordres", servers=broker.servers, exactly_once=True).committer(place)
    bed.more["config"] = {"transaction.timeout.ms": 3_600_000}
    with pytest.raises(KafkaError, match=r"lets no transaction last for 3600 s: make transaction.timeout.ms"):
        bed.committer()


def test_a_topic_may_depend_on_the_item_and_values_may_be_missing(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    left, right = new_topic(broker), new_topic(broker)
    topics = {"l": left, "r": right}
    value: Any = lambda item: None if item[1] == "2" else item  # noqa: E731 - None is no bytes, and allowed
    sink = penstock.to_kafka(
        lambda item: topics[item[0]],
        servers=broker.servers,
        exactly_once=True,
        key=lambda item: item[1],
        value=value,
    )
    context = FakeContext("out", attempt=f"{left.replace('-', '')}-00000001", prepared_in=tmp_path)
    sink.open(context)
    for item in ("l1", "r1", "l2"):
        sink.write(item)
    description = sink.prepare(1)
    assert description is not None
    assert Spooled.decode(description).records == 3
    for attempt in (1, 2):
        known = Known(tmp_path, f"{left.replace('-', '')}-{attempt:08d}")
        sink.committer(known).commit(1, 1, [description])
    assert [(m.key(), m.value()) for m in seen(broker, left)] == [(b"1", b"l1"), (b"2", None)]
    assert [(m.key(), m.value()) for m in seen(broker, right)] == [(b"1", b"r1")]
