"""Where items come from and where they go: sources, sinks, and the protocols for others."""

from penstock.io.day_night import Burst, day_night
from penstock.io.dedup import DedupJsonl, dedup_jsonl
from penstock.io.jsonl import Jsonl, jsonl
from penstock.io.kafka_client import KafkaError
from penstock.io.kafka_codecs import TopicDecoder, TopicEncoder
from penstock.io.kafka_once import ToKafkaOnce
from penstock.io.kafka_reader import KafkaRecord
from penstock.io.kafka_sink import ToKafka, to_kafka
from penstock.io.kafka_source import Kafka, kafka
from penstock.io.msgspec_codec import MsgspecCodec, msgspec_codec
from penstock.io.paced import Paced, paced
from penstock.io.protocol import (
    CommitContext,
    Committer,
    ConnectedSink,
    DeliveryError,
    FencedError,
    GrowingSource,
    JointReader,
    JointSource,
    LateSink,
    Offset,
    Reader,
    RecordReader,
    Refused,
    Sink,
    SinkContext,
    Source,
    SourceClock,
    TransactionalSink,
)
from penstock.io.replay import Replay, replay
from penstock.io.schedule import Schedule, constant, steps
from penstock.io.secret import Secret, secret
from penstock.io.trace import trace

__all__ = [
    "Burst",
    "CommitContext",
    "Committer",
    "ConnectedSink",
    "DedupJsonl",
    "DeliveryError",
    "FencedError",
    "GrowingSource",
    "JointReader",
    "JointSource",
    "Jsonl",
    "Kafka",
    "KafkaError",
    "KafkaRecord",
    "LateSink",
    "MsgspecCodec",
    "Offset",
    "Paced",
    "Reader",
    "RecordReader",
    "Refused",
    "Replay",
    "Schedule",
    "Secret",
    "Sink",
    "SinkContext",
    "Source",
    "SourceClock",
    "ToKafka",
    "ToKafkaOnce",
    "TopicDecoder",
    "TopicEncoder",
    "TransactionalSink",
    "constant",
    "day_night",
    "dedup_jsonl",
    "jsonl",
    "kafka",
    "msgspec_codec",
    "paced",
    "replay",
    "secret",
    "steps",
    "to_kafka",
    "trace",
]
