"""TwitterSentiments under nephele: a day in four minutes (thesis, section 5.3.2 and figure 5.9)."""

from pathlib import Path

from penstock.apps.twitter import day, flow
from penstock.bench.harness import Check, ratio
from penstock.evaluation.panels import Line, Panel, draw
from penstock.evaluation.part import Part, Picture, Runs, Table, ms, number, percent
from penstock.evaluation.series import mean, replicas, sent_per_s, within
from penstock.evaluation.trial import Trial, controlled
from penstock.flow import Flow
from penstock.report.history import History
from penstock.report.metrics import figures_of

SECONDS = 240.0
LOW_PER_S, HIGH_PER_S = 80.0, 300.0
ELASTIC = ("hot_topics", "filter", "sentiment")
# A day has no sharp edge: what the replicas were before the crowd is their mean over so long.
BEFORE_S = 20.0
# Until the replicas that a crowd needs are there.
REACTION_S = 6.0
PAPER = {"topics": ("93 %", "close to 215 ms"), "sentiments": ("96 %", "close to 25 ms, but for bursts")}


def trials() -> list[Trial]:
    """One day."""
    return [controlled("twitter", SECONDS, _day, "nephele")]


def _day(_: Path) -> Flow:
    return flow(seconds=SECONDS, low_per_s=LOW_PER_S, high_per_s=HIGH_PER_S)


def part(runs: Runs) -> Part:
    """Constraints, replicas in the busy and the quiet quarter, and what the crowd did."""
    history = runs["twitter"]
    figures = figures_of(history)
    begin_s, end_s = crowd()
    grown = {task: _growth(history, task, begin_s, end_s) for task in ELASTIC}
    others = max(growth or 0.0 for task, growth in grown.items() if task != "sentiment")
    follows = busy_over_quiet(history)
    rows = [
        row
        for name, kept in figures.kept.items()
        for row in (
            (f"{name}: intervals within {kept.bound_ms:g} ms", percent(kept.share_held), PAPER[name][0]),
            (f"{name}: mean latency", ms(kept.mean_ms), "–"),
            (f"{name}: 95th percentile", ms(kept.p95_ms), PAPER[name][1]),
        )
    ]
    rows += [
        ("replicas in the busiest quarter over the quietest", number(follows), "follow the rate (picture)"),
        *(
            (f"{task}: replicas in the crowd over those before", number(grown[task]), paper)
            for task, paper in zip(ELASTIC, ("less", "less", "about 28 more"), strict=True)
        ),
        ("busy cores of all", percent(figures.worker_cpu), "55.7 %"),
    ]
    return Part(
        title="TwitterSentiments: nephele on a day with bursts",
        about=f"A day in {SECONDS:g} s, from {LOW_PER_S:g} to {HIGH_PER_S:g} tweets/s, a burst of everything"
        " in the morning, a crowd that tweets about three topics after noon.",
        tables=[Table(("figure", "Penstock", "thesis"), rows)],
        differs="The thesis replays two weeks of real tweets in 100 minutes, up to 6,734 tweets/s, on up to"
        " 130 servers; here a generated day has its traits. VADER is too fast for two cores to ever need a"
        " second replica, so each replica takes a fixed time by sleeping.",
        checks=[
            Check("twitter: topics held", figures.kept["topics"].share_held, ">=", 0.93),
            Check("twitter: sentiments held", figures.kept["sentiments"].share_held, ">=", 0.96),
            Check("twitter: replicas, busiest over quietest quarter", follows, ">=", 1.5),
            Check("twitter: sentiment in the crowd over before", grown["sentiment"], ">=", 1.5),
            Check("twitter: any other task in the crowd over before", others, "<=", 1.2),
            Check(
                "twitter: growth of sentiment over that of any other task",
                ratio(grown["sentiment"], others),
                ">=",
                1.5,
            ),
        ],
        pictures=[
            Picture(
                "evaluation_twitter",
                "A day of TwitterSentiments; the crowd is shaded",
                lambda: draw(_panels(history)),
            )
        ],
    )


def crowd() -> tuple[float, float]:
    """When the crowd tweets."""
    _, crowds = day(SECONDS, LOW_PER_S, HIGH_PER_S)
    return crowds[0].begin_s, crowds[0].end_s


def busy_over_quiet(history: History) -> float | None:
    """All elastic replicas, in the quarter of the intervals with the highest rates over the lowest."""
    counts, rates = replicas(history, *ELASTIC), sent_per_s(history)
    order = sorted(range(len(rates)), key=lambda place: rates[place] or 0.0)
    quarter = max(1, len(order) // 4)
    return ratio(
        mean([counts[place] for place in order[-quarter:]]),
        mean([counts[place] for place in order[:quarter]]),
    )


def _growth(history: History, task: str, begin_s: float, end_s: float) -> float | None:
    """Mean replicas in the crowd, once they are there, over those just before."""
    counts = replicas(history, task)
    before = [counts[place] for place in within(history, begin_s - BEFORE_S, begin_s)]
    during = [counts[place] for place in within(history, begin_s + REACTION_S, end_s)]
    return ratio(mean(during), mean(before))


def _panels(history: History) -> list[Panel]:
    shaded = (*crowd(), "crowd")
    return [
        Panel("tweets/s", [Line("sent", history, sent_per_s(history))], shaded=shaded),
        *(
            Panel(
                f"{spec.name}\nlatency [ms]",
                [
                    Line("mean", history, history.latencies_ms(spec.name)),
                    Line("95th percentile", history, history.p95s_ms(spec.name)),
                ],
                bound_ms=spec.latency_ms,
                shaded=shaded,
            )
            for spec in history.constraints
        ),
        Panel(
            "replicas",
            [Line(task, history, replicas(history, task)) for task in ELASTIC],
            whole=True,
            shaded=shaded,
        ),
    ]
