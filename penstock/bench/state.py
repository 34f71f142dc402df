"""Keyed state: what it costs, how it follows replicas, how it comes back, and what others do."""

from collections.abc import Sequence

from penstock.bench.harness import Effort, Result
from penstock.bench.parts import Part, run_parts
from penstock.bench.state_count import count
from penstock.bench.state_peers import peers
from penstock.bench.state_recovery import recovery
from penstock.bench.state_rescale import rescale

EXPERIMENTS: dict[str, Part] = {"count": count, "rescale": rescale, "recovery": recovery, "peers": peers}


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """All parts, or those named."""
    return run_parts("state", EXPERIMENTS, effort, only)
