"""PrimeTest under every policy, with testers that sleep and testers that compute (thesis, section 5.3.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from penstock import elastic
from penstock.apps.primetest import Work, drop, prime_flow, short_profile
from penstock.evaluation.panels import Line, Panel, draw
from penstock.evaluation.part import Part, Picture, Runs, Table, ms, number, percent
from penstock.evaluation.series import replicas, sent_per_s
from penstock.evaluation.trial import Trial, controlled
from penstock.flow import Flow
from penstock.report.metrics import figures_of

SECONDS = 60.0
POLICIES = ("nephele", "ds2", "mape", "threshold", "static")


@dataclass(frozen=True, slots=True)
class Variant:
    """Testers that take `items_per_s` by sleeping, or as many as they can; `most` are enough for the peak."""

    work: Work
    high_per_s: float
    most: int
    items_per_s: float = 1000.0
    words: str = ""


VARIANTS: Final = (
    Variant("rate_limited", 3000.0, 16, items_per_s=250.0, words="rate-limited, 4 ms a number, 1 to 16"),
    Variant("cpu", 6000.0, 2, words="computing, about 0.09 ms a number, 1 to 2"),
)


def trials() -> list[Trial]:
    """Static testers are as many as the peak needs; all others begin with one."""
    return [
        controlled(_name(variant, policy), SECONDS, _testing(variant, policy), policy)
        for variant in VARIANTS
        for policy in POLICIES
    ]


def _name(variant: Variant, policy: str) -> str:
    return f"primetest-{variant.work}-{policy}"


def _testing(variant: Variant, policy: str) -> Callable[[Path], Flow]:
    initial = variant.most if policy == "static" else 1

    def make(_: Path) -> Flow:
        return prime_flow(
            short_profile(variant.high_per_s),
            drop,
            testers=elastic(1, variant.most, initial=initial, pool=variant.most),
            lifetime="5 ms",
            work=variant.work,
            items_per_s=variant.items_per_s,
        )

    return make


def part(runs: Runs) -> Part:
    """A table and a picture for each variant."""
    return Part(
        title="PrimeTest: all policies, both variants",
        about=f"{SECONDS:g} s: low, three steps up to ten times as much, a plateau, down again; 20 ms. Both"
        " variants have the same policies with the same settings. The table of the thesis has 20 ms held in"
        " 92.6 % of intervals (91 % in figure 5.8) with a 95th percentile of 30 ms, by its own policy alone.",
        tables=[_table(variant, runs) for variant in VARIANTS],
        differs="The thesis has 32 sources of up to 80,000 numbers/s, up to 392 testers on 130 servers, steps"
        " of a minute and an interval of 5 s. Here a step lasts 8 to 14 s and an interval 2 s, so that what a"
        " policy misses after a step weighs several times as much. `penstock bench control` runs"
        " the long profile.",
        pictures=[
            Picture(
                f"evaluation_primetest_{variant.work}",
                f"PrimeTest, {variant.words} testers",
                partial(_drawn, variant, runs),
            )
            for variant in VARIANTS
        ],
    )


def _table(variant: Variant, runs: Runs) -> Table:
    rows = []
    for policy in POLICIES:
        figures = figures_of(runs[_name(variant, policy)])
        kept = next(iter(figures.kept.values()))
        rows.append(
            (
                policy,
                percent(kept.share_held),
                ms(kept.mean_ms),
                ms(kept.p95_ms),
                number(figures.task_hours["tester"] * 3600, 0),
                str(figures.changes),
                number(figures.cores_used),
            )
        )
    header = (
        f"{variant.words} testers",
        "intervals within 20 ms",
        "mean latency",
        "95th percentile",
        "replica-seconds",
        "changes",
        "busy cores",
    )
    return Table(header, rows)


def _drawn(variant: Variant, runs: Runs) -> Figure:
    histories = {policy: runs[_name(variant, policy)] for policy in POLICIES}
    first = histories[POLICIES[0]]
    name = first.constraints[0].name
    panels = [
        Panel("numbers/s", [Line("sent", first, sent_per_s(first))]),
        Panel(
            "mean latency [ms]",
            [Line(policy, history, history.latencies_ms(name)) for policy, history in histories.items()],
            bound_ms=first.constraints[0].latency_ms,
        ),
        Panel(
            "testers",
            [Line(policy, history, replicas(history, "tester")) for policy, history in histories.items()],
            whole=True,
        ),
    ]
    return draw(panels)
