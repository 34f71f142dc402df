"""The envelope kernels against items sent one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.envelopes import (
    NOTHING_OPEN,
    ClosedRuns,
    Grid,
    OpenEnvelopes,
    close_by_jump,
    close_by_row,
    close_together,
)

Shown = list[tuple[int, int, float, float, bool, int]]


@dataclass(frozen=True)
class Case:
    grid: Grid
    lifetime_s: np.ndarray
    limit: int | None
    before: OpenEnvelopes


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    senders, slots = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    counts = rng.integers(0, 20, senders)
    counts[rng.integers(0, senders)] += 1
    times = np.concatenate([np.sort(rng.random(count)) for count in counts])
    limit = draw(st.sampled_from([None, 1, 2, 3, 5]))
    before = OpenEnvelopes.none(senders * slots)
    if limit != 1:
        already_open = rng.random(senders * slots) < 0.5
        before.deadline[already_open] = 0.7 * rng.random(already_open.sum())
        before.filled[already_open] = rng.integers(1, limit or 9, already_open.sum())
    grid = Grid(times, counts, rng.integers(0, slots, senders), slots)
    lifetime_s = draw(st.sampled_from([0.01, 0.1, 0.5, np.inf])) * rng.uniform(0.8, 1.2, senders * slots)
    return Case(grid, lifetime_s, limit, before)


def one_by_one(case: Case) -> Shown:
    """Every item in turn: join the open envelope, or open one."""
    deadline, filled = case.before.deadline.copy(), case.before.filled.copy()
    latest: dict[int, dict[str, float]] = {}
    runs: list[dict[str, float]] = []
    for channel, time in zip(case.grid.channel_of_items(), case.grid.times, strict=True):
        if time >= deadline[channel]:
            latest[channel] = {"channel": channel, "size": 0, "emitted": 0.0, "opens": True}
            runs.append(latest[channel])
            deadline[channel], filled[channel] = time + case.lifetime_s[channel], 0
        elif channel not in latest:
            latest[channel] = {"channel": channel, "size": 0, "emitted": 0.0, "opens": False}
            runs.append(latest[channel])
        run = latest[channel]
        filled[channel] += 1
        if case.limit is not None and filled[channel] >= case.limit:
            deadline[channel] = time
        run["size"] += 1
        run["emitted"] += time
        run["ships"] = deadline[channel]
        run["filled"] = filled[channel]
    return sorted(
        (
            int(run["channel"]),
            int(run["size"]),
            round(run["emitted"], 9),
            round(run["ships"], 9),
            bool(run["opens"]),
            int(run["filled"]),
        )
        for run in runs
    )


def shown(runs: ClosedRuns) -> Shown:
    columns = (runs.channel, runs.size, runs.emit_sum, runs.ships_at, runs.opens, runs.filled)
    return sorted(
        (int(c), int(n), round(float(e), 9), round(float(s), 9), bool(o), int(f))
        for c, n, e, s, o, f in zip(*columns, strict=True)
    )


@given(cases())
def test_rows_close_envelopes_as_single_items_do(case: Case) -> None:
    assert shown(close_by_row(case.grid, case.lifetime_s, case.limit, case.before)) == one_by_one(case)


@given(cases())
def test_jumps_close_envelopes_as_single_items_do(case: Case) -> None:
    channel = case.grid.channel_of_items()
    order = np.argsort(channel, kind="stable")
    counts = np.bincount(channel, minlength=case.before.deadline.size).astype(np.int64)
    runs = close_by_jump(case.grid.times[order], counts, case.lifetime_s, case.limit, case.before)
    assert shown(runs) == one_by_one(case)


def one_timer(case: Case, before: OpenEnvelopes, pause_s: float) -> Shown:
    """Every item in turn: when the timer of its sender had no look left for it, it starts it again."""
    slots = case.grid.slots
    timer = before.deadline.reshape(-1, slots).max(axis=1)
    wave = np.zeros(timer.size, dtype=int)
    runs: dict[tuple[int, int], list[float]] = {}
    ships: dict[tuple[int, int], float] = {}
    for channel, time in zip(case.grid.channel_of_items(), case.grid.times, strict=True):
        sender = channel // slots
        last_look = np.floor(timer[sender] / pause_s) * pause_s if pause_s else timer[sender]
        if time >= last_look:
            timer[sender] = time + case.lifetime_s[sender * slots]
            wave[sender] += 1
        runs.setdefault((channel, wave[sender]), []).append(time)
        ships[channel, wave[sender]] = timer[sender]
    joined = {key: key[1] == 0 and before.deadline[key[0]] > NOTHING_OPEN for key in runs}
    return sorted(
        (
            int(key[0]),
            len(times),
            round(float(sum(times)), 9),
            round(float(ships[key]), 9),
            not joined[key],
            len(times) + (int(before.filled[key[0]]) if joined[key] else 0),
        )
        for key, times in runs.items()
    )


@given(cases(), st.sampled_from([0.0, 0.004, 0.03]))
def test_one_timer_ships_all_channels_of_a_sender(case: Case, pause_s: float) -> None:
    by_sender = case.before.deadline.reshape(-1, case.grid.slots)
    shared = np.where(by_sender > NOTHING_OPEN, by_sender.max(axis=1, keepdims=True), NOTHING_OPEN)
    before = OpenEnvelopes(shared.reshape(-1), case.before.filled)
    channel = case.grid.channel_of_items()
    order = np.argsort(channel, kind="stable")
    runs = close_together(case.grid.times, case.grid.counts, channel, order, case.lifetime_s, before, pause_s)
    assert shown(runs) == one_timer(case, before, pause_s)
    times = case.grid.times[order]
    for base, size, total in zip(runs.base, runs.size, runs.emit_sum, strict=True):
        assert np.isclose(times[base : base + size].sum(), total)


@given(cases())
def test_runs_point_at_their_items(case: Case) -> None:
    runs = close_by_row(case.grid, case.lifetime_s, case.limit, case.before)
    channel = case.grid.channel_of_items()
    covered = []
    for number, base, size, total in zip(runs.channel, runs.base, runs.size, runs.emit_sum, strict=True):
        items = base + runs.stride * np.arange(size)
        assert (channel[items] == number).all()
        assert np.isclose(case.grid.times[items].sum(), total)
        covered += items.tolist()
    assert sorted(covered) == list(range(case.grid.times.size))
