"""Livestream: 400 pipelines that decode, merge, overlay and encode video (thesis, 5.1.1, 5.2.1, 5.4.1).

3,200 feeds of 25 frames/s, 8 to a pipeline, merged in groups of 4 whose frames come together. Per frame of
320 x 240: 1 ms to decode, and for a merged frame of four times that size 0.5 ms to overlay and 6 ms to
encode (ratios as PyAV has them). A decoded frame is 300 KB, nine output buffers of 32 KB and a bit; that
last bit waits for the next frame or for its lifetime, so an envelope of frames is full with two. Handing a
frame over costs a copy on each side, at about 1.2 GB/s. Ten tasks share the four cores of a worker.
"""

from __future__ import annotations

from functools import partial

from penstock.sim.distributions import Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

PIPELINES = 400
FEEDS = 3_200
FRAMES_PER_S = 25.0
GROUP = 4
SEQUENCE = [
    "source->decoder",
    "decoder",
    "decoder->merger",
    "merger",
    "merger->overlay",
    "overlay",
    "overlay->encoder",
    "encoder",
    "encoder->sink",
]
PACKET = Costs(20e-6, 5e-6, 20e-6, 5e-6, 0.3e-3)
FRAME = Costs(20e-6, 250e-6, 20e-6, 250e-6, 0.05e-3)
MERGED = Costs(20e-6, 1_000e-6, 20e-6, 1_000e-6, 0.05e-3)


def model(
    constraint_ms: float = 50.0,
    *,
    pipelines: int = PIPELINES,
    initial_lifetime_ms: float = 0.0,
    seconds: float = 180.0,
) -> FlowModel:
    """All pipelines carry the same load: fewer of them are the same experiment, quicker to simulate."""
    groups_per_s = FEEDS / PIPELINES * pipelines * FRAMES_PER_S / GROUP
    here = partial(TaskModel, site="worker", per_worker=2)
    batched = partial(StreamModel, lifetime_ms=initial_lifetime_ms)
    tasks = (
        here("source", "source", pipelines, load=Curve.constant(groups_per_s)),
        here("decoder", replicas=pipelines, service_s=1.0e-3, service=Gamma(0.5)),
        here("merger", replicas=pipelines, service_s=0.3e-3, group=GROUP, latency="read_write"),
        here("overlay", replicas=pipelines, service_s=0.5e-3, service=Gamma(0.3)),
        here("encoder", replicas=pipelines, service_s=6.0e-3, service=Gamma(0.3)),
        TaskModel("sink", "sink", max(1, pipelines // 2), service_s=20e-6, site="worker", per_worker=1),
    )
    streams = (
        batched("source", "decoder", "forward", limit_items=16, ratio=Curve.constant(GROUP), costs=PACKET),
        batched("decoder", "merger", "forward", limit_items=2, costs=FRAME),
        batched("merger", "overlay", "forward", limit_items=2, costs=MERGED),
        batched("overlay", "encoder", "forward", limit_items=2, costs=MERGED),
        batched("encoder", "sink", limit_items=4, costs=PACKET),
    )
    constraint = ConstraintSpec(name="live", sequence=SEQUENCE, latency_ms=constraint_ms, window_s=5.0)
    cluster = ClusterModel(cores_per_worker=4.0, threads_per_core=1.3)
    return FlowModel("livestream", tasks, streams, (constraint,), cluster, interval_s=5.0, seconds=seconds)
