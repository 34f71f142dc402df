"""Bench `ablation`: what each setting of `nephele` that is not the thesis' brings on Spark.

`penstock.control.live_settings` changes constants of the thesis for flows on Spark. Here each change is taken
back alone, with all others in force; beside it all of them (as flows run) and none (as in the thesis).

- `simulator`: two PrimeTests, the thesis' at a tenth of its size and the one for two cores, every setting;
- `spark`: the rate-limited PrimeTest of bench `control`, the settings that matter most there.

There are no bars: a setting is kept if taking it back costs intervals or replicas on one of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final

import msgspec

from penstock.bench import control_primetest
from penstock.bench.baselines import bench_session
from penstock.bench.harness import Check, Effort, Result
from penstock.bench.jobs import Job, run_all
from penstock.bench.telling import told
from penstock.control.live_settings import live_settings
from penstock.policy.nephele import NepheleParameters
from penstock.sim.run import Run
from penstock.sim.summary import summarise
from penstock.sim.workloads import primetest

POLICY: Final = "nephele"
LIVE, THESIS = "as flows run", "as in the thesis"
MATTER_MOST: Final = ("bound_share", "batching_yield", "utilization_max")
SEEDS: Final = (1, 2, 3)
Section = tuple[dict[str, Any], list[Check]]


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """Both parts, or the one named; a quick run is a small simulation."""
    usual = ["simulator"] if effort is Effort.QUICK else list(EXPERIMENTS)
    figures: dict[str, Any] = {}
    checks: list[Check] = []
    for name in told(only or usual, "ablation {}".format):
        figures[name], found = EXPERIMENTS[name](effort)
        checks += found
    return Result("ablation", figures, checks)


def changed() -> dict[str, str]:
    """The settings of `nephele` on Spark by their names, as `--set` takes them."""
    own = [setting for setting in live_settings(POLICY) if setting.startswith(f"{POLICY}.")]
    return {setting.partition("=")[0].removeprefix(f"{POLICY}."): setting for setting in own}


def variants(chosen: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What is set on top of live settings: nothing, each of `chosen` taken back alone, all taken back."""
    back = {name: taken_back(name) for name in changed()}
    return {
        LIVE: (),
        **{f"without {name}": (back[name],) for name in chosen},
        THESIS: tuple(back.values()),
    }


def taken_back(name: str) -> str:
    """The constant of the thesis, which is the parameter's default."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(NepheleParameters)}
    return f"{POLICY}.{name}={msgspec.json.encode(defaults[name]).decode()}"


def simulator(effort: Effort) -> Section:
    """Every setting on two PrimeTests, some seeds each."""
    quick = effort is Effort.QUICK
    size = {"share": 1 / 32, "step_s": 20.0} if quick else {"share": 0.1, "step_s": 30.0}
    workloads = {
        "thesis": partial(Job, primetest.elastic, (20.0,), size),
        "two cores": partial(Job, primetest.two_cores),
    }
    live = tuple(changed().values())
    jobs = {
        (workload, name, seed): job(policy=POLICY, settings=(*live, *more), seed=seed)
        for workload, job in workloads.items()
        for name, more in variants(list(changed())).items()
        for seed in (SEEDS[:1] if quick else SEEDS)
    }
    runs = run_all(jobs)
    figures: dict[str, Any] = {}
    for workload in workloads:
        of_workload = {key[1:]: run for key, run in runs.items() if key[0] == workload}
        figures[workload] = {
            name: _simulated([run for (which, _), run in of_workload.items() if which == name])
            for name in variants(list(changed()))
        }
    lost = sum(run.lost for run in runs.values())
    return figures, [Check("simulator: items lost", lost, "==", 0)]


def _simulated(runs: Sequence[Run]) -> Mapping[str, float]:
    """Means over the seeds."""
    summaries = [summarise(run) for run in runs]
    (constraint,) = summaries[0].constraints
    outcomes = [summary.constraints[constraint] for summary in summaries]
    return {
        "share_held": fmean(outcome.share_held for outcome in outcomes),
        "p95_ms": fmean(outcome.p95_ms or 0.0 for outcome in outcomes),
        "task_hours": fmean(sum(summary.task_hours.values()) for summary in summaries),
        "actions": fmean(summary.actions for summary in summaries),
    }


def spark(effort: Effort) -> Section:
    """The rate-limited PrimeTest; a run at its peak, which does not count, lets Java compile."""
    contest = control_primetest.RATE_LIMITED
    bench_session(contest.most + 2)
    control_primetest.one_run(contest, "static", contest.peak)
    chosen = MATTER_MOST[:1] if effort is Effort.QUICK else MATTER_MOST
    figures = {
        name: control_primetest.outcome(
            contest, control_primetest.one_run(contest, POLICY, contest.schedule, *settings)
        )
        for name, settings in variants(chosen).items()
    }
    harmed = sum(figure["lost"] + figure["duplicated"] for figure in figures.values())
    return figures, [Check("spark: items lost or duplicated", harmed, "==", 0)]


EXPERIMENTS: dict[str, Callable[[Effort], Section]] = {"simulator": simulator, "spark": spark}
