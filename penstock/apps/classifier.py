"""The topic classifier of the adaptive-Storm paper: four tasks in a row over tweets (section IV-B), and its
larger application in which news and opinions go different ways and end in a database (section IV-F).

Every task looks for the keywords that tell the next label. The traffic is Gaussian, has ten peaks like the
paper's real one, or is read from a CSV trace.
"""

from typing import Literal

import penstock
from penstock.apps.board import Board
from penstock.apps.classifier_graphs import branches, row
from penstock.apps.classifier_tasks import Tweets, per_path
from penstock.apps.store import Store
from penstock.apps.texts import checked_texts
from penstock.io.schedule import Schedule
from penstock.io.trace import trace as read_trace

# 10 ms a tweet, as in the simulated classifier: several replicas are needed for some hundred tweets a second.
TWEETS_PER_S = 100.0

Graph = Literal["row", "branches"]
Traffic = Literal["gaussian", "peaks"]
Work = Literal["cpu", "rate_limited"]


def traffic(shape: Traffic, seconds: float, peak_per_s: float) -> Schedule:
    """The traffic of the simulated classifier, stretched to a length and a height."""
    # Here, so that what runs in workers does not load NumPy.
    from penstock.sim.workloads.classifier import gaussian_rate, peaks_rate

    curve = gaussian_rate() if shape == "gaussian" else peaks_rate()
    # All pieces of these curves are of one length.
    spans_s = (seconds / len(curve.values),) * len(curve.values)
    return Schedule(spans_s, tuple(rate / max(curve.values) * peak_per_s for rate in curve.values))


def flow(
    *,
    graph: Graph = "row",
    shape: Traffic = "gaussian",
    seconds: float = 300.0,
    peak_per_s: float = 200.0,
    trace: str | None = None,
    speed_up: float = 200.0,
    scale: float = 1.0,
    work: Work = "rate_limited",
    texts: str | None = None,
    out: str | None = None,
    database: str | None = None,
    seed: int = 0,
) -> penstock.Flow:
    """For `penstock run classifier`: `shape` within `seconds`, or a CSV trace, `speed_up` times as fast.

    The tweets with their labels are kept in the SQLite file `database`; without it, how many have the same
    labels is written to the file `out`.
    """
    if trace is None:
        schedule = traffic(shape, seconds, peak_per_s)
    else:
        schedule = read_trace(trace, speed_up=speed_up, scale=scale)
    declare = row if graph == "row" else branches
    return declare(
        penstock.paced(Tweets(checked_texts(texts)), schedule, seed=seed, seconds=seconds),
        Board(out, per_path) if database is None else Store(database),
        replicas=penstock.elastic(1, 8),
        tweets_per_s=TWEETS_PER_S if work == "rate_limited" else None,
    )
