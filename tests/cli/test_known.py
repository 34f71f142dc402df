"""`penstock --version`, `list`, `doctor` and what the shell completes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import doctor
from penstock.cli.completion import applications, benches, running_flows
from penstock.cli.list_known import Kind, about, modules
from penstock.cli.main import app
from penstock.control.recording_header import installed_versions
from penstock.doctor.finding import ok, wrong
from tests.operate.fake_job import greeting, opened

runner = CliRunner()


def test_version_names_what_is_installed() -> None:
    shown = runner.invoke(app, ["--version"])
    found = installed_versions()
    assert shown.exit_code == 0
    assert shown.stdout.startswith(
        f"penstock {found.get('penstock', 'from its sources')} (python {found['python']}, "
    )


def test_list_tells_every_name_with_a_line() -> None:
    shown = runner.invoke(app, ["list"]).stdout
    for kind in Kind:
        for name, module in modules(kind).items():
            assert name in shown
            assert len(about(module)) > 20, f"{module} does not say what it is"
    lines = runner.invoke(app, ["list", "policies", "--json"]).stdout.splitlines()
    assert [json.loads(line)["name"] for line in lines] == list(modules(Kind.POLICIES))
    assert all(json.loads(line)["kind"] == "policies" for line in lines)


def test_what_is_listed_is_not_imported() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom penstock.cli.main import app\n"
        'assert CliRunner().invoke(app, ["list"]).exit_code == 0\n'
        'assert CliRunner().invoke(app, ["doctor", "--json"]).exit_code == 0\n'
        'print([name for name in ("pyspark", "penstock.bench.latency") if name in sys.modules])'
    )
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_an_unknown_kind_exits_with_2() -> None:
    assert runner.invoke(app, ["list", "flows"]).exit_code == 2


def test_doctor_says_what_is_wrong_and_how_to_mend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(doctor, "examine", lambda: [ok("cores", "2"), wrong("Java", "none", "install a JDK")])
    shown = runner.invoke(app, ["doctor"])
    assert shown.exit_code == 1
    assert "install a JDK" in shown.stdout
    assert "wrong: Java" in shown.stdout
    lines = runner.invoke(app, ["doctor", "--json"]).stdout.splitlines()
    assert json.loads(lines[1]) == {
        "what": "Java",
        "state": "wrong",
        "found": "none",
        "remedy": "install a JDK",
    }
    monkeypatch.setattr(doctor, "examine", lambda: [ok("cores", "2")])
    well = runner.invoke(app, ["doctor"])
    assert (well.exit_code, "flows can run here" in well.stdout) == (0, True)


def test_names_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert applications("pr") == ["primetest"]
    assert benches("th") == ["throughput"]
    assert running_flows("") == []
    place = tmp_path / "penstock"
    with opened(place), opened(place, hello=greeting("words", "cccc3333")):
        assert sorted(running_flows("")) == ["primes", "words"]
        with opened(place, hello=greeting("words", "dddd4444")):
            assert sorted(running_flows("")) == ["cccc3333", "dddd4444", "primes", "words"]
            assert running_flows("ccc") == ["cccc3333"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("penstock do", "doctor"), ("penstock run prime", "primetest"), ("penstock bench thr", "throughput")],
)
def test_the_shell_is_answered(typed: str, offered: str) -> None:
    words = typed.split()
    environment = {
        "_PENSTOCK_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    shown = runner.invoke(app, [], env=environment, prog_name="penstock")
    assert offered in shown.stdout.split()
