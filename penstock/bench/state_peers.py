"""A count by key beside PySpark's micro-batches with RocksDB and Bytewax with snapshots, in turn."""

import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from penstock.bench.harness import Check, Effort, median, ratio
from penstock.bench.latency import VALID_LAG_MS
from penstock.bench.own_session import OwnSession
from penstock.bench.peer_counts import KEYS, SETTINGS
from penstock.bench.peer_environments import LIBRARIES, PeerMissingError, python_of
from penstock.bench.peer_spark import MICRO, OWN
from penstock.bench.peers import (
    KEPT_SHARE,
    Case,
    Contestant,
    Length,
    Measured,
    contest,
    peers_environment,
)
from penstock.bench.telling import tell

BYTEWAX: Final = "bytewax"
BYTEWAX_SETTINGS: Final = (
    "two processes of one worker each; stateful_map by key, a snapshot of what has changed each second; the"
    " source sleeps by next_awake and gives at most 100 items at once"
)
CASE: Final = Case(1, 1000.0)
LENGTHS: Final = {
    Effort.QUICK: Length(1.5, 3, 1, first_s=1, cases=(CASE,)),
    Effort.FULL: Length(5, 12, 2, first_s=10, cases=(CASE,)),
}
MOST_OF_MICRO: Final = 0.1
"""p50 of Penstock, of that of micro-batches."""


def peers(effort: Effort) -> tuple[dict[str, Any], list[Check]]:
    """Each in a process of its own, which stays from turn to turn."""
    measured = Measured()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place, ExitStack() as sessions:
        scratch = Path(place)
        ours, theirs = peers_environment(scratch)
        contestants: dict[str, Contestant] = {}
        for name, command in _commands(measured.skipped).items():
            tell(f"  {name} begins")
            own = scratch / name
            own.mkdir()
            environment = theirs if name == BYTEWAX else ours
            session = OwnSession(command, environment=environment, directory=own)
            contestants[name] = Contestant(sessions.enter_context(session), own)
        contest(contestants, LENGTHS[effort], measured)
    return summarise(measured)


def _commands(skipped: dict[str, str]) -> dict[str, list[str]]:
    commands = {name: [sys.executable, "-P", "-m", "penstock.bench.peer_counts", name] for name in SETTINGS}
    try:
        python = python_of(LIBRARIES[BYTEWAX])
    except PeerMissingError as problem:
        skipped[BYTEWAX] = f"cannot be installed: {problem}"
    else:
        commands[BYTEWAX] = [str(python), "-m", "peer_programs.counts_in_bytewax"]
    return commands


def summarise(measured: Measured) -> tuple[dict[str, Any], list[Check]]:
    """Beside each other; the bars are Penstock's own."""
    turns = measured.turns.get(CASE.name, {})
    paced = {name: [None if one is None else asdict(one) for one in taken] for name, taken in turns.items()}
    settings = {**SETTINGS, BYTEWAX: BYTEWAX_SETTINGS}
    figures: dict[str, Any] = {
        "keys": KEYS,
        "items_per_s": CASE.rate_per_s,
        "settings": {name: text for name, text in settings.items() if name not in measured.skipped},
        **{f"{name}_skipped": why for name, why in measured.skipped.items()},
        "paced": paced,
        "highest_items_per_s": measured.highest,
    }
    p50 = {name: median([one.p50_ms for one in taken if one is not None]) for name, taken in turns.items()}
    own = [one for one in turns.get(OWN, []) if one is not None]
    checks = [
        Check("p50 of a count / micro-batches", ratio(p50.get(OWN), p50.get(MICRO)), "<=", MOST_OF_MICRO),
        Check("contestants that were measured", _measured(turns, measured), "==", len(settings)),
        Check("valid run: worst source lag p99, ms", _worst(own, "lag_p99_ms"), "<=", VALID_LAG_MS),
        Check("valid run: lowest rate kept", _lowest(own), ">=", KEPT_SHARE * CASE.rate_per_s),
        Check("peers: items lost", sum(one.lost for one in own) if own else None, "==", 0),
        Check("peers: items duplicated", sum(one.duplicated for one in own) if own else None, "==", 0),
    ]
    return figures, checks


def _measured(turns: Mapping[str, list[Any]], measured: Measured) -> int:
    """Whoever had a turn with something in it."""
    paced = {name for name, taken in turns.items() if any(one is not None for one in taken)}
    highest = {name for name, rates in measured.highest.items() if any(rate is not None for rate in rates)}
    return len(paced | highest)


def _worst(own: list[Any], part: str) -> float | None:
    return max((getattr(one, part) for one in own), default=None)


def _lowest(own: list[Any]) -> float | None:
    return min((one.items_per_s for one in own), default=None)
