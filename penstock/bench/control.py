"""The closed loop on real Spark, held against the bars it must keep.

Nothing is tuned per run: the settings are those of `penstock.control.live_settings` for every experiment. The
rules of docs/bench.md hold: open loop, latency from due time to sink, every item accounted for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.bench import (
    control_batching,
    control_calls,
    control_chaining,
    control_penstock,
    control_primetest,
    control_reaction,
    control_simulator,
    control_wordcount,
)
from penstock.bench.control_settings import control_plan
from penstock.bench.control_simulator import WARM_UP_S, Recorded
from penstock.bench.harness import Check, Effort, Result
from penstock.bench.telling import told

Section = tuple[dict[str, Any], list[Check], dict[str, Recorded]]


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """All experiments, or those named; a quick run is the reaction alone, and the simulator's view of it."""
    usual = ["reaction"] if effort is Effort.QUICK else list(EXPERIMENTS)
    figures: dict[str, Any] = {}
    checks: list[Check] = []
    recorded: dict[str, Recorded] = {}
    for name in told(only or usual, "control {}".format):
        figures[name], found, runs = EXPERIMENTS[name](effort)
        checks += found
        recorded |= runs
    if recorded:
        figures["simulator"], found = control_simulator.summarise(recorded)
        checks += found
    return Result("control", figures, checks)


def rate_limited(effort: Effort) -> Section:
    """PrimeTest with testers that sleep."""
    return _contest(control_primetest.RATE_LIMITED, effort)


def cpu_bound(effort: Effort) -> Section:
    """PrimeTest with testers that compute."""
    test_s = control_primetest.time_of_a_test()
    return _contest(control_primetest.cpu_bound(test_s), effort)


def reaction(effort: Effort) -> Section:
    """The rate doubles."""
    turns = control_reaction.reaction(effort)
    last = turns[-1][1]  # Java has compiled by then, if there was more than one
    recorded = Recorded(last.cycles, last.plan, begin_s=0.0 if len(turns) > 1 else WARM_UP_S)
    return *control_reaction.summarise(turns), {"reaction": recorded}


def batching(effort: Effort) -> Section:
    """Lifetimes at a low rate."""
    turns = control_batching.batching(effort)
    nephele = turns["nephele"][0]
    recorded = {"batching": Recorded(nephele.cycles_before_tightening(), nephele.one.plan)}
    return *control_batching.summarise(turns), recorded


def chaining(effort: Effort) -> Section:
    """A pipeline of light and of heavy tasks."""
    turns = control_chaining.chaining(effort)
    runs = {name: turns[name][0].one for name in ("unchained", "chained")}
    recorded = {
        f"chaining, {name}": Recorded(run.cycles, run.plan, begin_s=0.0) for name, run in runs.items()
    }
    return *control_chaining.summarise(turns), recorded


def wordcount(effort: Effort) -> Section:
    """DS2."""
    turns = control_wordcount.wordcount(effort)
    plan = control_plan("ds2")
    recorded = {f"wordcount {name}": Recorded(turn.cycles, plan, begin_s=0.0) for name, turn in turns.items()}
    return *control_wordcount.summarise(turns), recorded


def calls(effort: Effort) -> Section:
    """An async task under the policies that measure capacity."""
    load, runs = control_calls.calls(effort)
    return *control_calls.summarise(load, runs), {}


def climb(effort: Effort) -> Section:
    """PrimeTest's short climb under `penstock` and others."""
    runs = control_penstock.climb(effort)
    return *control_penstock.summarise_climb(runs), _of_penstock("climb", runs, control_penstock.REST_S)


def tweets(effort: Effort) -> Section:
    """A day of TwitterSentiments under the same."""
    runs = control_penstock.tweets(effort)
    return *control_penstock.summarise_tweets(runs), _of_penstock("tweets", runs)


def percentile(effort: Effort) -> Section:
    """A bound of p95."""
    runs = control_penstock.percentile(effort)
    return *control_penstock.summarise_percentile(runs), _of_penstock("percentile", runs)


def _of_penstock(
    name: str, runs: Mapping[str, control_penstock.Watched], begin_s: float = WARM_UP_S
) -> dict[str, Recorded]:
    own = runs[control_penstock.OWN]
    return {name: Recorded(own.cycles, own.plan, begin_s)}


def _contest(chosen: control_primetest.Contest, effort: Effort) -> Section:
    runs = control_primetest.contest(chosen, effort)
    recorded = {
        f"primetest {chosen.work}, {policy}": Recorded(runs[policy].cycles, runs[policy].plan)
        for policy in ("nephele", "penstock")
    }
    return *control_primetest.summarise(chosen, runs), recorded


EXPERIMENTS: dict[str, Callable[[Effort], Section]] = {
    "rate_limited": rate_limited,
    "cpu_bound": cpu_bound,
    "reaction": reaction,
    "batching": batching,
    "chaining": chaining,
    "wordcount": wordcount,
    "calls": calls,
    "climb": climb,
    "tweets": tweets,
    "percentile": percentile,
}
