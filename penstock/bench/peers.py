"""Penstock beside other libraries for streams in Python, with the same items on the same machine in turn.

Items of 32 bytes that do nothing but travel, over one and two hops, 1,000 and 3,000 a second: latency from
due time to sink, CPU of all processes. The highest rate is what arrives over two hops when more is offered
than anybody takes. Each contestant has processes of its own, which stay from turn to turn where it can.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy

from penstock.bench import peer_programs
from penstock.bench.harness import Check, Effort, Result, median, ratio
from penstock.bench.latency import VALID_LAG_MS
from penstock.bench.own_session import OwnSession, SessionEndedError
from penstock.bench.peer_environments import LIBRARIES, PeerMissingError, python_of
from penstock.bench.peer_programs.items import Asked
from penstock.bench.peer_spark import MICRO, OWN, OWN_BATCHED, SETTINGS
from penstock.bench.telling import tell
from penstock.processes import steady_cpu_s
from penstock.testing import Ledger
from penstock.testing.arrivals import Entries, arrivals

OFFERED_PER_S: Final = 5_000_000.0
HIGHEST: Final = "highest"
KEPT_SHARE: Final = 0.9
BARS: Final = {"p50_ms": 1.0, "p99_ms": 1.5, "cpu_us": 1.15}
"""Against Bytewax, in every case."""
BARRED: Final = (OWN, OWN_BATCHED, "bytewax")
EXPERIMENTS: Final = (MICRO, *LIBRARIES)
"""Contestants that can be left out; Penstock always takes part."""
REPEATS: Final = 2
"""How often a turn whose source was late is repeated at most; then it counts."""
_TURN_S: Final = 180.0  # beyond what a turn is meant to take
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Case:
    """So many hops at so many items a second."""

    hops: int
    rate_per_s: float

    @property
    def name(self) -> str:
        return f"{self.hops}_hops_at_{self.rate_per_s:.0f}_items_per_s"


@dataclass(frozen=True, slots=True)
class Length:
    """What of a turn is cut off, how long the look after it is, how many turns there are, and of what."""

    warm_up_s: float
    look_s: float
    turns: int
    first_s: float
    cases: tuple[Case, ...]

    @property
    def turn_s(self) -> float:
        """Whoever looks at a turn is done before it ends."""
        return self.warm_up_s + self.look_s + 1


LENGTHS: Final = {
    Effort.QUICK: Length(2, 4, 1, first_s=2, cases=(Case(1, 1000.0), Case(2, 3000.0))),
    Effort.FULL: Length(
        10, 20, 3, first_s=30, cases=tuple(Case(hops, rate) for hops in (1, 2) for rate in (1000.0, 3000.0))
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A contestant in a case; CPU is that of an item. Latency and lag are of the items after the warm-up."""

    p50_ms: float
    p99_ms: float
    cpu_us: float | None
    items_per_s: float
    lag_p99_ms: float
    lost: int
    duplicated: int
    reordered: int


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU of a window."""

    begin_ns: int
    end_ns: int
    cpu_s: float


class Watch(threading.Thread):
    """Looks at the CPU of a contestant's processes for a while, a warm-up after the first arrival."""

    def __init__(self, directory: Path, root: int, length: Length) -> None:
        super().__init__(name="penstock-watch", daemon=True)
        self._directory, self._root, self._length = directory, root, length
        self._over = threading.Event()
        self.spent: Spent | None = None

    def run(self) -> None:
        while not any(file.stat().st_size for file in self._directory.iterdir()):
            if self._over.wait(_LOOK_S):
                return
        if self._over.wait(self._length.warm_up_s):
            return
        begin_ns, before_s = time.monotonic_ns(), steady_cpu_s(self._root)
        if not self._over.wait(self._length.look_s):
            self.spent = Spent(begin_ns, time.monotonic_ns(), steady_cpu_s(self._root) - before_s)

    def end(self) -> Spent | None:
        """What it saw; None if the turn was over before it had looked."""
        self._over.set()
        self.join()
        return self.spent


Ask = Callable[[str, Asked], tuple[Entries, Spent | None] | None]
"""A contestant for a turn: what arrived, and what it took; None if it takes part no longer."""


class Contestant:
    """A process that is asked for turns, and a place for what arrives."""

    def __init__(self, session: OwnSession, scratch: Path) -> None:
        self._session, self._scratch = session, scratch
        self._numbers = count()

    def take(self, asked: Asked, length: Length) -> tuple[Entries, Spent | None]:
        """What arrived, and what it took."""
        directory = self._scratch / str(next(self._numbers))
        directory.mkdir()
        watch = Watch(directory, self._session.pid, length)
        watch.start()
        try:
            question = msgspec.json.encode(asked._replace(directory=str(directory))._asdict()).decode()
            self._session.ask(question, asked.seconds + _TURN_S)
            return arrivals(Ledger(str(directory))), watch.end()
        finally:
            watch.end()
            shutil.rmtree(directory)


def turn(entries: Entries, spent: Spent | None, sent: int | None, length: Length) -> Turn | None:
    """None if nothing came after the warm-up. How many were sent is not known of every source."""
    if not len(entries):
        return None
    kept = entries.where(entries.due_ns >= entries.arrived_ns.min() + round(length.warm_up_s * 1e9))
    if not len(kept):
        return None
    p50_ms, p99_ms = (float(value) for value in numpy.percentile(kept.latency_ms(), [50, 99]))
    seen = 0 if spent is None else _between(entries, spent.begin_ns, spent.end_ns)
    return Turn(
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        cpu_us=spent.cpu_s * 1e6 / seen if spent is not None and seen else None,
        items_per_s=0.0 if spent is None else seen * 1e9 / (spent.end_ns - spent.begin_ns),
        lag_p99_ms=float(numpy.percentile(kept.mark, 99)) * 1e-6,
        lost=entries.lost(None if sent is None else {0: sent}),
        duplicated=entries.duplicated(),
        reordered=entries.reordered(),
    )


def highest_per_s(entries: Entries, length: Length) -> float | None:
    """What arrived in the window that a turn is looked at, by when it arrived; None if nothing did."""
    if not len(entries):
        return None
    begin_ns = int(entries.arrived_ns.min()) + round(length.warm_up_s * 1e9)
    seen = _between(entries, begin_ns, begin_ns + round(length.look_s * 1e9))
    return seen / length.look_s if seen else None


def _between(entries: Entries, begin_ns: int, end_ns: int) -> int:
    return int(numpy.count_nonzero((entries.arrived_ns >= begin_ns) & (entries.arrived_ns < end_ns)))


@dataclass(slots=True)
class Measured:
    """Turns by case and contestant, highest rates, why some have none, and turns that were repeated."""

    turns: dict[str, dict[str, list[Turn | None]]] = field(default_factory=dict)
    highest: dict[str, list[float | None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    repeated: dict[str, dict[str, list[Turn | None]]] = field(default_factory=dict)

    def take_turn(self, case: Case, name: str, ask: "Ask", length: Length) -> None:
        """One that counts; it is repeated while its source is late, and not too often."""
        for left in range(REPEATS, -1, -1):
            found = ask(name, Asked(case.hops, case.rate_per_s, length.turn_s, ""))
            if found is None:
                return
            sent = None if name == MICRO else round(case.rate_per_s * length.turn_s)
            one = turn(*found, sent, length)
            lag_ms = 0.0 if one is None or name not in BARRED else one.lag_p99_ms
            is_repeated = left > 0 and lag_ms > VALID_LAG_MS
            of_case = (self.repeated if is_repeated else self.turns).setdefault(case.name, {})
            of_case.setdefault(name, []).append(one)
            if not is_repeated:
                return
            tell(f"  not valid, so repeated: its source was {lag_ms:.1f} ms late at p99")


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """Whoever goes first in one turn goes last in the next."""
    length, measured = LENGTHS[effort], Measured()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place, ExitStack() as sessions:
        scratch = Path(place)
        commands = chosen(only, measured.skipped)
        environment = peers_environment(scratch)
        contestants: dict[str, Contestant] = {}
        for name, command in commands.items():
            own = scratch / name
            own.mkdir()
            session = OwnSession(command, environment=environment[name in LIBRARIES], directory=own)
            contestants[name] = Contestant(sessions.enter_context(session), own)
        contest(contestants, length, measured)
    return summarise(measured, length)


def chosen(only: Sequence[str], skipped: dict[str, str]) -> dict[str, list[str]]:
    """The commands of those that take part; why a library cannot be had is told."""
    commands = {name: [sys.executable, "-P", "-m", "penstock.bench.peer_spark", name] for name in SETTINGS}
    if only and MICRO not in only:
        del commands[MICRO]
    for name, library in LIBRARIES.items():
        if only and name not in only:
            continue
        try:
            python = python_of(library)
        except PeerMissingError as problem:
            skipped[name] = f"cannot be installed: {problem}"
            continue
        commands[name] = [str(python), "-m", f"peer_programs.{library.program}"]
    return commands


def peers_environment(scratch: Path) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Of Penstock's processes, and of those that must not find anything of Penstock."""
    programs = scratch / "programs"
    shutil.copytree(Path(peer_programs.__path__[0]), programs / "peer_programs")
    ours = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return ours, {**os.environ, "PYTHONPATH": str(programs)}


def contest(contestants: Mapping[str, Contestant], length: Length, measured: Measured) -> None:
    """All turns; those of whom no bar speaks have one. Another library may fail: that is told, and it takes
    part no longer.
    """

    def ask(name: str, asked: Asked) -> tuple[Entries, Spent | None] | None:
        if name in measured.skipped:
            return None
        tell(f"  {name}, {asked.hops} hops, {asked.rate_per_s:,.0f} items/s")
        try:
            return contestants[name].take(asked, length)
        except SessionEndedError as problem:
            if name.startswith(OWN):
                raise
            measured.skipped[name] = str(problem).strip().splitlines()[-1][:200]
            return None

    paced = [name for name in contestants if name != OWN_BATCHED]
    for name in contestants:  # what compiles while it runs is slow at first
        ask(name, Asked(1, 1000.0, length.first_s, ""))
    for number in range(length.turns):
        if number == 1:
            contestants = {name: one for name, one in contestants.items() if name in BARRED}
            paced = [name for name in paced if name in BARRED]
        for case in length.cases:
            for name in paced if number % 2 == 0 else paced[::-1]:
                measured.take_turn(case, name, ask, length)
        for name in contestants:
            found = ask(name, Asked(2, OFFERED_PER_S, length.turn_s, "", flat_out=True))
            if found is not None:
                measured.highest.setdefault(name, []).append(highest_per_s(found[0], length))


def summarise(measured: Measured, length: Length) -> Result:
    """Medians of the turns against Bytewax's; where that was skipped the checks fail."""
    cases = {case.name: measured.turns.get(case.name, {}) for case in length.cases}
    took_part = {name for of_case in cases.values() for name in of_case} | measured.highest.keys()
    settings = {**SETTINGS, **{name: library.settings for name, library in LIBRARIES.items()}}
    figures: dict[str, Any] = {
        "settings": {name: text for name, text in settings.items() if name in took_part},
        **{f"{name}_skipped": why for name, why in measured.skipped.items()},
        **{name: _shown(of) for name, of in cases.items()},
        f"{HIGHEST}_items_per_s": measured.highest,
        "repeated_since_not_valid": {name: _shown(of) for name, of in measured.repeated.items()},
    }
    checks = [
        Check(
            f"{part.replace('_', ' ')}, {case.hops} hops at {case.rate_per_s:,.0f}/s / Bytewax",
            ratio(_middle(cases[case.name], OWN, part), _middle(cases[case.name], "bytewax", part)),
            "<=",
            bar,
        )
        for case in length.cases
        for part, bar in BARS.items()
    ]
    tried = [*cases.values(), *measured.repeated.values()]
    own = [one for of in tried for one in of.get(OWN, []) if one is not None]
    sources = [one for of in cases.values() for who in (OWN, "bytewax") for one in of.get(who, [])]
    shares = [
        one.items_per_s / case.rate_per_s
        for case in length.cases
        for one in cases[case.name].get(OWN, [])
        if one is not None
    ]
    lag_ms = max((one.lag_p99_ms for one in sources if one is not None), default=None)
    checks += [
        Check("valid run: worst source lag p99, ms", lag_ms, "<=", VALID_LAG_MS),
        Check("valid run: lowest share of a rate kept", min(shares, default=None), ">=", KEPT_SHARE),
        Check("items lost", sum(one.lost for one in own) if own else None, "==", 0),
        Check("items duplicated", sum(one.duplicated for one in own) if own else None, "==", 0),
        Check("items reordered", sum(one.reordered for one in own) if own else None, "==", 0),
    ]
    return Result("peers", figures, checks)


def _shown(of_case: Mapping[str, list[Turn | None]]) -> dict[str, list[dict[str, Any] | None]]:
    return {who: [None if one is None else asdict(one) for one in turns] for who, turns in of_case.items()}


def _middle(of_case: Mapping[str, list[Turn | None]], who: str, part: str) -> float | None:
    values = [getattr(one, part) for one in of_case.get(who, []) if one is not None]
    return median([value for value in values if value is not None])
