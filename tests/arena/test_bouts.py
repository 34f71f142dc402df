"""All bouts, from the command line: tables, JSON, pictures, and workers that end with whoever began them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import processes
from penstock.arena.entrants import EntrantError, ablation, create_entrant, known_entrants
from penstock.arena.workloads import Workload
from penstock.cli.main import app
from tests.arena.flows import row

THREE = "tests.arena.policies:Three"
SMALL = [
    Workload("busy", lambda seed: row(40.0, 100.0, 100.0), (1, 2)),
    Workload("idle", lambda seed: row(30.0, 30.0), (1,)),
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    monkeypatch.setattr("penstock.cli.arena.workloads", lambda **_: SMALL)
    return ["arena", "--cache", str(tmp_path / "cache"), "--traces", str(tmp_path)]


def test_a_policy_of_a_user_enters(small: list[str], tmp_path: Path) -> None:
    words = [*small, "--policy", "static", "--policy", THREE, "--out", str(tmp_path / "out"), "--json"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert "skipped: random, trace of taxis" in ran.stderr
    result = json.loads(ran.stdout)
    rows = {(one["workload"], one["policy"]): one for one in result["standings"]}
    assert set(rows) == {("busy", "static"), ("busy", THREE), ("idle", "static"), ("idle", THREE)}
    assert rows["busy", "static"]["bouts"] == 2
    assert rows["busy", "static"]["held"] < 1.0
    assert rows["busy", THREE]["changes"] == 1.0
    assert rows["idle", "static"]["held"] == rows["idle", "static"]["cost"] == 1.0
    assert rows["idle", THREE]["cost"] == 2.0
    assert [(one["workload"], one["bouts"]) for one in result["summary"]] == [
        ("all with a gentle load", 1),
        ("all with a gentle load", 1),
        ("all others", 2),
        ("all others", 2),
    ]
    assert [one["held"] for one in result["oracle"]] == [1.0, 1.0, 1.0]
    assert len(result["skipped"]) == 2
    assert len(list((tmp_path / "cache").iterdir())) == 3
    assert json.loads((tmp_path / "out" / "arena.json").read_text(encoding="utf-8")) == result
    for name in ("arena_busy.png", "arena_idle.png", "arena_all_others.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """No workers: all in this process."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.mark.usefixtures("one_core")
def test_a_table_of_the_workloads_that_were_asked_for(small: list[str]) -> None:
    ran = CliRunner().invoke(app, [*small, "--policy", "static", "--only", "idle"], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    assert "idle (oracle 100%)" in ran.stdout
    assert "busy" not in ran.stdout


@pytest.mark.usefixtures("one_core")
def test_a_policy_that_fails_is_named(small: list[str]) -> None:
    ran = CliRunner().invoke(app, [*small, "--policy", "tests.arena.policies:Raises", "--only", "idle"])
    assert ran.exit_code == 1
    words = "penstock: policy tests.arena.policies:Raises on idle, seed 1: ZeroDivisionError: by hand"
    assert words in ran.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module:Policy", "no module 'no_such_module' to be found from"),
        ("tests.arena.policies:Nobody", "module 'tests.arena.policies' has no 'Nobody'"),
        ("tests.arena.policies:NoPolicy", "a policy has name, initial_memory, decide, this has not"),
        ("tests.arena.policies:WantsMore", "WantsMore() must need no arguments"),
    ],
)
def test_who_cannot_enter(name: str, words: str) -> None:
    with pytest.raises(EntrantError) as caught:
        create_entrant(name)
    assert f"--policy {name}: " in str(caught.value)
    assert words in str(caught.value)


def test_wrong_words_are_refused(small: list[str]) -> None:
    for wrong, words in (
        (["--policy", "nobody:"], "penstock: --policy nobody:"),
        (["--policy", "nephel"], "did you mean 'nephele'"),
        (["--only", "x"], "no workload begins with 'x'; there are busy; idle"),
    ):
        ran = CliRunner().invoke(app, [*small, *wrong])
        assert ran.exit_code == 2
        assert words in ran.stderr.replace("\n", " ")


def test_a_policy_enters_with_settings_and_penstock_with_several_shares(small: list[str]) -> None:
    assert create_entrant("penstock share=0.9").parameters.share == 0.9  # type: ignore[attr-defined]
    ran = CliRunner().invoke(app, [*small, "--policy", "static", "--curve", "--only", "idle", "--json"])
    assert ran.exit_code == 0, ran.output
    entered = [one["policy"] for one in json.loads(ran.stdout)["standings"]]
    assert entered == ["static", *(f"penstock share={share}" for share in (0.9, 0.95, 0.97, 0.99))]
    wrong = CliRunner().invoke(app, [*small, "--policy", "static shares=1"])
    assert wrong.exit_code == 2
    assert "static.shares" in wrong.stderr


def test_penstock_enters_without_each_of_its_parts(small: list[str]) -> None:
    ran = CliRunner().invoke(app, [*small, "--ablation", "--only", "idle", "--json"])
    assert ran.exit_code == 0, ran.output
    entered = [one["policy"] for one in json.loads(ran.stdout)["standings"]]
    assert entered == ablation()
    assert entered[0] == "penstock"
    assert {"penstock season=off", "penstock chains=off", "penstock price=off"} <= set(entered)


def test_all_policies_can_enter() -> None:
    assert [create_entrant(name).name for name in known_entrants()] == known_entrants()


FIGHT = """
from penstock.arena.bouts import fight
from penstock.arena.workloads import Workload
from tests.arena.flows import row

if __name__ == "__main__":
    small = Workload("small", lambda seed: row(30.0), (1,))
    fight([small], ["tests.arena.policies:Stays"], cache=None, processes=2)
"""


def test_workers_end_with_whoever_began_them(tmp_path: Path) -> None:
    script, told = tmp_path / "fight.py", tmp_path / "pid"
    script.write_text(FIGHT, encoding="utf-8")
    env = {**os.environ, "ARENA_PID": str(told), "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen([sys.executable, str(script)], env=env) as parent:
        _until(lambda: told.exists() and told.read_text(encoding="utf-8") != "")
        who = processes.identity(int(told.read_text(encoding="utf-8")))
        assert who is not None
        parent.send_signal(signal.SIGKILL)
    _until(lambda: not processes.is_alive(who))


def _until(true: object) -> None:
    assert callable(true)
    deadline_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
