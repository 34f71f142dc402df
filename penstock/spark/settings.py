"""The Spark settings Penstock needs: what it sets, what it refuses, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.flow.errors import FlowError

JAR = Path(__file__).parent / "jars" / "penstock-bridge.jar"
PLUGIN = "org.penstock.bridge.PenstockPlugin"
EXTENSIONS = "org.apache.spark.penstock.Extensions"


@dataclass(frozen=True, slots=True)
class Setting:
    """A Spark setting; a `fixed` one cannot be changed by the user."""

    key: str
    value: str
    why: str
    fixed: bool = False


SETTINGS = (
    Setting("spark.plugins", PLUGIN, "the control path to the executors", fixed=True),
    Setting("spark.sql.extensions", EXTENSIONS, "pools change their size between batches", fixed=True),
    Setting(
        "spark.dynamicAllocation.enabled",
        "false",
        "real-time mode refuses it; Penstock scales by itself",
        fixed=True,
    ),
    Setting(
        "spark.speculation", "false", "real-time mode refuses it; an item must not run twice", fixed=True
    ),
    Setting(
        "spark.sql.unionOutputPartitioning", "false", "a union would hold one of its inputs back", fixed=True
    ),
    Setting("spark.task.maxFailures", "1", "a retried task would send its items twice", fixed=True),
    Setting(
        "spark.shuffle.streaming.networkBufferSize",
        "64",
        "every row leaves at once: envelopes are the only batching",
    ),
    Setting(
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs",
        "50",
        "no row waits for this timer, and it costs nothing",
    ),
    Setting(
        "spark.shuffle.streaming.writerMaxMemory",
        "1",
        "few rows wait in the network: back-pressure comes early",
    ),
    Setting(
        "spark.shuffle.streaming.readerMaxMemory",
        "262144",
        "few rows wait before a task: back-pressure comes early",
    ),
    Setting(
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart",
        "false",
        "a driver killed in its first commit leaves a torn file, which must not block the next start",
        fixed=True,
    ),
    Setting("spark.locality.wait", "0", "a batch starts at once, wherever there is room"),
    Setting("spark.driver.host", "127.0.0.1", "nothing listens beyond this machine in local mode"),
    Setting("spark.driver.bindAddress", "127.0.0.1", "nothing listens beyond this machine in local mode"),
    Setting("spark.driver.memory", "2g", "room for the buffers of many replicas"),
    Setting("spark.ui.enabled", "false", "one page less that listens"),
    Setting("spark.ui.showConsoleProgress", "false", "a batch of minutes has no progress bar"),
    Setting("spark.log.level", "ERROR", "Spark warns of every row larger than its network buffer"),
)


def merged(user: Mapping[str, str]) -> dict[str, str]:
    """The settings for a session: the user's over ours; a conflict with a fixed one is refused."""
    for setting in SETTINGS:
        wanted = user.get(setting.key)
        if setting.fixed and wanted is not None and not _agrees(setting, str(wanted)):
            raise FlowError(
                f"setting {setting.key}={wanted} cannot be used with Penstock, which needs {setting.value}"
                f" ({setting.why}); remove it"
            )
    return {setting.key: setting.value for setting in SETTINGS} | {
        key: str(value) for key, value in user.items()
    }


def missing_from(present: Mapping[str, str]) -> list[Setting]:
    """The fixed settings that a session started by somebody else lacks."""
    return [s for s in SETTINGS if s.fixed and not _agrees(s, present.get(s.key, ""))]


def _agrees(setting: Setting, value: str) -> bool:
    """Lists of classes may name others too."""
    if setting.value in (PLUGIN, EXTENSIONS):
        return setting.value in [name.strip() for name in value.split(",")]
    return value.lower() == setting.value


def describe() -> str:
    """For `explain`: each setting with its reason."""
    lines = ["Spark settings"]
    lines += [f"  {s.key} = {s.value}  ({'fixed' if s.fixed else 'default'}: {s.why})" for s in SETTINGS]
    return "\n".join(lines)
