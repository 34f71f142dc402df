"""What is said over the socket of a running flow: lines of JSON.

Whoever connects is greeted; then every request is a line, and its answer is a line:

    {"version": 1, "penstock": "0.1.0", "flow": "primes", "run": "9f...", "pid": 4711, "started_at_s": 1.7e9}
    {"do": "set", "replicas": {"work": 3}}
    {"say": "changed", "changes": ["work: 2 -> 3 replicas"], ...}
"""

import msgspec

from penstock.control.by_hand import Mode
from penstock.control.status import FlowStatus
from penstock.observe.progress import State

VERSION = 1
REQUEST_BYTES = 1 << 16
ANSWER_BYTES = 1 << 26


class ProtocolError(RuntimeError):
    """The other side speaks another version, or no sense; the message says which."""


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """Which flow this is. `run` is another one for every start, `pid` is the driver's process."""

    version: int = VERSION
    penstock: str
    flow: str
    run: str
    pid: int
    started_at_s: float


class AskStatus(msgspec.Struct, frozen=True, tag_field="do", tag="status"):
    """How is it?"""


class Set(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do", tag="set"):
    """Change replicas by task, lifetimes of batches by stream, bounds by constraint: all or nothing.

    `pause` and `resume` name sources. `policy` says whether what the policy decides is carried out, only
    recommended, or not even asked for; None leaves it.
    """

    replicas: dict[str, int] = {}
    lifetimes_ms: dict[str, float] = {}
    bounds_ms: dict[str, float] = {}
    pause: list[str] = []
    resume: list[str] = []
    policy: Mode | None = None


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="stop"):
    """Drain it within that time; the answer comes when it is over."""

    timeout_s: float = 60.0


class TaskNow(msgspec.Struct, frozen=True, kw_only=True):
    """A task: replicas of now, the pool, what was declared; rates of the last seconds, None if unknown.

    `lag_items` is how far a source is behind, None where that is not known; `state_bytes` is the size of what
    the last commit has of its state.
    """

    name: str
    kind: str
    replicas: int
    pool: int
    lowest: int
    highest: int
    items_in: int
    per_s: float | None = None
    skipped: int = 0
    dead_lettered: int = 0
    restarts: int = 0
    paused: bool = False
    lag_items: int | None = None
    state_bytes: int | None = None


class CommitsNow(msgspec.Struct, frozen=True, kw_only=True):
    """Commits by epoch marks so far, and the last one: its epoch, how long ago it was, how long it took."""

    count: int
    voids: int
    rollbacks: int
    epoch: int | None = None
    age_s: float | None = None
    took_ms: float | None = None


class ConstraintNow(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint with its bound of now."""

    name: str
    sequence: list[str]
    bound_ms: float


class LatencyNow(msgspec.Struct, frozen=True, kw_only=True):
    """Of sampled items from their due time to a sink, since the start."""

    mean_ms: float | None
    p99_ms: float | None


class FlowNow(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="status"):
    """A running flow. `control` is what its policy saw and decided, None without a policy.

    `commits` is None where they are boundaries. `heaviest_groups` are, of each task that receives by key,
    groups of keys that were sent the most items lately, and their shares of all.
    """

    state: State
    message: str
    slots: int
    restarts: int
    tasks: list[TaskNow]
    lifetimes_ms: dict[str, float]
    constraints: list[ConstraintNow]
    latency: dict[str, LatencyNow]
    control: FlowStatus | None = None
    commits: CommitsNow | None = None
    heaviest_groups: dict[str, list[tuple[int, float]]] = {}


class Changed(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="changed"):
    """What was set, in words; `gap_ms` is how long no source was reading, 0 without a boundary.

    `in_effect` is False if some executor had not confirmed it yet.
    """

    changes: list[str]
    gap_ms: float = 0.0
    in_effect: bool = True
    note: str | None = None


class Stopped(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="stopped"):
    """The flow is over, and what was drained; `commit` is the number of its last commit."""

    words: str
    commit: int | None = None
    items: dict[str, int] = {}
    took_s: float = 0.0


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag="refused"):
    """Nothing was done, and why; `failed` if it is not the request that is wrong but the flow that failed."""

    why: str
    failed: bool = False


Request = AskStatus | Set | Stop
Answer = FlowNow | Changed | Stopped | Refused


class _AnyGreeting(msgspec.Struct, frozen=True):
    version: int
    penstock: str = "?"
    flow: str = "?"


def encode(message: Greeting | Request | Answer) -> bytes:
    """One line, without its end."""
    return msgspec.json.encode(message)


def decode_request(line: bytes) -> Request:
    """A `ProtocolError` if it is none."""
    try:
        request: Request = msgspec.json.decode(line, type=Request)
    except msgspec.DecodeError as problem:
        raise ProtocolError(f"this is no request: {problem}") from None
    return request


def decode_answer(line: bytes) -> Answer:
    """A `ProtocolError` if it is none."""
    try:
        answer: Answer = msgspec.json.decode(line, type=Answer)
    except msgspec.DecodeError as problem:
        raise ProtocolError(f"the flow gave an answer that is not understood: {problem}") from None
    return answer


def decode_greeting(line: bytes) -> Greeting:
    """A `ProtocolError` if it is none, or of another version."""
    try:
        any_version = msgspec.json.decode(line, type=_AnyGreeting)
        if any_version.version != VERSION:
            raise ProtocolError(
                f'flow "{any_version.flow}" runs with Penstock {any_version.penstock}, whose commands are of'
                f" version {any_version.version}; this Penstock knows version {VERSION}:"
                " use the one that runs the flow"
            )
        return msgspec.json.decode(line, type=Greeting)
    except msgspec.DecodeError as problem:
        raise ProtocolError(f"no flow of Penstock answers: {problem}") from None
