"""Files of a checkpoint on one of Hadoop's file systems, for the driver."""

import contextlib
from collections.abc import Iterator

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.spark.hadoop import Hadoop


class HadoopFiles:
    """`RemoteFiles` (penstock/epochs/remote_storage.py) by Spark's JVM; what fails is an `OSError`."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        hadoop = Hadoop.of(spark)
        self._address = address
        with _told(address):
            self._store = hadoop.jvm.org.penstock.bridge.CheckpointStore(address, hadoop.configuration)

    def names(self, directory: str) -> list[str]:
        """Names in a directory, without it; none if it is not there."""
        with _told(self._address):
            return [*self._store.names(directory)]

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        with _told(self._address):
            content = self._store.read(name)
        return None if content is None else bytes(content)

    def create(self, name: str, content: bytes) -> bool:
        """Durable when this returns; False if there is one of that name."""
        with _told(self._address):
            return bool(self._store.create(name, bytearray(content)))

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        with _told(self._address):
            self._store.delete(name)


def refusal(spark: SparkSession, address: str) -> str | None:
    """Why no state can be committed at an address, in words; None if it can."""
    hadoop = Hadoop.of(spark)
    with _told(address):
        found = hadoop.jvm.org.penstock.bridge.CheckpointStore.refusal(address, hadoop.configuration)
    return None if found is None else str(found)


@contextlib.contextmanager
def _told(address: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as problem:
        cause = problem.java_exception
        raise OSError(f"the checkpoint at {address}: {cause.getMessage() or cause.toString()}") from None
