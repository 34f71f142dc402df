"""Holding a checkpoint, by whatever its file system offers."""

import errno
import os

from pyspark.sql import SparkSession

from penstock.flow.errors import FlowError
from penstock.spark.directory import Directory
from penstock.spark.hold_by_beat import BeatHold
from penstock.spark.hold_by_lock import LockHold
from penstock.spark.holder import FILE, Hold, new_holder

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def hold(spark: SparkSession, address: str, flow: str) -> Hold:
    """Make the directory if there is none, and hold it for a flow; refused with the name of who has it."""
    directory = Directory(spark, address)
    directory.prepare()
    holder = new_holder(flow, [os.getpid(), _pid_of(spark)])
    if directory.local is None:
        return BeatHold(directory, holder)
    try:
        return LockHold(directory.local, holder)
    except OSError as problem:
        if problem.errno in _NO_LOCKS:
            if directory.text(FILE) == "":  # the attempt to lock it has made it
                directory.delete(FILE)
            return BeatHold(directory, holder)
        raise FlowError(f"the checkpoint {address} cannot be held: {problem.strerror}") from None


def _pid_of(spark: SparkSession) -> int:
    jvm = spark._jvm
    assert jvm is not None
    return int(jvm.org.apache.spark.util.Utils.getProcessName().partition("@")[0])
