"""Quix Streams and Bytewax from topic to topic, for bench `kafka`: run as a program until it is ended.

python kafka_peers.py bytewax 127.0.0.1:9092 from-here to-there

It imports nothing of Penstock, which is not in the environments of these libraries.
"""

import sys
from collections.abc import Callable
from typing import Any, Final


def same(item: Any) -> Any:
    """The task."""
    return item


def quix_streams(servers: str, source: str, sink: str) -> None:
    """Its producer sends at once; headers are passed on by themselves."""
    from quixstreams import Application

    app = Application(
        broker_address=servers,
        consumer_group=f"bench-{sink}",  # the full topic is read from its beginning each time
        auto_offset_reset="earliest",
        auto_create_topics=False,
        producer_extra_config={"linger.ms": 0},
        loglevel="ERROR",
    )
    into = app.topic(sink, value_serializer="bytes", key_serializer="bytes")
    records = app.dataframe(app.topic(source, value_deserializer="bytes", key_deserializer="bytes"))
    records.apply(same).to_topic(into)
    app.run()


def bytewax(servers: str, source: str, sink: str) -> None:
    """One worker in one process; records are read a few at a time, so that none waits for many."""
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    def passed(message: Any) -> Any:
        return KafkaSinkMessage(key=message.key, value=same(message.value), headers=message.headers)

    flow = Dataflow("topic_to_topic")
    records = op.input("read", flow, KafkaSource([servers], [source], batch_size=100))
    op.output("write", op.map("same", records, passed), KafkaSink([servers], sink))
    run_main(flow)


KNOWN: Final[dict[str, Callable[[str, str, str], None]]] = {"quix_streams": quix_streams, "bytewax": bytewax}


if __name__ == "__main__":
    name, servers, source, sink = sys.argv[1:]
    KNOWN[name](servers, source, sink)
