"""The Spark session a flow runs on: started for the user, or the user's own if it can carry Penstock."""

import os
import re
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession

from penstock.flow.errors import FlowError
from penstock.flow.spark_conf import LOCAL_ONLY
from penstock.spark import session_conf
from penstock.spark.session_conf import SPARK_VERSION
from penstock.spark.spark_logs import LEVEL, quiet_start, wanted_level

_EXECUTORS_S = 60
_AUTHENTICATE = "spark.authenticate"


def session(
    slots: int,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    least: int | None = None,
    needed_by: str = "",
) -> SparkSession:
    """A session with `slots` task slots; `local[slots]` if no master is named.

    A session that is there already is used if it was started for Penstock and has `least` slots (all of
    them if that is left out); executors of a cluster that are missing are waited for. A local one that
    Penstock started itself, that runs nothing and is too small is started anew.
    To run several flows in one process, start a session with room for all before the first.
    """
    least = slots if least is None else least
    if pyspark_version != SPARK_VERSION:
        raise FlowError(
            f"Penstock works with pyspark {SPARK_VERSION}, not {pyspark_version};"
            f" install pyspark=={SPARK_VERSION}"
        )
    if not session_conf.JAR.exists():
        raise FlowError("the Java bridge is not built; run `make bridge`, or install Penstock from a wheel")
    wanted = session_conf.merged({LEVEL: wanted_level(), **(conf or {})})
    present = SparkSession.getActiveSession()
    known = present.sparkContext.master if present is not None else None
    wanted = session_conf.sealed(wanted, master or known or "local")
    asked = {key: wanted[key] for key in conf or {}}
    if present is not None:
        _check_conf(present)
        fits = not _differs(present, master, asked)
        stays = not _may_restart(present) or (fits and _is_cluster(present))
        found = _await_slots(present, least) if stays else all_slots(present)
        if stays or (fits and found >= slots):
            return _checked(present, least, found, needed_by)
        present.stop()
    chosen = master or f"local[{slots}]"
    if _is_local(chosen):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        # Executors elsewhere must reach the driver; Spark chooses its address unless the user does.
        wanted = {key: value for key, value in wanted.items() if key in (conf or {}) or key not in LOCAL_ONLY}
    if chosen.startswith("local-cluster") and _AUTHENTICATE not in wanted:
        # Elsewhere Spark makes the secret, or the cluster has one; whether to use it is up to the user there.
        wanted |= {_AUTHENTICATE: "true", f"{_AUTHENTICATE}.secret": secrets.token_hex(32)}
    builder = SparkSession.builder.master(chosen).appName("penstock")
    for key, value in {**wanted, "spark.jars": _jars(wanted), "spark.penstock.own": "true"}.items():
        builder = builder.config(key, value)
    with _answer_to_ctrl_c_kept(), quiet_start():
        started = builder.getOrCreate()
    return _checked(started, least, _await_slots(started, least), needed_by)


@contextmanager
def _answer_to_ctrl_c_kept() -> Iterator[None]:
    """A context that starts cancels all jobs on Ctrl-C from then on, which a flow takes for a failure."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def all_slots(spark: SparkSession) -> int:
    """How many tasks may run at once on the executors of now, without those that Spark is ending."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    return int(jvm.org.apache.spark.penstock.SparkInternals.slots(context.sc()))


def _jars(wanted: Mapping[str, str]) -> str:
    return ",".join(filter(None, [str(session_conf.JAR), wanted.get("spark.jars")]))


def _may_restart(spark: SparkSession) -> bool:
    return spark.conf.get("spark.penstock.own", "") == "true" and not spark.streams.active


def _differs(spark: SparkSession, master: str | None, asked: Mapping[str, str]) -> bool:
    if master is not None and master != spark.sparkContext.master:
        return True
    return any(not _holds(key, spark.conf.get(key, "") or "", value) for key, value in asked.items())


def _holds(key: str, present: str, asked: str) -> bool:
    """Whether a setting is as it was asked for; more jars than these do no harm."""
    if key == "spark.jars":
        return set(asked.split(",")) <= set(present.split(","))
    return present == asked


def _check_conf(spark: SparkSession) -> None:
    lacking = session_conf.missing_from(dict(spark.sparkContext.getConf().getAll()))
    if lacking:
        wrong = ", ".join(f"{s.key}={s.value}" for s in lacking)
        raise FlowError(
            f"the running Spark session was not started for Penstock: it lacks {wrong}; stop it first,"
            " or start it with penstock.spark.session.session()"
        )


def _checked(spark: SparkSession, slots: int, found: int, needed_by: str) -> SparkSession:
    if found < slots:
        raise FlowError(
            f"Spark has {found} task slots on {spark.sparkContext.master} and {slots} are needed at the same"
            f" time{': ' if needed_by else ''}{needed_by};"
            " give it more cores, lower spark.task.cpus, or make pools smaller"
        )
    return spark


def _is_cluster(spark: SparkSession) -> bool:
    """Whether executors are processes of their own, which come and go."""
    return not session_conf.is_one_process(spark.sparkContext.master or "")


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _await_slots(spark: SparkSession, least: int) -> int:
    """Real-time mode checks its slots once, at the start: executors that register later would not count.

    Those of a `local-cluster` are waited for one and all, those of other clusters until there are enough.
    """
    context = spark.sparkContext
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", context.master or "")
    if cluster is None and _is_local(context.master or ""):
        return all_slots(spark)
    deadline = time.monotonic() + _EXECUTORS_S
    while time.monotonic() < deadline:
        if cluster is None and all_slots(spark) >= least:
            break
        if cluster is not None and context.defaultParallelism >= int(cluster[1]) * int(cluster[2]):
            break
        time.sleep(0.05)
    return all_slots(spark)
