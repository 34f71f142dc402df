"""The directory of a checkpoint, in any file system that Hadoop knows: a path, `file:`, `hdfs:`, `s3a:`."""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.flow.errors import FlowError
from penstock.spark.hadoop import Hadoop


class Directory:
    """A directory of a file system that Hadoop knows; what cannot be done is a `FlowError`."""

    def __init__(self, spark: SparkSession | Hadoop, address: str) -> None:
        hadoop = spark if isinstance(spark, Hadoop) else Hadoop.of(spark)
        self.address = address
        self._path = hadoop.jvm.org.apache.hadoop.fs.Path
        self._text = hadoop.jvm.org.apache.commons.io.IOUtils.toString
        with self._told("cannot be reached"):
            self._files = self._path(address).getFileSystem(hadoop.configuration)

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as problem:
            cause = problem.java_exception
            raise FlowError(
                f"the checkpoint {self.address} {what}: {cause.getMessage() or cause.toString()}"
            ) from None

    @property
    def local(self) -> Path | None:
        """Where it is if it is on this machine's own file systems, else None."""
        if self._files.getUri().getScheme() != "file":
            return None
        return Path(self._path(self.address).toUri().getPath())

    @property
    def qualified(self) -> str:
        """Its address with the file system, which may be the one that Hadoop is set to."""
        return str(self._files.makeQualified(self._path(self.address)).toString())

    def prepare(self) -> None:
        """Make it if there is none; refuse what is no directory, or one that nothing can be written to."""
        place = self._path(self.address)
        with self._told("cannot be looked at"):
            is_file = self._files.exists(place) and not self._files.getFileStatus(place).isDirectory()
        if is_file:
            raise FlowError(f"the checkpoint {self.address} is a file; give a directory")
        with self._told("cannot be made"):
            self._files.mkdirs(place)
        with self._told("cannot be written to"):
            probe = self._path(f"{self.address}/.penstock-probe")
            self._files.create(probe).close()
            self._files.delete(probe, False)  # noqa: FBT003 - Java has no names for arguments

    def names(self, below: str) -> list[str]:
        """Names of the files in a directory of it; none if it is not there."""
        place = self._path(f"{self.address}/{below}")
        with self._told("cannot be read"):
            if not self._files.exists(place):
                return []
            return [status.getPath().getName() for status in self._files.listStatus(place)]

    def listed(self, below: str) -> dict[str, float]:
        """Its files in a directory of it, with the time at which each was changed."""
        place = self._path(f"{self.address}/{below}")
        with self._told("cannot be read"):
            if not self._files.exists(place):
                return {}
            found = [status for status in self._files.listStatus(place) if status.isFile()]
            return {one.getPath().getName(): one.getModificationTime() / 1000 for one in found}

    def fetch(self, name: str, file: Path) -> None:
        """Copy a file to this machine; `FileNotFoundError` if it has been removed."""
        place = self._path(f"{self.address}/{name}")
        with self._told("cannot be read"):
            try:
                self._files.copyToLocalFile(False, place, self._path(f"file:{file}"), True)  # noqa: FBT003
            except Py4JJavaError:
                if not self._files.exists(place):
                    raise FileNotFoundError(name) from None
                raise

    def has(self, name: str) -> bool:
        """Whether there is something of that name."""
        with self._told("cannot be looked at"):
            return bool(self._files.exists(self._path(f"{self.address}/{name}")))

    def bring(self, place: Path, name: str) -> None:
        """Copy a directory of this machine into it, under a name that is not there: whole, or not at all."""
        beside = self._path(f"{self.address}/.{name}-{uuid.uuid4().hex}")
        with self._told("cannot be written to"):
            try:
                self._files.copyFromLocalFile(False, False, self._path(f"file:{place}"), beside)  # noqa: FBT003
                if not self._files.rename(beside, self._path(f"{self.address}/{name}")):
                    raise FlowError(f"{self.address}/{name} could not be made")
            finally:
                self._files.delete(beside, True)  # noqa: FBT003

    def text(self, name: str) -> str | None:
        """The content of a file, None if there is none."""
        place = self._path(f"{self.address}/{name}")
        with self._told("cannot be read"):
            if not self._files.exists(place):
                return None
            stream = self._files.open(place)
            try:
                return str(self._text(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, name: str, text: str) -> bool:
        """Make a file that is not there yet; False if there is one."""
        place = self._path(f"{self.address}/{name}")
        with self._told("cannot be written to"):
            try:
                stream = self._files.create(place, False)  # noqa: FBT003 - Java has no names for arguments
            except Py4JJavaError:
                if self._files.exists(place):
                    return False
                raise
            _fill(stream, text)
        return True

    def write(self, name: str, text: str) -> None:
        """Make a file, or give it another content."""
        with self._told("cannot be written to"):
            _fill(self._files.create(self._path(f"{self.address}/{name}")), text)

    def delete(self, name: str) -> None:
        """Remove a file, if there is one."""
        with self._told("cannot be written to"):
            self._files.delete(self._path(f"{self.address}/{name}"), False)  # noqa: FBT003 - as above

    def remove(self, name: str) -> None:
        """Remove a directory of it with all that is in it, if there is one."""
        with self._told("cannot be written to"):
            self._files.delete(self._path(f"{self.address}/{name}"), True)  # noqa: FBT003 - as above


def _fill(stream: Any, text: str) -> None:
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
