"""Snapshots for tests of policies: a prime tester, a pipeline, and random ones."""

import itertools
from typing import Any

from hypothesis import strategies as st

from penstock.stats.snapshot import Snapshot, decode_snapshot

TESTER: dict[str, Any] = {
    "kind": "task",
    "parallelism": 50,
    "min": 1,
    "max": 520,
    "elastic": True,
    "service_ms": 0.08,
    "service_cv": 0.35,
    "interarrival_ms": 0.1333,
    "interarrival_cv": 11.7,
    "queue_wait_ms": 8.0,
    "latency_ms": 0.08,
    "latency_kind": "read_ready",
    "utilization": 0.6,
    "utilization_max": 0.7,
    "cpu": 0.6,
}


def prime_test(*, bound_ms: float = 20, stream: dict[str, Any] | None = None, **changes: object) -> Snapshot:
    """Source, tester, sink with one constraint over stream, tester, stream; `changes` are the tester's."""
    shipped = {"latency_ms": 9.0, "output_batch_ms": 1.0, "batch_lifetime_ms": 2.0, **(stream or {})}
    return decode_snapshot(
        {
            "version": 2,
            "interval_s": 5,
            "tasks": {
                "source": {"kind": "source", "parallelism": 32, "rate_total": 375000},
                "prime": {**TESTER, **changes},
                "sink": {"kind": "sink", "parallelism": 32},
            },
            "streams": [
                {"from": "source", "to": "prime", **shipped},
                {"from": "prime", "to": "sink", **shipped},
            ],
            "constraints": [
                {
                    "name": "c1",
                    "sequence": ["source->prime", "prime", "prime->sink"],
                    "latency_ms": bound_ms,
                    "window_s": 5,
                }
            ],
        }
    )


def pipeline(
    loads: list[float | None],
    *,
    bound_ms: float = 50,
    wiring: str = "forward",
    chains: list[list[str]] | None = None,
    tasks: dict[str, dict[str, Any]] | None = None,
    constrained: bool = True,
) -> Snapshot:
    """Source, then t0, t1, ... with the given loads joined by `wiring`, then a sink."""
    names = [f"t{index}" for index in range(len(loads))]
    path = ["source", *names, "sink"]
    measured = {"latency_ms": 4.0, "output_batch_ms": 1.0, "batch_lifetime_ms": 2.0}
    described: dict[str, dict[str, Any]] = {
        "source": {"kind": "source", "parallelism": 4},
        **{
            name: {
                "kind": "task",
                "parallelism": 4,
                "latency_ms": 2.0,
                "utilization_max": load,
                "cpu": load,
                **((tasks or {}).get(name, {})),
            }
            for name, load in zip(names, loads, strict=True)
        },
        "sink": {"kind": "sink", "parallelism": 4},
    }
    streams = [
        {"from": a, "to": b, "wiring": wiring if a in names and b in names else "round_robin", **measured}
        for a, b in itertools.pairwise(path)
    ]
    sequence = [part for name in names for part in (f"{path[path.index(name) - 1]}->{name}", name)]
    constraint = {"name": "live", "sequence": [*sequence, f"{names[-1]}->sink"], "latency_ms": bound_ms}
    return decode_snapshot(
        {
            "version": 2,
            "interval_s": 5,
            "tasks": described,
            "streams": streams,
            "constraints": [constraint] if constrained else [],
            "chains": chains or [],
        }
    )


@st.composite
def any_snapshot(draw: st.DrawFn) -> Snapshot:
    """A pipeline of one to four tasks with arbitrary measurements, many of them missing or extreme."""
    amount = st.none() | st.floats(0, 1e12) | st.sampled_from([0.0, 1e-300, 1e300])
    fields = [
        "service_ms", "service_cv", "interarrival_ms", "interarrival_cv", "queue_wait_ms", "latency_ms",
        "utilization", "utilization_max", "cpu",
    ]  # fmt: skip
    names = [f"t{index}" for index in range(draw(st.integers(1, 4)))]
    path = ["source", *names, "sink"]
    tasks: dict[str, dict[str, Any]] = {"source": {"kind": "source", "parallelism": 1}}
    for name in names:
        low = draw(st.integers(1, 20))
        tasks[name] = {
            "kind": "task",
            "parallelism": draw(st.integers(1, 20)),
            "min": low,
            "max": draw(st.none() | st.integers(low, 40)),
            "elastic": draw(st.booleans()),
            "latency_kind": draw(st.sampled_from(["read_ready", "read_write", None])),
            **{field: draw(amount) for field in fields},
        }
    tasks["sink"] = {"kind": "sink", "parallelism": 1}
    streams = [
        {
            "from": a,
            "to": b,
            "wiring": draw(st.sampled_from(["round_robin", "forward", "key", "broadcast"])),
            "latency_ms": draw(amount),
            "output_batch_ms": draw(amount),
            "batch_lifetime_ms": draw(amount),
        }
        for a, b in itertools.pairwise(path)
    ]
    elements = [part for a, b in itertools.pairwise(path) for part in (f"{a}->{b}", b)]
    cut = draw(st.integers(0, len(elements)))
    constraints = [
        {"name": f"c{index}", "sequence": part, "latency_ms": draw(st.floats(1e-3, 1e6))}
        for index, part in enumerate((elements[:cut], elements[cut:]))
        if part
    ]
    return decode_snapshot(
        {
            "version": 2,
            "interval_s": 5,
            "tasks": tasks,
            "streams": streams,
            "constraints": constraints,
            "chains": draw(st.sampled_from([[], [["t0"]], [names]])),
        }
    )
