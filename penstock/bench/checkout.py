"""Another checkout of Penstock, whose benches run in processes of their own with its own engine."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import penstock
from penstock.bench.own_session import OwnSession, SessionEndedError

BUILD_BRIDGE = Path("penstock", "spark", "build_bridge.py")
WHERE = "import penstock; print(penstock.__file__)"
# The process stays, so that what Java has compiled serves the next turn too.
TURNS = Path(__file__).with_name("turns.py")
TURN_TIMEOUT_S = 900.0
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

    @contextmanager
    def contestant(self) -> Iterator[Callable[[str], Ran]]:
        """A function that runs the quick form of a bench, whose own bars may be kept or missed."""
        with (
            tempfile.TemporaryDirectory(prefix="penstock-against-") as empty,
            OwnSession(
                [sys.executable, "-P", str(TURNS)], environment=self.environment(), directory=Path(empty)
            ) as session,
        ):
            yield lambda bench: self._turn(session, bench)

    def _turn(self, session: OwnSession, bench: str) -> Ran:
        try:
            answered = session.ask(bench, TURN_TIMEOUT_S)
            report = msgspec.json.decode(answered.text, type=Report)
        except (SessionEndedError, msgspec.DecodeError) as problem:
            raise CheckoutError(f"{self.root}: bench {bench} gave no figures: {problem}") from None
        return Ran(report, answered.neighbours_cores, answered.stolen_cores)

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Where a turn runs, too: in an empty directory, because Python finds what is beside it first."""
        with tempfile.TemporaryDirectory(prefix="penstock-against-") as empty:
            return subprocess.run(
                [sys.executable, *arguments],
                env=self.environment(),
                cwd=empty,
                capture_output=True,
                text=True,
                check=False,
            )

    def environment(self) -> dict[str, str]:
        """Of a process that imports this checkout."""
        inherited = os.environ.get("PYTHONPATH")
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(self.root), inherited]))}


def _end_of(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
