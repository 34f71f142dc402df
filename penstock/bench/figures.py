"""Pictures of the simulated experiments with the axes of the papers' figures.

`python -m penstock.bench.figures DIRECTORY [--quick]` runs the experiments and writes one PNG for each.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.bench import experiments
from penstock.bench.jobs import run_all
from penstock.sim.run import Point, Run

Runs = Mapping[str, Run]


def draw_primetest(runs: Runs, path: Path) -> None:
    """Figure 5.8 of the thesis: latency, throughput, parallelism and CPU over time."""
    shown = {name: run for name, run in runs.items() if "20 ms" in name or "unelastic" in name}
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
    latency.axhline(20.0, color="grey", linewidth=0.8)
    latency.set(yscale="log", ylabel="latency [ms]\nmean, 95th pct. dotted")
    rate.set(ylabel="data items\n[millions/s]")
    replicas.set(ylabel="Prime Tester\nparallelism")
    cpu.set(ylabel="worker CPU [%]", xlabel="time [s]")
    _save(figure, (latency, rate), path)


def draw_batching(runs: Runs, path: Path) -> None:
    """Figure 5.7: latency and CPU by attempted send rate, for immediate shipping and each constraint."""
    figure, (latency, cpu) = _rows(2)
    for bound_ms in (None, *experiments.BATCHING_MS):
        rates = [rate for rate in experiments.RATES if experiments.batching_name(bound_ms, rate) in runs]
        last = [runs[experiments.batching_name(bound_ms, rate)].points[-1] for rate in rates]
        name = "immediate" if bound_ms is None else f"{bound_ms} ms"
        thousands = [rate / 1000.0 for rate in rates]
        latency.plot(thousands, [_end_to_end_ms(point) for point in last], "o-", label=name)
        cpu.plot(thousands, [100.0 * point.cpu_share for point in last], "o-", label=name)
    latency.set(yscale="log", ylabel="mean latency [ms]")
    cpu.set(ylabel="mean worker CPU [%]", xlabel="attempted send rate of a source [1,000 items/s]")
    _save(figure, (latency,), path)


def draw_twitter(runs: Runs, path: Path) -> None:
    """Figure 5.9: both constraints, throughput, parallelism."""
    run = runs["public code"]
    figure, (topics, sentiments, rate, replicas) = _rows(4)
    times = _times(run)
    for axes, name, bound_ms in ((topics, "topics", 215.0), (sentiments, "sentiments", 30.0)):
        axes.plot(times, [point.latency_ms[name] for point in run.points], label="mean")
        axes.plot(times, [point.p95_ms[name] for point in run.points], ":", label="95th percentile")
        axes.axhline(bound_ms, color="grey", linewidth=0.8)
        axes.set(yscale="log", ylabel=f"{name}\nlatency [ms]")
    rate.plot(times, [point.due_per_s for point in run.points], label="tweets/s")
    rate.set(ylabel="tweets/s")
    for task in ("hot_topics", "filter", "sentiment"):
        replicas.plot(times, [point.replicas[task] for point in run.points], label=task)
    replicas.set(ylabel="parallelism", xlabel="time [s]")
    _save(figure, (topics, replicas), path)


def draw_livestream(runs: Runs, path: Path) -> None:
    """Figures 5.5 and 5.10: mean latency per interval and CPU."""
    figure, (latency, cpu) = _rows(2)
    for name, run in runs.items():
        latency.plot(_times(run), [point.latency_ms["live"] for point in run.points], label=name)
        cpu.plot(_times(run), [100.0 * point.cpu_share for point in run.points], label=name)
    latency.axhline(50.0, color="grey", linewidth=0.8)
    latency.set(ylabel="latency [ms]", ylim=(0.0, 60.0))
    cpu.set(ylabel="worker CPU [%]", xlabel="time [s]", ylim=(0.0, 100.0))
    _save(figure, (latency,), path)


def draw_wordcount(runs: Runs, path: Path) -> None:
    """Figures 1, 6 and 7 of the DS2 paper: source rate and parallelism over time."""
    figure, axes = _rows(2 * len(runs))
    for number, (name, run) in enumerate(runs.items()):
        rate, replicas = axes[2 * number], axes[2 * number + 1]
        rate.plot(_times(run), [point.emitted_per_s for point in run.points], label="observed")
        rate.plot(_times(run), [point.due_per_s for point in run.points], "k:", label="target")
        rate.set(ylabel="source rate\n[records/s]", title=name)
        for task in ("flat_map", "count"):
            replicas.step(_times(run), [point.replicas[task] for point in run.points], label=task)
        replicas.set(ylabel="instances")
    axes[-1].set(xlabel="time [s]")
    _save(figure, tuple(axes[:2]), path)


def draw_storm(runs: Runs, path: Path) -> None:
    """Figures 6 to 12 of the adaptive-Storm paper: active replicas, rates, latency."""
    figure, (replicas, rate, latency) = _rows(3)
    for name, run in runs.items():
        tasks = [task.name for task in run.flow.tasks if task.elastic]
        active = [sum(point.replicas[task] for task in tasks) for point in run.points]
        replicas.plot(_times(run), active, label=name)
        rate.plot(_times(run), [point.delivered_per_s for point in run.points], label=name)
        means = [point.latency_ms["tweets"] for point in run.points]
        seconds = [None if mean is None else mean / 1000.0 for mean in means]
        latency.plot(_times(run), seconds, label=name)
    bell = next(iter(runs.values()))
    rate.plot(_times(bell), [point.due_per_s for point in bell.points], "k:", label="input (bell)")
    replicas.set(ylabel="active replicas")
    rate.set(ylabel="output rate\n[events/s]")
    latency.set(ylabel="latency [s]", xlabel="time [s]")
    _save(figure, (replicas,), path)


PICTURES: Mapping[str, tuple[Callable[..., Any], Callable[[Runs, Path], None]]] = {
    "primetest": (experiments.primetest_jobs, draw_primetest),
    "batching": (experiments.batching_jobs, draw_batching),
    "twitter": (experiments.twitter_jobs, draw_twitter),
    "livestream": (experiments.livestream_jobs, draw_livestream),
    "wordcount": (experiments.wordcount_jobs, draw_wordcount),
    "storm": (experiments.storm_jobs, draw_storm),
}


def main(
    directory: Annotated[Path, typer.Argument(help="Where the pictures go.")],
    quick: Annotated[bool, typer.Option(help="Smaller and shorter experiments.")] = False,  # noqa: FBT002
    only: Annotated[list[str] | None, typer.Option(help=f"Some of {', '.join(PICTURES)}.")] = None,
) -> None:
    """Run the experiments and draw them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in only or PICTURES:
        jobs, draw = PICTURES[name]
        path = directory / f"{name}.png"
        draw(run_all(jobs(quick=quick)), path)
        typer.echo(path)


def _rows(count: int) -> tuple[Any, Any]:
    """A figure of `count` plots above each other; matplotlib is an extra and is imported only here."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 1.9 * count + 0.6), layout="constrained")
    return figure, figure.subplots(count, 1, squeeze=False)[:, 0]


def _times(run: Run) -> list[float]:
    return [point.end_s for point in run.points]


def _end_to_end_ms(point: Point) -> float | None:
    return next(iter(point.latency_ms.values()), None)


def _save(figure: Any, with_legend: tuple[Any, ...], path: Path) -> None:
    for axes in figure.axes:
        axes.grid(visible=True, linewidth=0.3)
    for axes in with_legend:
        axes.legend(fontsize="small", loc="best")
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    typer.run(main)
