"""Single-server FIFO queues, many at a time, without a loop over items.

Lindley's recursion for the start of service of job k of one server is

    start_k = max(arrival_k, start_{k-1} + work_{k-1})

and unrolled, with C_k = work_1 + ... + work_k (Lindley 1952; the "cumulative sum minus running minimum"
form):

    start_k = C_{k-1} + max_{j <= k} (arrival_j - C_{j-1})

so a cumulative sum and a running maximum give every start time exactly. The jobs of all servers lie in one
array, sorted by server and then by arrival; the running maximum is kept inside a server by lifting each
server's values above those of the server before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats, Ints


def start_times(arrival: Floats, work: Floats, first: Ints, free_at: Floats) -> Floats:
    """When each job's service starts.

    `first` holds the index of the first job of each server that has one, in order; `free_at` the time at
    which that server has finished everything it was given before.
    """
    if arrival.size == 0:
        return np.empty(0)
    done_before = np.cumsum(work)
    done_before -= work
    jobs = np.diff(np.append(first, arrival.size))
    done_before -= np.repeat(done_before[first], jobs)
    slack = arrival - done_before
    slack[first] = np.maximum(arrival[first], free_at)
    lift = np.arange(first.size) * (slack.max() - slack.min() + 1.0)
    lifts = np.repeat(lift, jobs)
    slack += lifts
    np.maximum.accumulate(slack, out=slack)
    slack -= lifts
    slack += done_before
    return slack


def single_server(arrival: Floats, work: Floats, free_at: float = 0.0) -> Floats:
    """Start times of the jobs of one server."""
    return start_times(arrival, work, np.zeros(min(1, arrival.size), dtype=np.int64), np.array([free_at]))


def equal_work_departures(arrival: Floats, work: float, free_at: Floats) -> Floats:
    """Departures of servers with constant work: `arrival` has one row per turn and one column per server.

    With constant work w the sum is a product: departure_m = (m + 1) w + max_{j <= m} (arrival_j - j w).
    """
    turns = np.arange(arrival.shape[0])[:, None] * work
    departures = arrival - turns
    np.maximum(departures[0], free_at, out=departures[0])
    np.maximum.accumulate(departures, axis=0, out=departures)
    departures += turns
    departures += work
    return departures
