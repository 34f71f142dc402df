"""Records that wait in files until they are committed; no broker is asked."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.flow import Flow
from penstock.flow.delivery import refuse_without_marks
from penstock.flow.errors import FlowError
from penstock.io.kafka_client import Heard, KafkaError
from penstock.io.kafka_records import Made
from penstock.io.kafka_spool import Spool, Spooled, read_spooled
from penstock.io.kafka_transactions import KafkaCommitter
from penstock.io.protocol import ConnectedSink, DeliveryError, FencedError, LateSink
from tests.flow.random_flows import Partitioned
from tests.io.sink_context import FakeContext
from tests.io.sync_watch import watch_syncs

if TYPE_CHECKING:
    from penstock.io.kafka_once import ToKafkaOnce

ATTEMPT = "5e1f00aa-00000001"


def sink(**more: Any) -> "ToKafkaOnce":
    return penstock.to_kafka("out", servers="127.0.0.1:9", exactly_once=True, **more)


def spool(place: Path) -> Spool:
    made = Spool(place, ATTEMPT, 2, "out")
    made.open()
    return made


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = [Made("a", b"1", None, None), Made("b", None, b"\0", {"h": b"\xff"}), Made("a", b"", b"", {})]
    writing = spool(tmp_path / "made" / "here")
    for record in records:
        writing.add(record)
    spooled = writing.finish(7)
    assert spooled is not None
    assert spooled.file == "5e1f00aa-00000001-000000000007-00002-out"
    assert Spooled.decode(spooled.encode()) == spooled
    path = tmp_path / "made" / "here" / spooled.file
    assert [*read_spooled(path, spooled)] == records
    assert path.stat().st_mode & 0o777 == 0o600, "as all files of a checkpoint"
    assert writing.finish(8) is None
    writing.add(records[0])
    writing.close()
    assert [path.name for path in (tmp_path / "made" / "here").iterdir()] == [spooled.file]


def test_a_file_is_on_the_disk_before_anybody_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = spool(tmp_path)
    writing.add(Made("a", b"1", None, None))
    synced = watch_syncs(monkeypatch)
    spooled = writing.finish(1)
    assert spooled is not None
    unfinished = ".new-5e1f00aa-00000001-00002-out"
    assert synced == [unfinished, f"{unfinished} > {spooled.file}", tmp_path.name]


def test_a_full_disk_stops_the_flow_whatever_on_error_says(tmp_path: Path) -> None:
    writing = spool(tmp_path)
    writing.add(Made("a", b"1", None, None))
    assert writing._file is not None
    writing._file.close()
    writing._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - the spool closes it
    with pytest.raises(DeliveryError, match=r"\.new-.* cannot be written: No space left on device"):
        writing.add(Made("a", b"2", None, None))
    writing.close()


def test_what_encoders_give_is_made_bytes_or_refused(tmp_path: Path) -> None:
    given: list[Any] = ["text", bytearray(b"array"), None, 3]
    once = sink(
        value=lambda item: given[item], key=lambda item: item, encode_key=lambda key: memoryview(b"k")
    )
    once.open(FakeContext("out", attempt=ATTEMPT, prepared_in=tmp_path))
    for item in range(3):
        once.write(item)
    with pytest.raises(TypeError, match="int is no bytes; an encoder makes bytes of it"):
        once.write(3)
    description = once.prepare(1)
    assert description is not None
    spooled = Spooled.decode(description)
    assert [*read_spooled(tmp_path / spooled.file, spooled)] == [
        Made("out", value, b"k", None) for value in (b"text", b"array", None)
    ]
    once.close()


def test_without_marks_it_is_refused_before_anything_runs() -> None:
    flow = Flow("exact")
    flow.source(Partitioned(1), name="numbers").sink(sink(), name="kafka")
    assert (
        'sink "kafka" has every item exactly once, and needs a checkpoint where commits are marks'
        in flow.explain()
    )
    words = 'sink "kafka" of flow "exact" has exactly_once=True, which needs commits that are marks, and here'
    with pytest.raises(FlowError, match=words):
        refuse_without_marks(flow.graph(), "there is no checkpoint")
    with pytest.raises(FlowError, match=words):
        penstock.run(flow)
    with pytest.raises(KafkaError, match='sink "kafka": exactly_once=True needs commits that are marks'):
        sink().open(FakeContext("kafka"))
    assert isinstance(sink(), ConnectedSink)
    assert not isinstance(sink(), LateSink)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("_UNSUPPORTED_FEATURE", "Kafka at here:9 has no transactions, which exactly_once needs (said)"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 'does not let this user use the transactional id "id"'),
        ("INVALID_TRANSACTION_TIMEOUT", "lets no transaction last for 90 s"),
        ("UNKNOWN_TOPIC_OR_PART", "no such topic"),
    ],
)
def test_errors_of_transactions_are_told_in_words(code: str, words: str) -> None:
    from confluent_kafka import KafkaError as Error

    committer = object.__new__(KafkaCommitter)
    committer._heard = Heard("here:9")
    committer._longest_s = 90.0
    committer.name = "id"  # type: ignore[misc]
    problem = committer._in_words(Error(getattr(Error, code), "said"))
    assert isinstance(problem, KafkaError)
    assert re.search(re.escape(words), str(problem))
    fenced = Error(Error._FENCED, "said")
    assert isinstance(committer._in_words(fenced), FencedError)
    late = committer._in_words(fenced, is_late=True)
    assert "was not done within 90 s: give it more time (transaction.timeout.ms), or commit" in str(late)
