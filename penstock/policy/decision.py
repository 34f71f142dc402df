"""What a policy answers: replicas, batch lifetimes and chains, and the reasons for each of them."""

import msgspec

Setting = int | float | str | list[str] | None
KeySpan = tuple[int, int, int]
"""First and last of the groups of keys in a row that one replica is to own, and that replica."""
Evidence = dict[str, int | float | str | None]


class Reason(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """Why something changes, or why it must not: the rule, what it read, and what it expects to happen."""

    rule: str
    constraint: str | None = None
    task: str | None = None
    stream: str | None = None
    before: Setting = None
    after: Setting = None
    inputs: Evidence | None = None
    prediction: Evidence | None = None
    why: str


class Refusal(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """A change the policy wanted and a guard held back; `after` is what was wanted."""

    guard: str
    task: str | None = None
    stream: str | None = None
    before: Setting = None
    after: Setting = None
    why: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings to apply. `parallelism` lists every elastic task, changed or not.

    `key_tables` has tasks whose keys are to be divided anew: otherwise than now, and than evenly if they get
    another number of replicas.
    """

    policy: str
    parallelism: dict[str, int]
    batch_lifetime_ms: dict[str, float]
    chains: list[list[str]]
    feasible: bool
    reasons: list[Reason]
    refused: list[Refusal] = []
    key_tables: dict[str, list[KeySpan]] = {}


def encode_decision(decision: Decision) -> bytes:
    """One line of JSON, with the names of the documented format."""
    return msgspec.json.encode(decision)
