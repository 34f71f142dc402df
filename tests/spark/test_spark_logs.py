"""How loud Spark is, without starting it."""

from pathlib import Path
from typing import Any, cast

import pytest

from penstock.flow.errors import FlowError
from penstock.flow.spark_conf import CONF
from penstock.spark.spark_logs import FILE_VARIABLE, LEVEL, QUIET, quiet_start, silenced, wanted_level


class FakeContext:
    """Remembers its levels."""

    def __init__(self, level: str | None) -> None:
        self.conf = {} if level is None else {LEVEL: level}
        self.levels: list[str] = []

    def getConf(self) -> dict[str, str]:  # noqa: N802 - Spark's
        return self.conf

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's
        self.levels.append(level)


def test_errors_only_unless_the_environment_says_more() -> None:
    assert wanted_level({}) == QUIET
    assert wanted_level({"PENSTOCK_SPARK_LOG_LEVEL": " info "}) == "INFO"
    with pytest.raises(
        FlowError, match="PENSTOCK_SPARK_LOG_LEVEL=loud is no level of Spark's log; there are ALL"
    ):
        wanted_level({"PENSTOCK_SPARK_LOG_LEVEL": "loud"})
    assert [entry.value for entry in CONF if entry.key == LEVEL] == [QUIET], "as explain tells it"


def test_log4j_is_told_for_the_start_only() -> None:
    environment: dict[str, str] = {"SPARK_HOME": ""}
    with quiet_start(environment):
        told = Path(environment[FILE_VARIABLE])
    assert environment == {"SPARK_HOME": ""}
    assert "rootLogger.level = error" in told.read_text()
    with pytest.raises(KeyError), quiet_start(environment):
        raise KeyError
    assert environment == {"SPARK_HOME": ""}


@pytest.mark.parametrize(("variable", "below"), [("SPARK_CONF_DIR", ""), ("SPARK_HOME", "conf")])
def test_a_configuration_of_the_users_own_stays(tmp_path: Path, variable: str, below: str) -> None:
    environment = {variable: str(tmp_path)}
    (tmp_path / below).mkdir(exist_ok=True)
    with quiet_start(environment):
        assert FILE_VARIABLE in environment, "there is none yet"
    (tmp_path / below / "log4j2.xml").touch()
    with quiet_start(environment):
        assert environment == {variable: str(tmp_path)}
    chosen = {FILE_VARIABLE: "theirs.xml"}
    with quiet_start(chosen):
        assert chosen == {FILE_VARIABLE: "theirs.xml"}
    assert chosen == {FILE_VARIABLE: "theirs.xml"}


@pytest.mark.parametrize(
    ("level", "levels"), [(None, ["OFF", "ERROR"]), ("ERROR", ["OFF", "ERROR"]), ("INFO", [])]
)
def test_the_end_of_a_query_is_silent_unless_more_was_asked_for(level: str | None, levels: list[str]) -> None:
    context = FakeContext(level)
    with silenced(cast("Any", context)):
        pass
    assert context.levels == levels
