"""`penstock simulate --shares`: what it costs to hold the constraints of a flow more often."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table

from penstock.cli.simulate_options import BesideError
from penstock.sim.run import simulate
from penstock.sim.summary import Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from penstock.policy.port import Policy
    from penstock.sim.model import FlowModel
    from penstock.sim.run import Point

PLANS_WITH_SHARES = "penstock"


@dataclasses.dataclass(frozen=True, slots=True)
class ShareCost:
    """A share that was asked for, how often each constraint was held, and what that took."""

    share: float
    held: dict[str, float]
    replica_hours: float
    changes: int


def shares_of(text: str, policy: str, recording: Path | None) -> list[float]:
    """`0.9,0.95,0.99`, for a policy that plans with them; several runs make no recording."""
    if recording is not None:
        raise BesideError("--shares is several runs, and --recording is of one; leave one of them out")
    if policy != PLANS_WITH_SHARES:
        raise BesideError(f"--shares: {policy} knows no shares; use it with --policy {PLANS_WITH_SHARES}")
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise BesideError(f"--shares: {text!r} is no list of numbers such as 0.9,0.95,0.99") from None
    for share in shares:
        if not 0.0 < share < 1.0:
            raise BesideError(f"--shares: {share:g} is not between 0 and 1")
    return shares


def with_share(flow: FlowModel, share: float) -> FlowModel:
    """Each of its constraints is to be held in this share of the intervals."""
    asked = tuple(msgspec.structs.replace(one, share=share) for one in flow.constraints)
    return dataclasses.replace(flow, constraints=asked)


def costs(
    flow: FlowModel,
    create: Callable[[], Policy[Any]],
    shares: Sequence[float],
    *,
    seed: int,
    seconds: float,
    each: Callable[[Point], None],
) -> list[ShareCost]:
    """The same flow, load and luck once for each share."""
    runs = {
        share: simulate(with_share(flow, share), create(), seed=seed, seconds=seconds, each=each)
        for share in shares
    }
    return [_cost(share, summarise(run)) for share, run in runs.items()]


def _cost(share: float, summary: Summary) -> ShareCost:
    return ShareCost(
        share=share,
        held={name: outcome.share_held for name, outcome in summary.constraints.items()},
        replica_hours=sum(summary.task_hours.values()),
        changes=summary.actions,
    )


def show_costs(flow: FlowModel, found: Sequence[ShareCost]) -> None:
    """As a table; the last column is against the first row."""
    names = [one.name for one in flow.constraints]
    table = Table(
        "share", *(f"{name} held" for name in names), "replica-hours", "changes", "cost", title=flow.name
    )
    for one in found:
        cost = one.replica_hours / found[0].replica_hours if found[0].replica_hours else 1.0
        table.add_row(
            f"{one.share:g}",
            *(f"{one.held[name]:.1%}" for name in names),
            f"{one.replica_hours:.2f}",
            str(one.changes),
            f"{cost:.2f}",
        )
    Console().print(table)
