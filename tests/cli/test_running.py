"""`penstock ps`, `status`, `set` and `stop` against a driver that answers over its socket."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.cli.main import app
from penstock.control.status import IN_CHECKPOINT, write_status
from penstock.flow.errors import JobFailed
from penstock.operate.server import Server
from tests.control.test_status import status as written_status
from tests.operate.fake_job import FakeControl, FakeJob, greeting, opened


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session without flows, and with none in the temporary directory either."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "penstock"


@pytest.fixture
def job() -> FakeJob:
    return FakeJob()


@pytest.fixture
def driver(runtime: Path, job: FakeJob) -> Iterator[Server]:
    with opened(runtime, job) as server:
        yield server


def penstock(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def test_without_flows_ps_says_so_and_others_exit_with_2() -> None:
    shown = penstock("ps")
    assert (shown.exit_code, shown.stdout) == (0, "no flow runs under this user on this machine\n")
    for words in (["status"], ["status", "primes"], ["set", "primes", "--policy", "on"], ["stop", "primes"]):
        refused = penstock(*words)
        assert refused.exit_code == 2, words
        assert refused.stderr.startswith("penstock: no flow ")


@pytest.mark.usefixtures("driver")
def test_ps_lists_flows(job: FakeJob) -> None:
    job.control = FakeControl()
    shown = penstock("ps").stdout
    for text in ("primes", "9f12ab34", "4711", "running", "nephele"):
        assert text in shown, text
    (line,) = penstock("ps", "--json").stdout.splitlines()
    assert json.loads(line)["policy"] == "nephele"
    assert json.loads(line)["run"] == "9f12ab34cd"


@pytest.mark.usefixtures("driver")
def test_a_directory_of_somebody_else_beside_it_is_told_by_ps(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o777)
    monkeypatch.setattr("penstock.operate.client.places", lambda: [runtime, other])
    shown = penstock("ps")
    assert shown.exit_code == 1
    assert "primes" in shown.stdout
    assert f"penstock: {other} can be entered by others" in shown.stderr


@pytest.mark.usefixtures("driver")
def test_status_of_a_flow_that_runs() -> None:
    for words in (["status"], ["status", "primes"], ["status", "4711"], ["status", "9f12"]):
        shown = penstock(*words)
        assert shown.exit_code == 0, shown.output
        for text in (
            "primes: running, batch 3; run 9f12ab34, pid 4711",
            "no policy",
            "1 to 20",
            "quick",
            "20 ms",
        ):
            assert text in shown.stdout, text
    told = json.loads(penstock("status", "--json").stdout)
    assert (told["flow"], told["state"], told["tasks"][1]["replicas"]) == ("primes", "running", 2)


@pytest.mark.usefixtures("driver")
def test_status_takes_a_running_flow_before_a_directory_of_its_name(tmp_path: Path) -> None:
    for name in ("primes", "other"):
        (tmp_path / name).mkdir()
        write_status(tmp_path / name / IN_CHECKPOINT, written_status())
    assert "pid 4711" in penstock("status", "primes").stdout
    for place in ("./primes", "other", "primes/" + IN_CHECKPOINT):
        assert "primes: running, batch 0; policy ds2" in penstock("status", place).stdout, place


@pytest.mark.usefixtures("driver")
def test_set_changes_and_says_what(job: FakeJob) -> None:
    shown = penstock(
        *(
            "set",
            "primes",
            "--replicas",
            "work=9",
            "--lifetime",
            "numbers->work=12 ms",
            "--bound",
            "quick=0.03 s",
        )
    )
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines() == [
        "work: 2 -> 9 replicas",
        "numbers->work: lifetime 5 ms -> 12 ms",
        "quick: bound 20 ms -> 30 ms",
        "the sources stood still for 40 ms at a boundary",
    ]
    assert (job.active["work"], job.lifetimes["numbers->work"]) == (9, 12.0)
    told = json.loads(penstock("set", "--replicas", "work=2", "--json").stdout)
    assert (told["flow"], told["changes"]) == ("primes", ["work: 9 -> 2 replicas"])


@pytest.mark.usefixtures("driver")
def test_set_pauses_a_source_and_status_shows_it(job: FakeJob) -> None:
    assert penstock("set", "--pause", "numbers").stdout == "numbers: paused\n"
    assert "\npaused: numbers\n" in penstock("status").stdout
    assert penstock("set", "--resume", "numbers").stdout == "numbers: reads on\n"
    assert "paused" not in penstock("status").stdout
    assert not job.paused


@pytest.mark.usefixtures("driver")
def test_set_switches_the_policy(job: FakeJob) -> None:
    job.control = FakeControl()
    assert penstock("set", "--policy", "recommend").stdout == "policy: on -> recommend\n"
    assert not job.control.applies


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing to set"),
        (["--replicas", "work"], "'work' is not of the form NAME=VALUE"),
        (["--replicas", "work=many"], "'many' is not a number of replicas"),
        (["--replicas", "work=2", "--replicas", "work=3"], "'work' is given twice"),
        (["--lifetime", "numbers->work=soon"], "'soon' is not a duration"),
        (["--replicas", "wrok=2"], 'penstock: flow "primes" has no task "wrok"'),
        (["--policy", "on"], 'penstock: flow "primes" runs without a policy'),
        (["--policy", "maybe"], "'maybe' is not one of 'on', 'recommend', 'off'"),
    ],
)
def test_what_cannot_be_set_exits_with_2(words: list[str], told: str) -> None:
    refused = penstock("set", "primes", *words)
    assert refused.exit_code == 2
    assert told in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.usefixtures("driver")
def test_stop_waits_and_shows_what_was_drained(job: FakeJob) -> None:
    shown = penstock("stop", "primes", "--timeout", "7 s")
    assert (shown.exit_code, shown.stdout) == (0, "primes: drained: ten items\n")
    assert job.stop_timeout_s == 7.0


@pytest.mark.usefixtures("driver")
def test_a_stop_that_fails_exits_with_1(job: FakeJob) -> None:
    job.problem = JobFailed("it was not drained within 7 s")
    failed = penstock("stop")
    assert failed.exit_code == 1
    assert failed.stderr == "penstock: it was not drained within 7 s\n"


@pytest.mark.usefixtures("driver")
def test_two_flows_of_one_name_are_told_apart(runtime: Path) -> None:
    other = FakeJob()
    with opened(runtime, other, greeting(run="00ff00ff", pid=815)):
        ambiguous = penstock("stop", "primes")
        assert ambiguous.exit_code == 2
        assert '"primes" stands for 2 flows: ' in ambiguous.stderr
        assert "run 9f12ab34, pid 4711" in ambiguous.stderr
        assert "run 00ff00ff, pid 815" in ambiguous.stderr
        assert other.stop_timeout_s is None
        assert penstock("stop", "00ff").exit_code == 0
        assert other.stop_timeout_s == 60.0
