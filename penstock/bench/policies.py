"""The papers' experiments on the simulated engine, beside the papers' own figures.

Nothing is tuned per run: workload constants and policy settings are fixed in `penstock.sim.workloads` and
`experiments`. Nephele has the queue limit of its public code, and twice the formulas as printed beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.bench import experiments
from penstock.bench.harness import Check, Effort, Result, ratio
from penstock.bench.jobs import Job, run_all
from penstock.sim.run import Run
from penstock.sim.summary import Summary, summarise
from penstock.stats.throughput import processed_share, throughput_degradation

PAPER_HELD = {20: 0.926, 30: 0.922, 40: 0.941, 50: 0.941, 100: 0.951}
PAPER_P95_MS = {20: 30, 30: 45, 40: 56, 50: 73, 100: 128}
PAPER_TASK_HOURS = {20: 50.8, 30: 46.4, 40: 44.3, 50: 41.8, 100: 37.6}
PAPER_WORKER_HOURS = {20: 21.9, 30: 23.8, 40: 20.2, 50: 19.7, 100: 18.6}
PAPER_CPU = {20: 0.659, 30: 0.695, 40: 0.702, 50: 0.718, 100: 0.739}
PAPER_RATES = {None: 40_000, 25: 50_000, 50: 55_000, 75: 55_000, 100: 60_000}
PAPER_STORM = {
    "pool": {"saved_nodes": 0.2038, "throughput_degradation": 0.2039, "processed": 0.9987},
    "restart": {"saved_nodes": 0.2041, "throughput_degradation": 0.4031, "processed": 0.8627},
    "delta": {"saved_nodes": 0.3996, "throughput_degradation": 0.1092, "processed": 0.8907},
    "U": {"saved_nodes": -0.8934, "throughput_degradation": 0.2597, "processed": 0.7402},
    "Q": {"saved_nodes": 0.4975, "throughput_degradation": 0.6830, "processed": 0.3169},
}

Section = tuple[dict[str, Any], list[Check]]


def bench(effort: Effort) -> Result:
    """All experiments; a quick run has fewer and smaller ones."""
    return evaluate(run_experiments(effort))


def run_experiments(effort: Effort, only: Sequence[str] | None = None) -> dict[str, dict[str, Run]]:
    """The runs of every experiment, or of those that are named, by its name, all of them side by side."""
    quick = effort is Effort.QUICK
    experiment_of = {name: EXPERIMENTS[name][0](quick=quick) for name in only or EXPERIMENTS}
    runs = run_all(
        {f"{name}/{which}": job for name, jobs in experiment_of.items() for which, job in jobs.items()}
    )
    return {name: {which: runs[f"{name}/{which}"] for which in jobs} for name, jobs in experiment_of.items()}


def evaluate(runs: Mapping[str, dict[str, Run]]) -> Result:
    """Figures and checks of the experiments that were run."""
    figures: dict[str, Any] = {}
    checks: list[Check] = []
    for name, of_experiment in runs.items():
        _, section = EXPERIMENTS[name]
        figures[name], found = section(of_experiment)
        checks += found
    return Result("policies", figures, checks)


def primetest_section(runs: dict[str, Run]) -> Section:
    """Held, p95, task-hours and CPU by constraint, each beside table 5.1."""
    figures = {
        name: _unelastic(run) if name == experiments.UNELASTIC else _elastic(run)
        for name, run in runs.items()
    }
    held, wide = figures["20 ms"], figures["100 ms"]
    saved = ratio(wide["task_hours"], held["task_hours"])
    return figures, [
        Check("primetest 20 ms: share held", held["share_held"], ">=", 0.85),
        Check("primetest 20 ms: p95 ms", held["p95_ms"], "<=", 40.0),
        Check("primetest: task-hours, 100 ms / 20 ms", saved, "<=", 1.0),
    ]


def _elastic(run: Run) -> dict[str, Any]:
    summary = summarise(run)
    outcome = summary.constraints["prime"]
    bound = int(outcome.bound_ms)
    return {
        "share_held": outcome.share_held,
        "share_within_5_percent": _share_within(run, "prime", 1.05 * outcome.bound_ms),
        "p95_ms": outcome.p95_ms,
        "task_hours": sum(summary.task_hours.values()),
        "worker_hours": summary.worker_hours,
        "cpu": summary.cpu_share,
        "actions": summary.actions,
        "paper": {
            "share_held": PAPER_HELD[bound],
            "p95_ms": PAPER_P95_MS[bound],
            "task_hours": PAPER_TASK_HOURS[bound],
            "worker_hours": PAPER_WORKER_HOURS[bound],
            "cpu": PAPER_CPU[bound],
        },
    }


def _unelastic(run: Run) -> dict[str, Any]:
    means = [mean for point in run.points if (mean := point.latency_ms["prime"]) is not None]
    p95s = [p95 for point in run.points if (p95 := point.p95_ms["prime"]) is not None]
    return {
        "lowest_mean_ms": min(means, default=None),
        "lowest_p95_ms": min(p95s, default=None),
        "task_hours": sum(point.replicas["tester"] * (point.end_s - point.begin_s) for point in run.points)
        / 3600.0,
        "worker_hours": run.worker_hours,
        "cpu": run.cpu_share,
        "paper": {"lowest_mean_ms": 348, "lowest_p95_ms": 564, "task_hours": 46.7},
    }


def _share_within(run: Run, constraint: str, bound_ms: float) -> float:
    means = [point.latency_ms[constraint] for point in run.points]
    return sum(mean is not None and mean <= bound_ms for mean in means) / len(means)


def batching_section(runs: dict[str, Run]) -> Section:
    """The last rate of the grid that is sent without a bottleneck, for each configuration."""
    bounds: list[int | None] = [None, *experiments.BATCHING_MS]
    figures: dict[str, Any] = {}
    for bound_ms in bounds:
        tried = experiments.batching_rates(bound_ms)
        rates = [rate for rate in tried if experiments.batching_name(bound_ms, rate) in runs]
        kept = [rate for rate in rates if keeps_up(runs[experiments.batching_name(bound_ms, rate)])]
        if rates:
            name = "immediate" if bound_ms is None else f"{bound_ms} ms"
            figures[name] = {"highest_rate": max(kept, default=0), "paper": PAPER_RATES[bound_ms]}
    gain = ratio(figures["100 ms"]["highest_rate"], figures["immediate"]["highest_rate"])
    return figures, [Check("batching: highest rate, 100 ms / immediate", gain, ">=", 1.2)]


def twitter_section(runs: dict[str, Run]) -> Section:
    """Both constraints beside figure 5.9."""
    figures: dict[str, Any] = {
        "paper": {"topics_held": 0.93, "sentiments_held": 0.96, "cpu": 0.557, "topics_p95_ms": 215}
    }
    for name, run in runs.items():
        summary = summarise(run)
        figures[name] = {
            "topics_held": summary.constraints["topics"].share_held,
            "topics_p95_ms": summary.constraints["topics"].p95_ms,
            "sentiments_held": summary.constraints["sentiments"].share_held,
            "sentiments_p95_ms": summary.constraints["sentiments"].p95_ms,
            "task_utilization": _busy_share(run),
            "task_hours": summary.task_hours,
            "peak_rate": max(point.due_per_s for point in run.points),
        }
    kept = figures["public code"]
    lowest = min(kept["topics_held"], kept["sentiments_held"])
    return figures, [Check("twitter: smaller share held", lowest, ">=", 0.8)]


def livestream_section(runs: dict[str, Run]) -> Section:
    """Latency and CPU once settled, beside figures 5.5 and 5.10."""
    figures: dict[str, Any] = {}
    for name, run in runs.items():
        settled = run.points[len(run.points) // 2 :]
        means = [point.latency_ms["live"] for point in settled]
        known = [mean for mean in means if mean is not None]
        figures[name] = {
            "mean_ms": sum(known) / len(known) if known else None,
            "cpu": sum(point.cpu_share for point in settled) / len(settled),
        }
    figures["batching"]["paper"] = {"mean_ms": 40}
    figures["batching and chaining"]["paper"] = {"mean_ms": 18.5, "cpu_less_by": 0.33}
    alone, chained = figures["batching"], figures["batching and chaining"]
    return figures, [
        Check(
            "livestream: mean latency, chained / not", ratio(chained["mean_ms"], alone["mean_ms"]), "<=", 0.7
        ),
        Check("livestream: CPU, chained / not", ratio(chained["cpu"], alone["cpu"]), "<=", 0.75),
    ]


def wordcount_section(runs: dict[str, Run]) -> Section:
    """Steps taken and where they ended."""
    figures: dict[str, Any] = {name: _path(run) for name, run in runs.items()}
    ds2 = figures["DS2 on Heron"]
    ds2["paper"] = {"steps": 1, "flat_map": 10, "count": 20}
    checks = [
        Check("wordcount, DS2: steps", ds2["steps"], "==", 1),
        Check("wordcount, DS2: FlatMap", ds2["flat_map"], "==", 10),
        Check("wordcount, DS2: Count", ds2["count"], "==", 20),
    ]
    if "Dhalion on Heron" in figures:
        dhalion = figures["Dhalion on Heron"]
        dhalion["paper"] = {"steps": 6, "flat_map": 22, "count": 30, "settled_s": 2_000}
        checks.append(Check("wordcount, Dhalion: steps", dhalion["steps"], ">=", 4))
        figures["DS2 on Flink"]["paper"] = {"path": [[14, 7], [19, 11], [7, 4], [7, 5]]}
    return figures, checks


def storm_section(runs: dict[str, Run]) -> Section:
    """The four metrics of the adaptive-Storm paper (its section IV-C)."""
    figures = {name: {**_storm_metrics(run), "paper": PAPER_STORM[name]} for name, run in runs.items()}
    gain = figures["pool"]["processed"] - figures["restart"]["processed"]
    checks = [Check("storm: processed, pool less restart", gain, ">=", 0.05)]
    if "Q" in figures:
        beaten = figures["delta"]["processed"] - figures["Q"]["processed"]
        checks.append(Check("storm: processed, delta less Q", beaten, ">=", 0.0))
    return figures, checks


def table_section(runs: dict[str, Run]) -> Section:
    """All policies on all workloads."""
    return {name: _line(summarise(run)) for name, run in runs.items()}, []


def _line(summary: Summary) -> dict[str, Any]:
    return {
        "share_held": {name: outcome.share_held for name, outcome in summary.constraints.items()},
        "p95_ms": {name: outcome.p95_ms for name, outcome in summary.constraints.items()},
        "task_hours": sum(summary.task_hours.values()),
        "actions": summary.actions,
        "settling_s": max(outcome.settling_s for outcome in summary.constraints.values()),
        "overshoot": summary.overshoot,
        "processed": summary.processed_share,
    }


def _busy_share(run: Run) -> float:
    """Mean utilisation of the replicas of elastic tasks (the paper's mean task CPU)."""
    elastic = [task.name for task in run.flow.tasks if task.elastic]
    busy = sum((point.utilization[n] or 0.0) * point.replicas[n] for point in run.points for n in elastic)
    return busy / sum(point.replicas[name] for point in run.points for name in elastic)


def keeps_up(run: Run) -> bool:
    """No bottleneck: in the second half all that is due is sent, queues grow by under 1 % of the load."""
    half = run.points[len(run.points) // 2 :]
    due = sum(point.due_per_s for point in half)
    sent = sum(point.emitted_per_s for point in half)
    growth = (half[-1].backlog - half[0].backlog) / max(half[-1].end_s - half[0].end_s, 1e-9)
    return sent >= 0.99 * due and growth <= 0.01 * half[-1].due_per_s


def _path(run: Run) -> dict[str, Any]:
    """The numbers of replicas, one entry for every change."""
    path: list[list[int]] = []
    changed_s = 0.0
    for point in run.points:
        now = [point.replicas["flat_map"], point.replicas["count"]]
        if not path or path[-1] != now:
            path.append(now)
            changed_s = point.begin_s
    return {
        "steps": len(path) - 1,
        "path": path,
        "flat_map": path[-1][0],
        "count": path[-1][1],
        "settled_s": changed_s,
    }


def _storm_metrics(run: Run) -> dict[str, Any]:
    """Saved nodes against a fixed provision for the peak; all intervals are equally long."""
    tasks = [task.name for task in run.flow.tasks if task.elastic]
    peak = max(point.due_per_s for point in run.points)
    enough = sum(peak * run.flow.task(name).service_s / 0.75 for name in tasks)
    active = [sum(point.replicas[name] for name in tasks) for point in run.points]
    rates = [(point.due_per_s, point.delivered_per_s) for point in run.points]
    means = [mean for point in run.points if (mean := point.latency_ms["tweets"]) is not None]
    return {
        "saved_nodes": 1.0 - sum(active) / len(active) / enough,
        "throughput_degradation": throughput_degradation(rates),
        "processed": processed_share(rates),
        "latency_ms": sum(means) / len(means) if means else None,
    }


EXPERIMENTS: Mapping[str, tuple[Callable[..., dict[str, Job]], Callable[[dict[str, Run]], Section]]] = {
    "primetest": (experiments.primetest_jobs, primetest_section),
    "batching": (experiments.batching_jobs, batching_section),
    "twitter": (experiments.twitter_jobs, twitter_section),
    "livestream": (experiments.livestream_jobs, livestream_section),
    "wordcount": (experiments.wordcount_jobs, wordcount_section),
    "storm": (experiments.storm_jobs, storm_section),
    "table": (experiments.table_jobs, table_section),
}
