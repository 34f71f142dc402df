"""What is refused before Spark is asked for anything."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.flow.errors import FlowError
from penstock.spark import session as session_module
from penstock.spark import session_conf
from penstock.spark.session import session
from penstock.spark.session_conf import SPARK_VERSION


def refusal(**arguments: dict[str, str]) -> str:
    with pytest.raises(FlowError) as caught:
        session(4, **arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_another_version_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "pyspark_version", "4.4.1")
    assert refusal() == "Penstock works with pyspark 4.3.0, not 4.4.1; install pyspark==4.3.0"


def test_a_bridge_that_was_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session_module, "pyspark_version", SPARK_VERSION)
    monkeypatch.setattr(session_conf, "JAR", tmp_path / "none.jar")
    assert refusal() == "the Java bridge is not built; run `make bridge`, or install Penstock from a wheel"


def test_settings_that_cannot_work() -> None:
    assert refusal(conf={"spark.speculation": "true"}).startswith(
        "setting spark.speculation=true cannot be used"
    )


def test_a_users_own_jars_come_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session_conf, "JAR", tmp_path / "ours.jar")
    assert session_module._jars({}) == str(tmp_path / "ours.jar")
    assert session_module._jars({"spark.jars": "theirs.jar"}) == f"{tmp_path / 'ours.jar'},theirs.jar"


def test_a_cluster_that_is_short_of_executors_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local-cluster[2,6,1024]"))
    answers = {
        "_check_conf": None,
        "_may_restart": True,
        "_differs": False,
        "all_slots": 0,
        "_await_slots": 12,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(session_module, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: cluster)
    assert session(24, least=5) is cluster
    with pytest.raises(FlowError, match=r"Spark has 12 task slots on local-cluster.* 13 are needed"):
        session(24, least=13)


@pytest.mark.spark
def test_who_answers_ctrl_c_is_not_changed_by_spark(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
