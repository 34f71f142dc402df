"""The Spark settings a flow runs with, and why: data only, so that `explain` needs no Spark."""

from dataclasses import dataclass
from typing import Final

PLUGIN: Final = "org.penstock.bridge.PenstockPlugin"
LOCAL_ONLY: Final = ("spark.driver.host", "spark.driver.bindAddress")
"""Right only where all of Spark is on this machine."""
EXTENSIONS: Final = "org.apache.spark.penstock.Extensions"
SHUFFLE: Final = "spark.shuffle.manager.incremental"
"""Names the shuffle between layers."""
SPARKS: Final = "streaming"
"""Spark's own."""
SEALED: Final = "org.apache.spark.penstock.HandoverShuffleManager"
"""In one process rows are handed over; between executors it is Spark's own, and every row carries a seal."""
LINKS: Final = "org.apache.spark.penstock.LinkShuffleManager"
"""The same in one process; between executors there is one authenticated connection of ours for each pair."""
FILES: Final = "spark.sql.streaming.checkpointFileManagerClass"
"""Names who writes the files of Spark's log of a query."""


@dataclass(frozen=True, slots=True)
class ConfEntry:
    """A Spark setting; a `fixed` one stays as it is, and a `listed` one takes the user's classes too."""

    key: str
    value: str
    why: str
    fixed: bool = False
    listed: bool = False


CONF: Final = (
    ConfEntry("spark.plugins", PLUGIN, "the control path to the executors", fixed=True, listed=True),
    ConfEntry(
        "spark.sql.extensions", EXTENSIONS, "pools change their size between batches", fixed=True, listed=True
    ),
    ConfEntry(
        "spark.dynamicAllocation.enabled",
        "false",
        "real-time mode refuses it; Penstock scales by itself",
        fixed=True,
    ),
    ConfEntry(
        "spark.speculation", "false", "real-time mode refuses it; an item must not run twice", fixed=True
    ),
    ConfEntry(
        "spark.sql.unionOutputPartitioning", "false", "a union would hold one of its inputs back", fixed=True
    ),
    ConfEntry("spark.task.maxFailures", "1", "a retried task would send its items twice", fixed=True),
    ConfEntry(
        SHUFFLE,
        LINKS,
        'rows are handed over, between executors by one connection for each pair; "streaming": Spark\'s own',
    ),
    ConfEntry(
        "spark.shuffle.streaming.networkBufferSize",
        "64",
        "every row leaves at once: envelopes are the only batching",
    ),
    ConfEntry(
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs",
        "1000",
        "no row waits for this timer, so it may be slow and cost nothing",
    ),
    ConfEntry(
        "spark.shuffle.streaming.writerMaxMemory",
        "1",
        "few rows wait in the network: back-pressure comes early",
    ),
    ConfEntry(
        "spark.shuffle.streaming.readerMaxMemory",
        "262144",
        "few rows wait before a task: back-pressure comes early",
    ),
    ConfEntry(
        "spark.sql.adaptive.enabled",
        "false",
        "adaptive plans would change the number of replicas",
        fixed=True,
    ),
    ConfEntry(
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart",
        "false",
        "a driver killed in its first commit leaves a torn file, which must not block the next start",
        fixed=True,
    ),
    ConfEntry(
        FILES,
        "org.apache.spark.penstock.CheckpointFiles",
        "on a local disk Hadoop starts several programs for each file of a commit",
    ),
    ConfEntry(
        "spark.penstock.shuffle.memory",
        "128m",
        "what rows that wait may hold in a process beyond 256 KiB before each replica",
    ),
    ConfEntry(
        "spark.penstock.shuffle.largeRows",
        "128m",
        "what large rows from other executors may hold besides, from when they may come until they are read",
    ),
    ConfEntry(
        "spark.penstock.queues",
        "seen",
        'queue waits and backlogs are what queues hold; "counted": what replicas say they sent and did',
    ),
    ConfEntry("spark.locality.wait", "0", "a batch starts at once, wherever there is room"),
    ConfEntry("spark.driver.host", "127.0.0.1", "the driver is reached from this machine only"),
    ConfEntry("spark.driver.bindAddress", "127.0.0.1", "the driver is reached from this machine only"),
    ConfEntry("spark.driver.memory", "2g", "room for the buffers of many replicas"),
    ConfEntry("spark.ui.enabled", "false", "one page less that listens"),
    *(
        ConfEntry(
            key, "20", "what Spark remembers for its page grows with every batch, and with every restart"
        )
        for key in (
            "spark.sql.ui.retainedExecutions",
            "spark.sql.streaming.ui.retainedQueries",
            "spark.ui.retainedJobs",
            "spark.ui.retainedStages",
            "spark.ui.retainedDeadExecutors",
        )
    ),
    ConfEntry("spark.ui.showConsoleProgress", "false", "a batch of minutes has no progress bar"),
    ConfEntry("spark.log.level", "ERROR", "Spark warns of every row larger than its network buffer"),
)


def describe() -> list[str]:
    """Each setting with its reason, one line each."""
    return [f"{s.key} = {s.value}  ({'fixed' if s.fixed else 'default'}: {s.why})" for s in CONF]
