"""Plans of the oracle on the disk: they depend on flow, seed and simulator alone, and are dear to find."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import penstock.arena
import penstock.policy
import penstock.sim
from penstock.arena.oracle import Plan, find_plan

if TYPE_CHECKING:
    from penstock.sim.model import FlowModel

_JUDGES = ("held.py", "measured.py")


def default_directory() -> Path:
    """In PENSTOCK_CACHE, or in the user's cache directory."""
    if own := os.environ.get("PENSTOCK_CACHE"):
        return Path(own) / "arena"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / "arena"


def plan_for(flow: FlowModel, seed: int, directory: Path | None) -> Plan:
    """The plan that is kept, or a new one, which then is; without a directory nothing is kept."""
    if directory is None:
        return find_plan(flow, seed)
    path = directory / f"{_digest(flow, seed)}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except (FileNotFoundError, msgspec.DecodeError):
        plan = find_plan(flow, seed)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=directory, suffix=".part", delete=False) as file:
        file.write(msgspec.json.encode(plan))
    Path(file.name).replace(path)
    return plan


def _digest(flow: FlowModel, seed: int) -> str:
    return hashlib.sha256(f"{_sources()} {seed} {flow!r}".encode()).hexdigest()


@cache
def _sources() -> str:
    """What the plans depend on: the simulator, the search, and what counts as held."""
    files = [
        *Path(penstock.sim.__path__[0]).glob("*.py"),
        *(Path(penstock.policy.__path__[0]) / name for name in _JUDGES),
        *(
            Path(penstock.arena.__path__[0]) / f"{name}.py"
            for name in ("descent", "foresight", "moments", "oracle")
        ),
    ]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
