"""A sink into Kafka topics that has every item exactly once, where commits are epoch marks.

Replicas put the records of an epoch into files in the checkpoint. When the log of commits names them, the
driver sends them in one transaction, which holds the number of the commit too (`kafka_transactions.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from penstock.io.kafka_client import Config, KafkaError
from penstock.io.kafka_records import Made, Writing
from penstock.io.kafka_spool import Spool
from penstock.io.kafka_transactions import KafkaCommitter
from penstock.io.protocol import CommitContext, SinkContext

_LARGEST: Final = 1_000_000  # what librdkafka takes unless message.max.bytes says otherwise
_AROUND_RECORD: Final = 100
_AROUND_HEADER: Final = 10


@dataclass
class ToKafkaOnce:
    """What `to_kafka(exactly_once=True)` gives: replicas write files, the driver has the only producer."""

    writing: Writing
    servers: str
    config: Config = field(repr=False)
    needs_marks: ClassVar[bool] = True
    _make: Callable[[Any], Made] | None = field(init=False, default=None, repr=False)
    _spool: Spool | None = field(init=False, default=None, repr=False)
    _largest: int = field(init=False, default=_LARGEST, repr=False)

    def open(self, context: SinkContext) -> None:
        if context.attempt is None or context.prepared_in is None:
            raise KafkaError(
                f'sink "{context.task}": exactly_once=True needs commits that are marks: run the flow with'
                " a checkpoint"
            )
        self._make = self.writing.open(context)
        self._largest = int(str(self.config.get("message.max.bytes", _LARGEST)))
        self._spool = Spool(context.prepared_in, context.attempt, context.replica, context.task)
        self._spool.open()

    def write(self, item: Any) -> None:
        """Keep a record for the end of the epoch; one that could never be sent is an error of its item."""
        assert self._make is not None, "a sink is opened before it is written to"
        assert self._spool is not None, "a sink is opened before it is written to"
        made = _plain(self._make(item))
        if (size := _size(made)) > self._largest:
            raise KafkaError(
                f'a record of {size:,} bytes is too large for topic "{made.topic}": at most {self._largest:,}'
                " are sent (message.max.bytes)"
            )
        self._spool.add(made)

    def prepare(self, epoch: int) -> str | None:
        """The records of an epoch, if there are any, are on the disk."""
        assert self._spool is not None, "a sink is opened before it is written to"
        spooled = self._spool.finish(epoch)
        return None if spooled is None else spooled.encode()

    def committer(self, context: CommitContext) -> KafkaCommitter:
        """In the driver: what sends them."""
        return KafkaCommitter(context, self.servers, self.config, self.writing.named)

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None


def _size(made: Made) -> int:
    """No less than what the client counts."""
    around = sum(len(name) + len(held or b"") + _AROUND_HEADER for name, held in (made.headers or {}).items())
    return len(made.value or b"") + len(made.key or b"") + around + _AROUND_RECORD


def _plain(made: Made) -> Made:
    """As it is read again: encoders of users may give what the client takes for bytes, too."""
    topic, value, key, headers = made
    if not isinstance(topic, str):
        raise TypeError(f"a topic is a name, not {topic!r}")
    named = None if headers is None else {name: _bytes(held) for name, held in headers.items()}
    return Made(topic, _bytes(value), _bytes(key), named)


def _bytes(data: Any) -> Any:
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"{type(data).__name__} is no bytes; an encoder makes bytes of it")
