"""The driver's end of a sink that writes to Kafka exactly once: one transaction for each commit of the flow.

The transaction also sets the offsets of a consumer group, which nobody else uses, to the number of the
commit. So Kafka itself says, with one question, what was committed when a driver had died before it knew.

    number of a commit = attempt * 2^40 + epoch, higher for each entry of the log that names output

The group and the transactional id have one name, made of those of the checkpoint and the sink. Whoever begins
with it ends what its predecessor had open, and fences it off.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from penstock.io.kafka_client import (
    ANSWER_WITHIN_S,
    PRODUCER,
    Config,
    Heard,
    KafkaError,
    check_topic,
    in_words,
    is_refusal,
    new_client,
    revealed,
)
from penstock.io.kafka_records import Made
from penstock.io.kafka_spool import Spooled, read_spooled
from penstock.io.protocol import CommitContext, FencedError

_EPOCH_BITS: Final = 40
_LOOK_EVERY_S: Final = 0.05
_TIMEOUT_MS: Final = 60_000
_TRIES: Final = 3
# Kafka forgets offsets of a group a week after they were set, unless its operator chose another time: for a
# day, a group that is not known has never been there.
_FORGOTTEN_AFTER_S: Final = 86_400.0


class KafkaCommitter:
    """Sends what replicas have put into files, and knows what was sent; one for each attempt."""

    def __init__(self, context: CommitContext, servers: str, config: Config, topic: str | None) -> None:
        checkpoint, _, number = context.attempt.rpartition("-")
        self.name: Final = f"penstock-{checkpoint}-{context.task}"
        """The transactional id, and the group."""
        self._directory = context.prepared_in
        self._heard = Heard(servers, topic)
        self._config = {**revealed(config), "bootstrap.servers": servers}
        settings = {
            **PRODUCER,
            "linger.ms": 5,
            "transaction.timeout.ms": _TIMEOUT_MS,
            **self._config,
            "enable.idempotence": True,
            "transactional.id": self.name,
        }
        self._longest_s = int(settings["transaction.timeout.ms"]) / 1000
        self._producer = new_client("Producer", settings, self._heard)
        if topic is not None:
            check_topic(self._producer, self._heard, topic)
        self._refused: KafkaError | None = None
        self._fence_off()
        self._group = self._group_metadata()
        self._committed = self._known()
        self._refuse_the_past(int(number))

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:
        """Send the files of a commit in one transaction, unless Kafka has it."""
        number = attempt << _EPOCH_BITS | epoch
        files = {self._directory / one.file: one for one in map(Spooled.decode, descriptions)}
        if not self._has(number, [*files]):
            self._send(number, files)
            self._committed = number
        for path in files:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Another thread may still use the client, which ends with it."""
        self._producer = None

    def _has(self, number: int, files: Sequence[Path]) -> bool:
        """Whether a commit was sent by somebody. Files are removed only once that is known."""
        if self._committed is not None and number <= self._committed:
            return True
        missing = [path for path in files if not path.exists()]
        if self._committed is not None:
            if missing:
                raise KafkaError(f"{missing[0]}, with output that is to be sent, is gone; bring it back")
            return False
        if missing:
            return True
        if any(time.time() - path.stat().st_mtime > _FORGOTTEN_AFTER_S for path in files):
            raise KafkaError(
                f'Kafka at {self._heard.servers} does not know group "{self.name}" (any more), which says'
                f" whether the records in {files[0]} were sent: remove that file if they are in Kafka, touch"
                " it if they are not"
            )
        return False

    def _send(self, number: int, files: dict[Path, Spooled]) -> None:
        """What is aborted is sent again, a few times."""
        from confluent_kafka import KafkaError as Code
        from confluent_kafka import KafkaException

        producer = self._producer
        for tried in range(1, _TRIES + 1):
            until_s = time.monotonic() + self._longest_s
            self._refused = None
            try:
                self._transact(producer, number, files, until_s)
                return
            except KafkaException as problem:
                error = problem.args[0]
                self._abort(producer)
                if self._refused is not None:
                    raise self._refused from None
                if tried == _TRIES or not (error.txn_requires_abort() or error.code() == Code._STATE):
                    raise self._in_words(error, is_late=time.monotonic() > until_s) from None
                if (known := self._known()) is not None and known >= number:
                    return
            except BaseException:
                self._abort(producer)
                raise

    def _transact(self, producer: Any, number: int, files: dict[Path, Spooled], until_s: float) -> None:
        from confluent_kafka import TopicPartition

        producer.begin_transaction()
        topics: dict[str, None] = {}
        for path, spooled in files.items():
            for made in read_spooled(path, spooled):
                topics[made.topic] = None
                self._produce(producer, made, until_s)
        while producer.flush(_LOOK_EVERY_S):
            self._check(until_s)
        self._check(until_s)
        marks = [TopicPartition(topic, 0, number) for topic in topics]
        self._patiently(
            lambda timeout_s: producer.send_offsets_to_transaction(marks, self._group, timeout_s), until_s
        )
        self._patiently(producer.commit_transaction, until_s)

    def _produce(self, producer: Any, made: Made, until_s: float) -> None:
        topic, value, key, headers = made
        while True:
            try:
                producer.produce(topic, value, key, headers=headers, on_delivery=self._delivered)
                producer.poll(0)
                return
            except BufferError:  # its queue is full
                producer.poll(_LOOK_EVERY_S)
                self._check(until_s)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None or self._refused is not None or _is_of_transaction(error):
            return
        if error.code() == error.MSG_SIZE_TOO_LARGE:
            self._refused = KafkaError(
                f'a record that is committed is too large for topic "{message.topic()}" at'
                f" {self._heard.servers}: let it take such ones (max.message.bytes), and start the flow again"
            )
        else:
            self._refused = KafkaError(in_words(error, self._heard.servers, message.topic()))

    def _check(self, until_s: float) -> None:
        """Raise what makes further waiting useless."""
        if self._refused is not None:
            raise self._refused
        if time.monotonic() > until_s:
            raise self._late()

    def _fence_off(self) -> None:
        from confluent_kafka import KafkaException

        try:
            self._patiently(self._producer.init_transactions, time.monotonic() + ANSWER_WITHIN_S)
        except KafkaException as problem:
            error = problem.args[0]
            if not error.retriable():
                raise self._in_words(error) from None
            raise KafkaError(
                f"Kafka at {self._heard.servers} began no transaction within {ANSWER_WITHIN_S:.0f} s"
                f" ({self._heard.newest or error.str()}); has it as many brokers as its"
                " transaction.state.log.replication.factor says?"
            ) from None

    def _group_metadata(self) -> Any:
        """What a transaction must know of a group without members."""
        settings = {**self._config, "group.id": self.name, "enable.auto.commit": False}
        consumer = new_client("Consumer", settings, self._heard)
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def _known(self) -> int | None:
        """The number of the last commit that Kafka has; None if it knows of none."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        admin = new_client("AdminClient", self._config, self._heard)
        asked = [ConsumerGroupTopicPartitions(self.name)]
        until_s = time.monotonic() + ANSWER_WITHIN_S
        while True:
            try:
                answer = admin.list_consumer_group_offsets(asked, require_stable=True, request_timeout=5.0)
                marks = answer[self.name].result(ANSWER_WITHIN_S).topic_partitions
                return max((one.offset for one in marks if one.offset >= 0), default=None)
            except KafkaException as problem:
                error = problem.args[0]  # a coordinator that has just begun, for example
                if is_refusal(error) or time.monotonic() > until_s:
                    words = in_words(error, self._heard.servers)
                    raise KafkaError(f'group "{self.name}" cannot be read: {words}') from None
                time.sleep(_LOOK_EVERY_S)

    def _refuse_the_past(self, attempt: int) -> None:
        """Numbers of attempts only rise, unless somebody has put back an older state of the checkpoint."""
        known = -1 if self._committed is None else self._committed >> _EPOCH_BITS
        if known >= attempt:
            raise KafkaError(
                f"Kafka at {self._heard.servers} has output of start {known} of this checkpoint"
                f' ("{self.name}"), and this is only start {attempt}: it was put back to an older state. Make'
                " another of it with `penstock checkpoint copy`, and start that; what it sends again comes"
                " twice"
            )

    @staticmethod
    def _abort(producer: Any) -> None:
        """So that readers need not wait until the transaction is over by itself; it is void in any case."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            producer.abort_transaction(ANSWER_WITHIN_S)

    @staticmethod
    def _patiently(call: Callable[[float], object], until_s: float) -> None:
        """Until it is done; another call goes on where the one before gave up."""
        from confluent_kafka import KafkaException

        while True:
            try:
                call(1.0)
                return
            except KafkaException as problem:
                if not problem.args[0].retriable() or time.monotonic() > until_s:
                    raise

    def _late(self) -> KafkaError:
        because = f" ({self._heard.newest})" if self._heard.newest else ""
        return KafkaError(
            f"a transaction at {self._heard.servers} was not done within {self._longest_s:g} s{because}: give"
            " it more time (transaction.timeout.ms), or commit more often"
        )

    def _in_words(self, error: Any, *, is_late: bool = False) -> Exception:
        from confluent_kafka import KafkaError as Code

        servers, code, said = self._heard.servers, error.code(), error.str()
        if code in (Code._FENCED, Code.PRODUCER_FENCED, Code.INVALID_PRODUCER_EPOCH):
            if is_late:
                return self._late()
            return FencedError(
                f'another driver uses the transactional id "{self.name}" at {servers}: the flow, or one that'
                " was begun with a copy of its checkpoint, runs elsewhere, and this one ends"
            )
        if code == Code.INVALID_TRANSACTION_TIMEOUT:
            return KafkaError(
                f"Kafka at {servers} lets no transaction last for {self._longest_s:g} s: make"
                " transaction.timeout.ms of the sink shorter, or transaction.max.timeout.ms of the broker"
                " longer"
            )
        if code == Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return KafkaError(
                f'Kafka at {servers} does not let this user use the transactional id "{self.name}" ({said})'
            )
        if code in (Code._UNSUPPORTED_FEATURE, Code.UNSUPPORTED_VERSION):
            return KafkaError(f"Kafka at {servers} has no transactions, which exactly_once needs ({said})")
        return KafkaError(in_words(error, servers))


def _is_of_transaction(error: Any) -> bool:
    """Whether a record was not sent because its transaction is over: that is told by the transaction."""
    from confluent_kafka import KafkaError as Code

    return error.code() in (
        Code._PURGE_INFLIGHT,
        Code._PURGE_QUEUE,
        Code._STATE,
        Code._FENCED,
        Code._FATAL,
        Code.PRODUCER_FENCED,
        Code.INVALID_PRODUCER_EPOCH,
    )
