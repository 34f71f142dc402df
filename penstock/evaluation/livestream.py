"""Livestream: immediate shipping, batching, batching with chaining (thesis, figures 5.5 and 5.10)."""

from pathlib import Path

from penstock.apps.livestream import flow
from penstock.bench.harness import Check, ratio
from penstock.evaluation.panels import Line, Panel, draw
from penstock.evaluation.part import Part, Picture, Runs, Table, ms, number, percent
from penstock.evaluation.series import cores, settled
from penstock.evaluation.trial import Trial, controlled
from penstock.flow import Flow
from penstock.report.history import History
from penstock.report.metrics import figures_of, held

SECONDS = 40.0
IMMEDIATE, BATCHING, CHAINING = "livestream-immediate", "livestream-batching", "livestream-chaining"
WORDS = {IMMEDIATE: "immediate shipping", BATCHING: "batching", CHAINING: "batching and chaining"}
# Mean latency of figures 5.5 and 5.10; of immediate shipping the thesis says "lower and steadier" (5.2.2).
PAPER_MS = {IMMEDIATE: "lower than batching", BATCHING: "about 40 ms", CHAINING: "18-19 ms"}
PAPER_CORES = {IMMEDIATE: "–", BATCHING: "100 %", CHAINING: "67 %"}


def trials() -> list[Trial]:
    """The same film three times; nephele is the same but for its chaining."""
    return [
        controlled(IMMEDIATE, SECONDS, _film, "static"),
        controlled(BATCHING, SECONDS, _film, "nephele", "nephele.chaining=off"),
        controlled(CHAINING, SECONDS, _film, "nephele"),
    ]


def _film(recording: Path) -> Flow:
    films = recording.with_suffix("")
    for old in films.glob("group-*"):
        old.unlink()
    return flow(seconds=SECONDS, out=str(films))


def part(runs: Runs) -> Part:
    """Latency and CPU side by side, once each run has settled."""
    figures = {name: figures_of(settled(runs[name])) for name in WORDS}
    kept = {name: figures[name].kept["live"] for name in WORDS}
    unchained = figures[BATCHING].cores_used
    since = held_since_chained(runs[CHAINING])
    rows = [
        (
            words,
            ms(kept[name].mean_ms),
            PAPER_MS[name],
            ms(kept[name].p95_ms),
            number(figures[name].cores_used),
            percent(ratio(figures[name].cores_used, unchained)),
            PAPER_CORES[name],
            percent(kept[name].share_held),
        )
        for name, words in WORDS.items()
    ]
    return Part(
        title="Livestream: what batching and chaining do",
        about=f"Two groups of four cameras through one pipeline, {SECONDS:g} s for each way; the figures are"
        " from the time when each run has settled. Cores are those of everything: driver, JVM, workers.",
        tables=[
            Table(
                (
                    "run",
                    "mean latency",
                    "thesis",
                    "95th percentile",
                    "busy cores",
                    "of batching",
                    "thesis",
                    "intervals within 50 ms",
                ),
                rows,
            )
        ],
        differs="The thesis has 3,200 cameras of the same size and 400 pipelines on servers of four cores."
        " Its CPU is that of the workers; ours has Spark's own threads in it, which chaining leaves alone.",
        checks=[
            Check(
                "livestream: latency of batching over chaining",
                ratio(kept[BATCHING].mean_ms, kept[CHAINING].mean_ms),
                ">=",
                2.0,
            ),
            Check(
                "livestream: CPU of chaining over batching",
                ratio(figures[CHAINING].cores_used, unchained),
                "<=",
                2 / 3,
            ),
            Check("livestream: intervals held once chained", since, ">=", 1.0),
        ],
        pictures=[
            Picture(
                "evaluation_livestream",
                "Livestream with immediate shipping, batching, and batching with chaining",
                lambda: draw(_panels(runs)),
            )
        ],
    )


def held_since_chained(history: History) -> float | None:
    """Share of the intervals held from the first on that began with a chain; None if there never was one."""
    chained = [any(len(chain) > 1 for chain in snapshot.chains) for snapshot in history.snapshots]
    if True not in chained:
        return None
    verdicts = [
        verdict for verdict in held(history, "live")[chained.index(True) + 1 :] if verdict is not None
    ]
    return sum(verdicts) / len(verdicts) if verdicts else None


def _panels(runs: Runs) -> list[Panel]:
    bound_ms = runs[CHAINING].constraints[0].latency_ms
    means = [Line(words, runs[name], runs[name].latencies_ms("live")) for name, words in WORDS.items()]
    busy = [Line(words, runs[name], cores(runs[name])) for name, words in WORDS.items()]
    return [Panel("mean latency [ms]", means, bound_ms=bound_ms), Panel("busy cores", busy)]
