"""The papers' experiments as jobs: one function each, at paper scale, or smaller for a quick look."""

from functools import partial

from penstock.bench.jobs import Job
from penstock.sim.workloads import classifier, livestream, primetest, twitter, wordcount

AS_PRINTED = "20 ms, formulas as printed"
UNELASTIC = "unelastic, 16 KiB"
CONSTRAINTS_MS = (20, 30, 40, 50, 100)
BATCHING_MS = (25, 50, 75, 100)
# The public code of Nephele leaves its queues less time than the formulas as printed. The papers' experiments
# were presumably run by that code, and so are these; PrimeTest at 20 ms and TwitterSentiments run both ways.
PUBLIC_CODE = ("nephele.queue_limit=public_code",)
# The settings of the papers, the same for every workload.
SETTINGS = {
    "static": (),
    "threshold": (),
    "nephele": PUBLIC_CODE,
    "ds2": ("ds2.policy_interval_s=10", "ds2.warm_up_intervals=3"),
    "mape": ("mape.window_s=25",),
    "dhalion": ("dhalion.policy_interval_s=60", "dhalion.settle_s=180"),
}


def primetest_jobs(*, quick: bool) -> dict[str, Job]:
    """Section 5.3.1 and table 5.1 of the thesis, the formulas as printed at 20 ms, the unelastic baseline."""
    size = {"share": 1 / 32, "step_s": 20.0} if quick else {}
    elastic = partial(Job, primetest.elastic, options=size, policy="nephele")
    jobs = {
        f"{bound_ms} ms": elastic((float(bound_ms),), settings=PUBLIC_CODE)
        for bound_ms in ((20, 100) if quick else CONSTRAINTS_MS)
    }
    jobs[AS_PRINTED] = elastic((20.0,))
    if not quick:
        jobs[UNELASTIC] = Job(primetest.unelastic)
    return jobs


def batching_jobs(*, quick: bool) -> dict[str, Job]:
    """Figure 5.7: fixed rates, immediate shipping and adaptive batching alone.

    Streams begin with about the lifetime they settle at, so that four intervals tell what the thesis' three
    minutes do.
    """
    seconds = 15.0 if quick else 20.0
    bounds: tuple[int | None, ...] = (None, *BATCHING_MS)
    points = [(bound, rate) for bound in bounds for rate in batching_rates(bound)]
    if quick:
        points = [(None, 40_000), (None, 45_000), (100, 50_000)]
    return {
        batching_name(bound_ms, rate): Job(
            primetest.fixed_rate,
            (float(rate), bound_ms, seconds),
            policy="static" if bound_ms is None else "nephele",
            settings=() if bound_ms is None else ("nephele.scaling=off",),
        )
        for bound_ms, rate in points
    }


def batching_rates(bound_ms: int | None) -> tuple[int, ...]:
    """The rates of a source that are tried; immediate shipping is not, beyond its first bottleneck."""
    return (20_000, 40_000, 45_000) if bound_ms is None else (20_000, 40_000, 50_000, 55_000, 60_000, 65_000)


def batching_name(bound_ms: int | None, rate: int) -> str:
    """The name of one point of figure 5.7."""
    return f"{'immediate' if bound_ms is None else f'{bound_ms} ms'} at {rate}"


def twitter_jobs(*, quick: bool) -> dict[str, Job]:
    """Section 5.3.2."""
    seconds = 200.0 if quick else None
    return {
        "public code": Job(twitter.model, policy="nephele", settings=PUBLIC_CODE, seconds=seconds),
        "as printed": Job(twitter.model, policy="nephele", seconds=seconds),
    }


def livestream_jobs(*, quick: bool) -> dict[str, Job]:
    """Sections 5.2.1 and 5.4.1."""
    options = {"pipelines": 20, "seconds": 60.0} if quick else {}
    live = partial(Job, livestream.model, options=options, policy="nephele")
    return {"batching": live(settings=("nephele.chaining=off",)), "batching and chaining": live()}


def wordcount_jobs(*, quick: bool) -> dict[str, Job]:
    """OSDI 2018, sections 5.2 and 5.3."""
    ds2 = Job(
        wordcount.heron,
        policy="ds2",
        settings=("ds2.policy_interval_s=60",),
        seconds=150.0 if quick else 300.0,
    )
    if quick:
        return {"DS2 on Heron": ds2}
    dhalion = Job(wordcount.heron, policy="dhalion", settings=SETTINGS["dhalion"])
    flink = Job(wordcount.flink, policy="ds2", settings=SETTINGS["ds2"])
    return {"DS2 on Heron": ds2, "Dhalion on Heron": dhalion, "DS2 on Flink": flink}


def storm_jobs(*, quick: bool) -> dict[str, Job]:
    """Sections IV-D and IV-E of the adaptive-Storm paper."""
    bell = partial(Job, classifier.gaussian, policy="mape", settings=SETTINGS["mape"])
    jobs = {"pool": bell(), "restart": bell(options={"restart": True})}
    if quick:
        return jobs
    weights = {"delta": "[0.45, 0.45, 0.1]", "U": "[1, 0, 0]", "Q": "[0, 1, 0]"}
    for name, weight in weights.items():
        settings = (*SETTINGS["mape"], f"mape.weights={weight}")
        jobs[name] = Job(classifier.peaks, policy="mape", settings=settings)
    return jobs


def table_jobs(*, quick: bool) -> dict[str, Job]:
    """Every policy on every workload."""
    workloads = {
        "primetest": partial(Job, primetest.elastic, options={"share": 0.1, "step_s": 30.0}),
        "twitter": partial(Job, twitter.model, seconds=2_500.0),
        "livestream": partial(Job, livestream.model, options={"pipelines": 40}),
        "wordcount": partial(Job, wordcount.heron, seconds=1_200.0),
        "classifier": partial(Job, classifier.peaks),
    }
    if quick:
        workloads = {"livestream": partial(Job, livestream.model, options={"pipelines": 10, "seconds": 30.0})}
    return {
        table_name(workload, policy): job(policy=policy, settings=settings)
        for workload, job in workloads.items()
        for policy, settings in SETTINGS.items()
    }


def table_name(workload: str, policy: str) -> str:
    """The name of one line of the table."""
    return f"{workload} under {policy}"
