"""Flow models that make no sense are refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.sim.load import Curve
from penstock.sim.model import FlowModel, ModelError, StreamModel, TaskModel

SOURCE = TaskModel("source", "source", load=Curve.constant(1.0))
WORK = TaskModel("work", replicas=2)
STREAM = StreamModel("source", "work")


@pytest.mark.parametrize(
    ("tasks", "streams", "message"),
    [
        ((SOURCE, SOURCE), (), "flow 'f': two tasks have the same name"),
        ((SOURCE,), (STREAM,), "stream 'source->work': there is no task 'work'"),
        ((WORK, SOURCE), (STREAM,), "stream 'source->work': list task 'source' before 'work'"),
        ((SOURCE, WORK), (replace(STREAM, wiring="key"),), "stream 'source->work': wiring key needs `keys`"),
        (
            (SOURCE, WORK),
            (replace(STREAM, wiring="forward"),),
            "stream 'source->work': forward needs tasks of the same fixed number of replicas",
        ),
        (
            (replace(WORK, load=Curve.constant(1.0)),),
            (),
            "task 'work': a source, and only a source, has a load",
        ),
        (
            (replace(WORK, minimum=3, maximum=4),),
            (),
            "task 'work': starts with 2 replicas, outside 3..4",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    tasks: tuple[TaskModel, ...], streams: tuple[StreamModel, ...], message: str
) -> None:
    with pytest.raises(ModelError) as refused:
        FlowModel("f", tasks, streams)
    assert str(refused.value) == message


def test_pipelines_are_runs_of_forward_streams() -> None:
    tasks = [TaskModel(name, replicas=2) for name in "abcd"]
    streams = [StreamModel(a, b, "forward") for a, b in ("ab", "bc")] + [StreamModel("c", "d")]
    assert FlowModel("f", tuple(tasks), tuple(streams)).pipelines() == [["a", "b", "c"]]
