"""Another checkout of Penstock, whose benches run in processes of their own with its own engine."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import penstock
from penstock.bench.own_session import Finished, run_in_own_session

BUILD_BRIDGE = Path("penstock", "spark", "build_bridge.py")
WHERE = "import penstock; print(penstock.__file__)"
COMMAND = "from penstock.cli.main import app; app()"
TURN_TIMEOUT_S = 900.0
PASSED_OR_FAILED = (0, 1)
LAST_LINES = 15


class CheckoutError(ValueError):
    """A directory is no checkout of Penstock, or its benches cannot be run; the message says why."""


class ReportedCheck(msgspec.Struct, frozen=True):
    """A check as a bench of any version prints it."""

    name: str
    value: float | None
    op: str
    ok: bool


class Report(msgspec.Struct, frozen=True):
    """What `penstock bench NAME --json` of any version prints, as far as it is used here."""

    figures: dict[str, Any]
    checks: list[ReportedCheck]


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a bench: its report, and the cores that others had meanwhile."""

    report: Report
    neighbours_cores: float = 0.0
    stolen_cores: float = 0.0


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with a package `penstock`."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> "Checkout":
        """The checkout in a directory that the user named."""
        if not path.is_dir():
            raise CheckoutError(f"--against {path}: there is no such directory; name a checkout of Penstock")
        for part in (Path("penstock"), Path("java"), BUILD_BRIDGE):
            if not (path / part).exists():
                raise CheckoutError(
                    f"--against {path}: is no checkout of Penstock, it has no {part}; "
                    "name the top directory of one, for example of `git worktree add ../before main`"
                )
        return cls(path.resolve())

    @classmethod
    def own(cls) -> "Checkout":
        """The one that this process runs."""
        return cls(Path(penstock.__file__).resolve().parents[1])

    def prepare(self) -> None:
        """Build its bridge, and make sure that it is this engine that will run."""
        built = self._python("-P", str(self.root / BUILD_BRIDGE))
        if built.returncode:
            raise CheckoutError(f"{self.root}: its Java bridge was not built\n{_end_of(built.stderr)}")
        found = self._python("-c", WHERE)
        if found.returncode:
            raise CheckoutError(f"{self.root}: its package cannot be imported\n{_end_of(found.stderr)}")
        package = Path(found.stdout.strip()).resolve()
        if not package.is_relative_to(self.root / "penstock"):
            raise CheckoutError(
                f"{self.root}: its engine would not be measured, `import penstock` gives {package} there; "
                "uninstall the Penstock that hides it, or install that one with `make setup`"
            )

    def run(self, bench: str) -> Ran:
        """The quick form of a bench, whose own bars may be kept or missed."""
        command = [sys.executable, "-c", COMMAND, "bench", bench, "--quick", "--json"]
        with tempfile.TemporaryDirectory(prefix="penstock-against-") as empty:
            finished = run_in_own_session(
                command,
                environment=self._environment(),
                directory=Path(empty),
                timeout_s=TURN_TIMEOUT_S,
            )
        if finished is None:
            raise CheckoutError(f"{self.root}: bench {bench} was not done after {TURN_TIMEOUT_S:.0f} s")
        return Ran(self._report(bench, finished), finished.neighbours_cores, finished.stolen_cores)

    def _report(self, bench: str, finished: Finished) -> Report:
        lines = finished.out.splitlines()
        if finished.code in PASSED_OR_FAILED and lines:
            try:
                return msgspec.json.decode(lines[-1], type=Report)
            except msgspec.DecodeError:
                pass
        raise CheckoutError(
            f"{self.root}: bench {bench} gave no figures (exit code {finished.code})\n{_end_of(finished.err)}"
        )

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Where a turn runs, too: in an empty directory, because Python finds what is beside it first."""
        with tempfile.TemporaryDirectory(prefix="penstock-against-") as empty:
            return subprocess.run(
                [sys.executable, *arguments],
                env=self._environment(),
                cwd=empty,
                capture_output=True,
                text=True,
                check=False,
            )

    def _environment(self) -> dict[str, str]:
        inherited = os.environ.get("PYTHONPATH")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(self.root), inherited]))}


def _end_of(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
