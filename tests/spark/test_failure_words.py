"""Why a flow stopped, in few words: from what a worker said, or from what Spark makes of it."""

import pytest

from penstock.spark.failure_words import failure_words, first_words
from penstock.wire.reports import Failure

QUERY = "[id = 6f0c7a3e-35b1-4c0e-a5b6-0a4d3c1f1f0a, runId = 0b0b7c52-8a34-4f8e-bb0e-5c2d8d1f7e11]"

OURS = f"""[STREAM_FAILED] Query {QUERY} terminated with exception: Job aborted due to stage failure: \
Task 1 in stage 4.0 failed 1 times, most recent failure: Lost task 1.0 in stage 4.0 (TID 17) (127.0.0.1 \
executor driver): org.penstock.bridge.FlowException: task "work", replica 1: its worker was killed by \
signal 9 again and again
\tat org.penstock.bridge.TaskHost.replace(TaskHost.java:301)
\tat org.penstock.bridge.Pump.lambda$run$3(Pump.java:188)
\tat java.base/java.lang.Thread.run(Thread.java:1583)
Caused by: java.io.IOException: Broken pipe
\t... 12 more

Driver stacktrace: SQLSTATE: XXKST"""

LONG = f"""[STREAM_FAILED] Query {QUERY} terminated with exception: Job aborted due to stage failure: \
Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (127.0.0.1 \
executor driver): org.penstock.bridge.FlowException: the flow cannot be loaded in a worker:
Traceback (most recent call last):
  File "zygote.py", line 9, in main
ModuleNotFoundError: No module named 'mine'
\tat org.penstock.bridge.Zygote.awaitReady(Zygote.java:90)
\tat org.penstock.bridge.Workers.zygote(Workers.java:40)

Driver stacktrace: SQLSTATE: XXKST"""

SPARKS = f"""[STREAM_FAILED] Query {QUERY} terminated with exception: Job aborted due to stage failure: \
Task 0 in stage 2.0 failed 1 times, most recent failure: Lost task 0.0 in stage 2.0 (TID 3) (10.0.0.7 \
executor 1): java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
\tat org.apache.spark.sql.catalyst.expressions.UnsafeRow.copy(UnsafeRow.java:498)

Driver stacktrace: SQLSTATE: XXKST"""

ON_DRIVER = f"""[STREAM_FAILED] Query {QUERY} terminated with exception: Failed to read checkpoint file
of this query: /checkpoints/flow/offsets/7 SQLSTATE: XXKST

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)"""

SLOTS = f"""[STREAM_FAILED] Query {QUERY} terminated with exception: \
[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] Cannot run the pipelined stage group: it needs 12 concurrent task \
slots to run all its stages together, but only 7 are currently free. The stages of a pipelined group must \
run concurrently, so the cluster must have enough free slots for all of them at once. Provision more \
executors, or reduce the parallelism of the query. SQLSTATE: 53000
\tat org.apache.spark.errors.SparkCoreErrors$.insufficientSlots(SparkCoreErrors.scala:611)
\tat org.apache.spark.scheduler.DAGScheduler.checkSlots(DAGScheduler.scala:1402) SQLSTATE: XXKST"""

CONNECTED = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `itm` cannot be resolved. Did you mean \
one of the following? [`item`]. SQLSTATE: 42703

JVM stacktrace:
org.apache.spark.sql.AnalysisException
\tat org.apache.spark.sql.errors.QueryCompilationErrors$.unresolved(QueryCompilationErrors.scala:351)"""

BY_PY4J = """An error occurred while calling o57.start.
: org.apache.spark.SparkException: the checkpoint cannot be written
\tat org.apache.spark.sql.execution.streaming.checkpointing.CommitLog.add(CommitLog.scala:101)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:580)
"""


def test_what_the_task_said_comes_first() -> None:
    failure = Failure("work", 3, "ZeroDivisionError: division by zero\nitem: 0\nTraceback ...")
    assert failure_words("sums", failure, OURS, "/there") == (
        'flow "sums", task "work", replica 3: ZeroDivisionError: division by zero\nitem: 0\nTraceback ...'
    )


def test_our_own_words_are_found_among_those_of_spark() -> None:
    assert failure_words("sums", None, OURS, "/there") == (
        'flow "sums": task "work", replica 1: its worker was killed by signal 9 again and again'
    )


def test_the_checkpoint_is_named_when_the_driver_cannot_write_a_file() -> None:
    why = "java.io.IOException: No space left on device"
    full = f"[STREAM_FAILED] Query {QUERY} terminated with exception: {why}"
    assert failure_words("sums", None, full, "/there") == (
        'flow "sums": the checkpoint /there cannot be used: java.io.IOException: No space left on device'
    )


def test_too_few_slots_are_told_in_the_words_of_a_flow() -> None:
    assert failure_words("sums", None, SLOTS, "/there") == (
        'flow "sums": it needs 12 task slots at the same time and Spark has only 7 free: others use this'
        " Spark, too; give it more cores, or make pools smaller"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            SPARKS,
            "Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent failure:"
            " Lost task 0.0 in stage 2.0 (TID 3) (10.0.0.7 executor 1): java.lang.OutOfMemoryError: Java heap"
            " space",
        ),
        (
            ON_DRIVER,
            "Failed to read checkpoint file\nof this query: /checkpoints/flow/offsets/7 SQLSTATE: XXKST",
        ),
        (
            CONNECTED,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `itm` cannot be resolved. Did you mean"
            " one of the following? [`item`]. SQLSTATE: 42703",
        ),
        (
            BY_PY4J,
            "An error occurred while calling o57.start.\n"
            ": org.apache.spark.SparkException: the checkpoint cannot be written",
        ),
        ("None", "None"),
        ("one plain sentence", "one plain sentence"),
        ("", ""),
    ],
)
def test_what_spark_says_is_told_without_its_stack(text: str, words: str) -> None:
    assert first_words(text) == words


@pytest.mark.parametrize("text", [OURS, SPARKS, ON_DRIVER, SLOTS, CONNECTED, BY_PY4J])
def test_no_stack_no_address_of_a_query(text: str) -> None:
    words = first_words(text)
    assert "\tat " not in words
    assert "stacktrace" not in words
    assert "runId" not in words
    assert words == words.strip()


def test_a_failure_is_told_whatever_the_query_knows_of_it() -> None:
    assert failure_words("sums", None, ValueError("broken"), "/there") == 'flow "sums": broken'


def test_all_of_our_own_words_are_kept() -> None:
    assert first_words(LONG) == (
        "the flow cannot be loaded in a worker:\nTraceback (most recent call last):\n"
        "  File \"zygote.py\", line 9, in main\nModuleNotFoundError: No module named 'mine'"
    )
