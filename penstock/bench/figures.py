"""Pictures of the simulated experiments with the axes of the papers' figures.

`python -m penstock.bench.figures DIRECTORY [--quick]` runs bench `policies`, prints what it found as JSON and
draws its runs, one PNG for each experiment; `--only wordcount` runs and draws that one alone.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.bench import experiments
from penstock.bench.harness import Effort
from penstock.bench.policies import evaluate, keeps_up, run_experiments
from penstock.sim.run import Point, Run

Runs = Mapping[str, Run]


def draw_primetest(runs: Runs, path: Path) -> None:
    """Figure 5.8 of the thesis: latency, throughput, parallelism and CPU over time."""
    shown = {name: run for name, run in runs.items() if "20 ms" in name or name == experiments.UNELASTIC}
    figure, (latency, rate, replicas, cpu) = _rows(4)
    for name, run in shown.items():
        times = _times(run)
        (line,) = latency.plot(times, [point.latency_ms["prime"] for point in run.points], label=name)
        p95 = [point.p95_ms["prime"] for point in run.points]
        latency.plot(times, p95, ":", color=line.get_color())
        rate.plot(times, [point.emitted_per_s / 1e6 for point in run.points], label=name)
        replicas.plot(times, [point.replicas["tester"] for point in run.points], label=name)
        cpu.plot(times, [100.0 * point.cpu_share for point in run.points], label=name)
    last = next(iter(shown.values()))
    rate.plot(_times(last), [point.due_per_s / 1e6 for point in last.points], "k:", label="attempted")
    _bound(latency, 20.0)
    latency.set(yscale="log", ylabel="latency [ms]\nmean, 95th pct. dotted")
    rate.set(ylabel="data items\n[millions/s]")
    replicas.set(ylabel="Prime Tester\nparallelism")
    cpu.set(ylabel="worker CPU [%]", xlabel="time [s]")
    _save(figure, (rate,), path, "PrimeTest, bound of 20 ms")


def draw_trade_off(runs: Runs, path: Path) -> None:
    """Table 5.1 of the thesis as a picture: what a wider bound saves, beside the thesis' figures."""
    figure, (held, p95, hours) = _rows(3)
    measured = evaluate({"primetest": dict(runs)}).figures["primetest"]
    bounds = [bound for bound in experiments.CONSTRAINTS_MS if f"{bound} ms" in measured]
    for axes, field, scale in ((held, "share_held", 100.0), (p95, "p95_ms", 1.0), (hours, "task_hours", 1.0)):
        ours = [measured[f"{bound} ms"] for bound in bounds]
        axes.plot(bounds, [scale * found[field] for found in ours], "o-", label="simulated")
        axes.plot(bounds, [scale * found["paper"][field] for found in ours], "s--", label="thesis")
    held.set(ylabel="intervals with\nfulfilled constraint [%]", ylim=(0.0, 100.0))
    p95.set(ylabel="95th percentile [ms]", ylim=(0.0, None))
    hours.set(ylabel="Prime Tester\nsubtask hours", xlabel="constraint [ms]", ylim=(0.0, None))
    _save(figure, (hours,), path, "PrimeTest: what a wider bound saves")


def draw_batching(runs: Runs, path: Path) -> None:
    """Figure 5.7: latency and CPU by attempted send rate; a bottleneck is ringed in red."""
    figure, (latency, cpu) = _rows(2)
    for bound_ms in (None, *experiments.BATCHING_MS):
        tried = experiments.batching_rates(bound_ms)
        names = {rate: experiments.batching_name(bound_ms, rate) for rate in tried}
        of_bound = {rate / 1000.0: runs[name] for rate, name in names.items() if name in runs}
        last = {rate: run.points[-1] for rate, run in of_bound.items()}
        ringed = [number for number, run in enumerate(of_bound.values()) if not keeps_up(run)]
        for axes, values in (
            (latency, [_end_to_end_ms(point) for point in last.values()]),
            (cpu, [100.0 * point.cpu_share for point in last.values()]),
        ):
            label = "immediate" if bound_ms is None else f"{bound_ms} ms"
            axes.plot(list(last), values, "o-", label=label)
            axes.plot(list(last), values, "o", color="red", markevery=ringed, markersize=10, mfc="none")
    latency.plot([], [], "o", markersize=10, mfc="none", mec="red", label="cannot keep up")
    latency.set(yscale="log", ylabel="mean latency [ms]")
    cpu.set(ylabel="mean worker CPU [%]", xlabel="attempted send rate of a source [1,000 items/s]")
    _save(figure, (latency,), path, "PrimeTest: batching by bound and rate")


def draw_twitter(runs: Runs, path: Path) -> None:
    """Figure 5.9: both constraints, throughput, parallelism."""
    run = runs["public code"]
    figure, (topics, sentiments, rate, replicas) = _rows(4)
    times = _times(run)
    for axes, name, bound_ms in ((topics, "topics", 215.0), (sentiments, "sentiments", 30.0)):
        axes.plot(times, [point.latency_ms[name] for point in run.points], label="mean")
        axes.plot(times, [point.p95_ms[name] for point in run.points], ":", label="95th percentile")
        _bound(axes, bound_ms)
        axes.set(ylabel=f"{name}\nlatency [ms]", ylim=(0.0, 2.0 * bound_ms))
    rate.plot(times, [point.due_per_s for point in run.points], label="tweets/s")
    rate.set(ylabel="tweets/s")
    for task in ("hot_topics", "filter", "sentiment"):
        replicas.plot(times, [point.replicas[task] for point in run.points], label=task)
    replicas.set(ylabel="parallelism", xlabel="time [s]")
    _save(figure, (topics, replicas), path, "TwitterSentiments, two bounds")


def draw_livestream(runs: Runs, path: Path) -> None:
    """Figures 5.5 and 5.10: mean latency per interval and CPU."""
    figure, (latency, cpu) = _rows(2)
    for name, run in runs.items():
        latency.plot(_times(run), [point.latency_ms["live"] for point in run.points], label=name)
        cpu.plot(_times(run), [100.0 * point.cpu_share for point in run.points], label=name)
    _bound(latency, 50.0)
    latency.set(ylabel="latency [ms]", ylim=(0.0, 60.0))
    cpu.set(ylabel="worker CPU [%]", xlabel="time [s]", ylim=(0.0, 100.0))
    _save(figure, (latency,), path, "Livestream, bound of 50 ms")


def draw_wordcount(runs: Runs, path: Path) -> None:
    """Figures 1, 6 and 7 of the DS2 paper: source rate and parallelism over time (optimum: 10, 20)."""
    from matplotlib.ticker import MultipleLocator

    figure, axes = _rows(2 * len(runs))
    for number, (name, run) in enumerate(runs.items()):
        rate, replicas = axes[2 * number], axes[2 * number + 1]
        rate.plot(_times(run), [point.emitted_per_s for point in run.points], label="observed")
        rate.plot(_times(run), [point.due_per_s for point in run.points], "k:", label="target")
        rate.set(ylabel="source rate\n[records/s]", title=name)
        for task in ("flat_map", "count"):
            replicas.step(_times(run), [point.replicas[task] for point in run.points], label=task)
        replicas.set(ylabel="instances", ylim=(0, None))
        replicas.yaxis.set_major_locator(MultipleLocator(10))
    axes[-1].set(xlabel="time [s]")
    _save(figure, tuple(axes), path, "Word count")


def draw_storm(runs: Runs, path: Path) -> None:
    """Figures 6 to 12 of the adaptive-Storm paper: active replicas, rates, latency, for both experiments."""
    bell = {name: run for name, run in runs.items() if name in ("pool", "restart")}
    peaks = {name: run for name, run in runs.items() if name not in bell}
    experiments_shown = [shown for shown in (bell, peaks) if shown]
    figure, axes = _rows(3 * len(experiments_shown))
    for number, shown in enumerate(experiments_shown):
        _draw_classifier(shown, *axes[3 * number : 3 * number + 3])
    _save(figure, tuple(axes[1::3]), path, "The topic classifier")


def _draw_classifier(runs: Runs, replicas: Any, rate: Any, latency: Any) -> None:
    for name, run in runs.items():
        tasks = [task.name for task in run.flow.tasks if task.elastic]
        active = [sum(point.replicas[task] for task in tasks) for point in run.points]
        replicas.plot(_times(run), active, label=name)
        rate.plot(_times(run), [point.delivered_per_s for point in run.points], label=name)
        means = [point.latency_ms["tweets"] for point in run.points]
        latency.plot(_times(run), [None if mean is None else mean / 1000.0 for mean in means], label=name)
    first = next(iter(runs.values()))
    rate.plot(_times(first), [point.due_per_s for point in first.points], "k:", label="input")
    replicas.set(ylabel="active replicas")
    rate.set(ylabel="output rate\n[events/s]")
    latency.set(ylabel="latency [s]", xlabel="time [s]")


PICTURES: Mapping[str, tuple[str, Callable[[Runs, Path], None]]] = {
    "primetest": ("primetest", draw_primetest),
    "trade_off": ("primetest", draw_trade_off),
    "batching": ("batching", draw_batching),
    "twitter": ("twitter", draw_twitter),
    "livestream": ("livestream", draw_livestream),
    "wordcount": ("wordcount", draw_wordcount),
    "storm": ("storm", draw_storm),
}


def draw_all(runs: Mapping[str, Runs], directory: Path) -> None:
    """One PNG for each picture of what was run, named after it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, (experiment, draw) in PICTURES.items():
        if experiment in runs:
            draw(runs[experiment], directory / f"{name}.png")


def main(
    directory: Annotated[Path, typer.Argument(help="Where the pictures go.")],
    quick: Annotated[bool, typer.Option(help="Smaller and shorter experiments.")] = False,  # noqa: FBT002
    only: Annotated[list[str] | None, typer.Option(help="An experiment, again for more.")] = None,
) -> None:
    """Run the experiments and draw them."""
    try:
        runs = run_experiments(Effort.QUICK if quick else Effort.FULL, only)
    except KeyError as error:
        raise typer.BadParameter(f"there is no experiment {error}", param_hint="--only") from None
    draw_all(runs, directory)
    typer.echo(evaluate(runs).to_json())


def _rows(count: int) -> tuple[Any, Any]:
    """A figure of `count` plots above each other; matplotlib is an extra and is imported only here."""
    from matplotlib.figure import Figure

    from penstock.report.colours import SERIES

    figure = Figure(figsize=(9.0, 1.9 * count + 0.6), layout="constrained")
    plots = figure.subplots(count, 1, squeeze=False)[:, 0]
    for axes in plots:
        axes.set_prop_cycle(color=SERIES)
    return figure, plots


def _times(run: Run) -> list[float]:
    return [point.end_s for point in run.points]


def _end_to_end_ms(point: Point) -> float | None:
    return next(iter(point.latency_ms.values()), None)


def _bound(axes: Any, bound_ms: float) -> None:
    from penstock.report.grid import label_bound

    axes.axhline(bound_ms, color="black", linewidth=1.0, linestyle=(0, (1, 1)))
    label_bound(axes, bound_ms)


def _save(figure: Any, with_legend: tuple[Any, ...], path: Path, title: str) -> None:
    """Legends stand beside their plots, where they hide nothing."""
    figure.suptitle(f"{title}, simulated")
    for axes in figure.axes:
        axes.grid(visible=True, linewidth=0.3)
    for axes in with_legend:
        axes.legend(
            fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False
        )
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    typer.run(main)
