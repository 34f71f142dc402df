"""The settings of DS2, with the names and meanings of the paper (OSDI 2018, section 4.2.1)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.policy.agreement import AgreementRule
from penstock.policy.ds2_plan import Execution


class Ds2Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the scaling manager (section 4.2.1 of the paper) and of the model."""

    policy_interval_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Time over which rates are gathered for one evaluation; 0: every snapshot.",
            extra={"unit": "s"},
        ),
    ] = 0.0
    warm_up_intervals: Annotated[
        int,
        Meta(
            ge=0,
            description="Policy intervals that are ignored at the start and after a change of parallelism.",
            extra={"unit": "intervals"},
        ),
    ] = 0
    activation_intervals: Annotated[
        int,
        Meta(
            ge=1,
            description="Consecutive evaluations that are considered before acting.",
            extra={"unit": "intervals"},
        ),
    ] = 1
    activation: Annotated[
        AgreementRule,
        Meta(description="Which of these evaluations counts: the last, the max or the median."),
    ] = "last"
    target_rate_ratio: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        Meta(
            description="Largest allowed target rate / observed rate of a source when no scale-up is due;"
            " above it everything grows by that ratio. Null: no correction.",
            extra={"unit": "ratio"},
        ),
    ] = None
    min_change: Annotated[
        int,
        Meta(
            ge=0,
            description="Act only if some task changes by at least this many replicas.",
            extra={"unit": "replicas"},
        ),
    ] = 1
    max_decisions: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Changes allowed while the sources' rates stay the same. Null: no limit.",
            extra={"unit": "decisions"},
        ),
    ] = None
    rate_change: Annotated[
        float,
        Meta(
            ge=0,
            description="Change of a source's rate that counts as a new load: decisions are counted anew and"
            " configurations that were rolled back may be tried again.",
            extra={"unit": "share"},
        ),
    ] = 0.1
    rollback_tolerance: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Undo a change after which the share of the load that is delivered fell by more than"
            " this share. Null: never undo.",
            extra={"unit": "share"},
        ),
    ] = 0.1
    headroom: Annotated[
        float,
        Meta(ge=0, description="Deliberate over-provisioning of every task.", extra={"unit": "share"}),
    ] = 0.0
    execution: Annotated[
        Execution,
        Meta(
            description="per_task: each task has its own replicas. shared_workers: every worker runs every"
            " task (Timely), so that their needs add up.",
        ),
    ] = "per_task"
