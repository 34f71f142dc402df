"""The machine of the tests, where all is well, and what is changed about it."""

from pathlib import Path

import pytest

from penstock.doctor import examine as examine_module
from penstock.doctor.examine import EXTRAS, examine
from penstock.doctor.finding import Finding


def by_name() -> dict[str, Finding]:
    return {finding.what: finding for finding in examine()}


def test_what_runs_the_tests_can_run_flows() -> None:
    found = by_name()
    needed = ("system", "Python", "Java", "Spark", "real-time mode", "bridge", "javac", "loopback", "ports")
    assert {what: found[what].state for what in needed} == dict.fromkeys(needed, "ok")
    assert found["bridge"].found == "built from these sources"


def test_a_java_home_without_java_falls_back_and_no_java_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert by_name()["Java"].state == "ok"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert by_name()["Java"].state == "wrong"


def test_a_stale_bridge_is_wrong_and_needs_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.build_bridge.built_digest", lambda jar: "of yesterday")
    assert by_name()["bridge"].remedy == "run `make bridge`"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert by_name()["javac"].state == "wrong"


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    found = by_name()
    assert found["temporary directory"].found == f"{tmp_path}/missing: No such file or directory"
    assert found["machine"].state == "wrong", "how full a disk is that is not there"


def test_a_container_has_less_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine_module, "_CGROUP", tmp_path)
    (tmp_path / "memory.current").write_text("200000000\n")
    (tmp_path / "memory.max").write_text("1200000000\n")
    assert by_name()["memory"].found == "1.0 GB free"
    (tmp_path / "memory.max").write_text("max\n")
    assert by_name()["memory"].found != "1.0 GB free"


def test_a_place_of_sockets_that_others_may_enter_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert by_name()["commands"].found == f"{tmp_path}/penstock"
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock").chmod(0o777)
    assert "can be entered by others" in by_name()["commands"].found


def test_extras_are_those_of_the_package() -> None:
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    block = declared.partition("[project.optional-dependencies]")[2].partition("[project.scripts]")[0]
    names = {line.partition(" = ")[0] for line in block.splitlines() if " = [" in line}
    assert names - {"all", "dev", "docs"} == set(EXTRAS)
