"""Why a flow stopped, in the words of the flow: what its task said, else the first words of Spark's error."""

import re

from penstock.wire.reports import Failure

_OURS = re.compile(
    r"org\.penstock\.bridge\.Flow(?:Exception|Broken): "
    r"(.*?)(?=\n\s*\tat |\n\nDriver stacktrace|\nCaused by: |\Z)",
    re.DOTALL,
)
_SLOTS = re.compile(r"CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT.*?needs (\d+).*?only (\d+)", re.DOTALL)
_ENDS = ("\n\tat ", "\n\nDriver stacktrace:", "JVM stacktrace:", "\n=== Streaming Query ===")
_OF_FILES = ("java.io.", "java.nio.file.", "org.apache.hadoop.fs.")
_NOISE = re.compile(r"^\[STREAM_FAILED\].*?terminated with exception: ", re.DOTALL)


def is_users(text: str) -> bool:
    """Whether an error of Spark comes from the user's code, so that another start would not help."""
    return "org.penstock.bridge.FlowBroken" in text


def failure_words(flow: str, failure: Failure | None, error: object, checkpoint: str) -> str:
    """One message, without the stack of Java."""
    if failure is not None:
        return failure.words(flow)
    words = first_words(str(error))
    if words.startswith(_OF_FILES):  # tasks fail in jobs; what the driver itself reads and writes are commits
        words = f"the checkpoint {checkpoint} cannot be used: {words}"
    return f'flow "{flow}": {words}'


def first_words(text: str) -> str:
    """What an error of Spark says before its stack; our own words if they are in it."""
    slots = _SLOTS.search(text)
    if slots is not None:
        needed, free = slots.groups()
        return (
            f"it needs {needed} task slots at the same time and Spark has only {free} free: others use this"
            " Spark, too; give it more cores, or make pools smaller"
        )
    ours = _OURS.search(text)
    if ours is not None:
        return ours.group(1)
    for mark in _ENDS:
        text = text.partition(mark)[0]
    return _NOISE.sub("", text).strip()
