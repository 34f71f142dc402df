"""Version 2 of the snapshot: read, written, and refused with the field named."""

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.snapshot import SnapshotError, decode_snapshot, encode_snapshot

RAW: dict[str, Any] = {
    "version": 2,
    "interval_s": 5,
    "tasks": {
        "source": {
            "kind": "source",
            "parallelism": 32,
            "rate_total": 375000,
            "lag_ms": 1.5,
            "lag_items": 40,
            "watermark_lag_ms": 250,
        },
        "prime": {
            "kind": "task",
            "parallelism": 50,
            "min": 1,
            "max": 70,
            "elastic": True,
            "service_ms": 0.08,
            "service_cv": None,
            "latency_kind": "read_ready",
            "instances": [{"useful_s": 3.0, "processed": 37500, "emitted": 37500}],
            "worker": ["e1"],
            "key_groups": [{"group": 127, "processed": 12, "useful_s": 0.1, "state_bytes": 4096}],
        },
        "sink": {"kind": "sink", "parallelism": 32},
    },
    "streams": [
        {"from": "source", "to": "prime", "wiring": "round_robin", "latency_ms": 9.0},
        {
            "from": "prime",
            "to": "sink",
            "emitted_total": 37500,
            "queue": {"items": 12, "bytes": 960, "age_ms": 3.5},
            "channels": [{"sender": 0, "receiver": 31, "latency_ms": 4.0, "queue": {"items": 2}}],
        },
    ],
    "constraints": [
        {
            "name": "c1",
            "sequence": ["source->prime", "prime", "prime->sink"],
            "latency_ms": 20,
            "statistic": "mean",
            "window_s": 5,
            "p95_ms": 17.5,
            "p99_ms": 31.0,
        }
    ],
    "chains": [["decode"], ["merge"]],
    "executors": {"e1": {"cores": 8, "cores_used": 3.5, "slots": 24, "slots_used": 21}},
}
REMOVED = object()


def changed(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    raw = copy.deepcopy(RAW)
    inner: Any = raw
    for key in path[:-1]:
        inner = inner[key]
    if value is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return raw


def message(raw: Any) -> str:
    with pytest.raises(SnapshotError) as caught:
        decode_snapshot(raw)
    return str(caught.value)


def test_text_bytes_and_parsed_json_are_the_same() -> None:
    snapshot = decode_snapshot(RAW)
    assert decode_snapshot(json.dumps(RAW)) == snapshot
    assert decode_snapshot(json.dumps(RAW).encode()) == snapshot
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


def test_absent_and_null_are_both_unknown() -> None:
    snapshot = decode_snapshot(RAW)
    assert snapshot.tasks["prime"].service_cv is None
    assert snapshot.tasks["prime"].cpu is None
    assert decode_snapshot(changed(("chains",), None)).chains == []
    assert decode_snapshot(changed(("constraints",), REMOVED)).constraints == []


def test_finding_ones_way() -> None:
    snapshot = decode_snapshot(RAW)
    assert [stream.name for stream in snapshot.streams_into("prime")] == ["source->prime"]
    assert [stream.name for stream in snapshot.streams_out_of("prime")] == ["prime->sink"]
    assert snapshot.stream("prime->sink").receiver == "sink"
    with pytest.raises(KeyError):
        snapshot.stream("sink->prime")
    assert list(snapshot.elastic_tasks()) == ["prime"]
    assert snapshot.topological_order() == ["source", "prime", "sink"]
    (constraint,) = snapshot.constraints
    assert constraint.tasks() == ["prime"]
    assert constraint.streams() == ["source->prime", "prime->sink"]


def test_a_named_output_is_part_of_the_streams_name() -> None:
    raw = changed(("streams", 1, "from"), "prime.late")
    raw["constraints"][0]["sequence"][2] = "prime.late->sink"
    stream = decode_snapshot(raw).streams[1]
    assert (stream.name, stream.sender) == ("prime.late->sink", "prime")


def test_limits_of_replicas() -> None:
    task = decode_snapshot(RAW).tasks["prime"]
    assert [task.within_limits(count) for count in (0, 1, 33, 70, 71)] == [1, 1, 33, 70, 70]
    assert (
        decode_snapshot(changed(("tasks", "prime", "max"), None)).tasks["prime"].within_limits(10**6) == 10**6
    )


PRIME = ("tasks", "prime")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("version",), 3, "version: 3 is not known; this Penstock reads versions 1 and 2"),
        (
            ("executors", "e1", "cores"),
            "many",
            'executors.e1.cores: expected a number or null, got "many"',
        ),
        (("executors",), [], "executors: expected an object, got a list"),
        (
            ("streams", 1, "queue", "age_ms"),
            -1,
            "streams[1].queue.age_ms: -1 is negative; it must be 0 or more",
        ),
        (("streams", 1, "channels", 0, "sender"), REMOVED, "streams[1].channels[0].sender: is missing"),
        (("version",), True, "version: true is not known; this Penstock reads versions 1 and 2"),
        (("version",), REMOVED, "version: is missing; this Penstock reads versions 1 and 2"),
        (("interval_s",), REMOVED, "interval_s: is missing"),
        (("interval_s",), 0, "interval_s: expected a number > 0.0, got 0"),
        (("tasks",), REMOVED, "tasks: is missing"),
        (("tasks",), [], "tasks: expected an object, got a list"),
        (("tasks",), {}, "tasks: is empty; a flow has at least one task"),
        (("extra",), 1, "extra: unknown field"),
        (PRIME, 3, "tasks.prime: expected an object, got 3"),
        ((*PRIME, "servce_ms"), 1, "tasks.prime.servce_ms: unknown field; did you mean 'service_ms'?"),
        ((*PRIME, "kind"), REMOVED, "tasks.prime.kind: is missing"),
        ((*PRIME, "kind"), "tsk", "tasks.prime.kind: expected 'source', 'task' or 'sink', got \"tsk\""),
        (
            (*PRIME, "latency_kind"),
            "x",
            "tasks.prime.latency_kind: expected 'read_ready' or 'read_write', got \"x\"",
        ),
        ((*PRIME, "service_ms"), "x", 'tasks.prime.service_ms: expected a number or null, got "x"'),
        ((*PRIME, "service_ms"), -1, "tasks.prime.service_ms: -1 is negative; it must be 0 or more"),
        (
            (*PRIME, "service_ms"),
            math.nan,
            "tasks.prime.service_ms: nan is not a finite number; leave out what was not measured",
        ),
        (
            (*PRIME, "service_ms"),
            math.inf,
            "tasks.prime.service_ms: inf is not a finite number; leave out what was not measured",
        ),
        ((*PRIME, "parallelism"), 1.5, "tasks.prime.parallelism: expected a whole number, got 1.5"),
        ((*PRIME, "parallelism"), 0, "tasks.prime.parallelism: expected a whole number >= 1, got 0"),
        ((*PRIME, "elastic"), 1, "tasks.prime.elastic: expected true or false, got 1"),
        ((*PRIME, "max"), 0, "tasks.prime.max: expected a whole number >= 1, got 0"),
        ((*PRIME, "min"), 80, "tasks.prime.max: 70 is less than min, which is 80"),
        (
            (*PRIME, "instances", 0, "useful_s"),
            "x",
            'tasks.prime.instances[0].useful_s: expected a number or null, got "x"',
        ),
        ((*PRIME, "instances", 0, "usefl"), 1, "tasks.prime.instances[0].usefl: unknown field"),
        ((*PRIME, "worker"), [3], "tasks.prime.worker[0]: expected a text, got 3"),
        (
            ("tasks", "a->b"),
            {"kind": "sink", "parallelism": 1},
            "tasks.a->b: a task's name is not empty and holds neither '->' nor '.'",
        ),
        (
            ("streams", 0, "to"),
            "prim",
            "streams[0].to: there is no task 'prim'; there are prime, sink, source",
        ),
        (
            ("streams", 0, "from"),
            "sink",
            "streams[0].from: 'sink' is a sink and sends nothing",
        ),
        (("streams", 1, "to"), "source", "streams[1].to: 'source' is a source and receives nothing"),
        (
            ("streams", 0, "wiring"),
            "x",
            "streams[0].wiring: expected 'round_robin', 'key', 'broadcast' or 'forward', got \"x\"",
        ),
        (
            ("streams", 1),
            {"from": "source", "to": "prime"},
            "streams[1]: 'source->prime' is there twice; name it once",
        ),
        (("streams", 1, "to"), REMOVED, "streams[1].to: is missing"),
        (("streams",), {}, "streams: expected a list, got an object"),
        (("constraints", 0, "latency_ms"), 0, "constraints[0].latency_ms: expected a number > 0.0, got 0"),
        (
            ("constraints", 0, "statistic"),
            "q9",
            "constraints[0].statistic: 'q9' is not known; use 'mean' or a percentile such as 'p95'",
        ),
        (
            ("constraints", 0, "sequence"),
            [],
            "constraints[0].sequence: is empty; name at least one task or stream",
        ),
        (
            ("constraints", 0, "sequence", 0),
            "source->sink",
            "constraints[0].sequence[0]: there is no stream 'source->sink';"
            " there are prime->sink, source->prime",
        ),
        (
            ("constraints", 0, "sequence", 1),
            "prim",
            "constraints[0].sequence[1]: there is no task 'prim'; there are prime, sink, source",
        ),
        (
            ("constraints", 0, "sequence"),
            ["source->prime", "prime->sink"],
            "constraints[0].sequence[1]: 'prime->sink' does not follow 'source->prime';"
            " a sequence alternates tasks and the streams that join them",
        ),
        (
            ("constraints", 0, "sequence"),
            ["prime", "source->prime"],
            "constraints[0].sequence[1]: 'source->prime' does not follow 'prime';"
            " a sequence alternates tasks and the streams that join them",
        ),
        (
            ("chains", 0),
            ["prime", "decod"],
            "chains[0][1]: there is no task 'decod'; there are prime, sink, source",
        ),
        (("chains", 0), ["source", "sink"], "chains[0][1]: no stream joins 'source' to 'sink'"),
        (("chains", 1), ["decode"], "chains[1][0]: 'decode' is already in a chain; a task is in one chain"),
        (("chains", 0), 3, "chains[0]: expected a list, got 3"),
    ],
)  # fmt: skip
def test_refusals_name_the_field(path: tuple[str | int, ...], value: object, expected: str) -> None:
    assert message(changed(path, value)) == expected
    if value is not REMOVED:
        assert message(json.dumps(changed(path, value))) == expected


def second_constraint(**changes: object) -> dict[str, Any]:
    raw = copy.deepcopy(RAW)
    raw["constraints"].append({"name": "c2", "sequence": ["prime"], "latency_ms": 1, **changes})
    return raw


def test_constraints_together() -> None:
    assert len(decode_snapshot(second_constraint()).constraints) == 2
    assert message(second_constraint(sequence=["prime", "prime->sink"])) == (
        "constraints[1].sequence: stream 'prime->sink' is already in constraint 'c1';"
        " constraints may share tasks but no stream"
    )
    assert message(second_constraint(name="c1")) == (
        "constraints[1].name: 'c1' is there twice; give each constraint its own"
    )
    assert message(second_constraint(window_s=7)) == (
        "constraints[1].window_s: 7 differs from the 5 of constraint 'c1';"
        " all constraints of a flow have one window"
    )


def test_a_cycle() -> None:
    raw = copy.deepcopy(RAW)
    raw["tasks"]["loop"] = {"kind": "task", "parallelism": 1}
    raw["streams"] += [{"from": "prime", "to": "loop"}, {"from": "loop", "to": "prime"}]
    assert message(raw) == "streams: tasks 'loop', 'prime' form a cycle; a flow has none"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "snapshot: expected an object, got a list"),
        (
            "{",
            "snapshot: is not JSON:"
            " Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ('{"version": 2, "version": 1}', "version: is there twice in the same object; name it once"),
        (
            b"\xff",
            "snapshot: is not JSON:"
            " 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        ("[" * 100_000, "snapshot: is nested too deeply to be a snapshot"),
    ],
)  # fmt: skip
def test_what_is_no_snapshot_at_all(text: str | bytes, expected: str) -> None:
    assert message(text) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PLACES = [
    ("interval_s",), ("tasks",), PRIME, (*PRIME, "service_ms"), (*PRIME, "instances"), (*PRIME, "worker"),
    ("streams",), ("streams", 0), ("streams", 0, "from"), ("constraints",), ("constraints", 0),
    ("constraints", 0, "sequence"), ("chains",), ("chains", 0),
]  # fmt: skip


@given(st.sampled_from(PLACES), JSON)
def test_anything_anywhere_is_read_or_refused_by_name(path: tuple[str | int, ...], value: object) -> None:
    text = json.dumps(changed(path, value))
    try:
        snapshot = decode_snapshot(text)
    except SnapshotError:
        assert ": " in message(text)
    else:
        assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
