"""The settings of all guards, named `guards.<name>`."""

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.policy.agreement import AgreementRule

Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]


class GuardParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One group for all guards; the limits of a task come from the task itself."""

    slot_budget: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Slots that all tasks may take together. Null: no limit.", extra={"unit": "slots"}),
    ] = None
    warm_up_s: Annotated[
        Seconds, Meta(description="Nothing changes so long after the start.", extra={"unit": "s"})
    ] = 0.0
    apply_timeout_s: Annotated[
        Seconds,
        Meta(
            description="So long data measured with other replicas than the ones asked for counts as stale.",
            extra={"unit": "s"},
        ),
    ] = 30.0
    activation_intervals: Annotated[
        int,
        Meta(
            ge=1,
            description="Proposals in a row, in the same direction, before a task changes.",
            extra={"unit": "intervals"},
        ),
    ] = 1
    activation: Annotated[
        AgreementRule, Meta(description="Which of these proposals counts: the last, the max or the median.")
    ] = "last"
    scale_down_window_s: Annotated[
        Seconds,
        Meta(
            description="Replicas are taken away only down to the largest number proposed within this time.",
            extra={"unit": "s"},
        ),
    ] = 30.0
    scale_down_shown_window_s: Annotated[
        Seconds | None,
        Meta(
            description="The same, if shorter, where so few replicas were enough before at this load.",
            extra={"unit": "s"},
        ),
    ] = None
    dead_band: Annotated[
        Share,
        Meta(description="Changes of a task by less than this share are small.", extra={"unit": "share"}),
    ] = 0.04
    dead_band_s: Annotated[
        Seconds,
        Meta(
            description="Small changes are dropped until they have been wanted for so long.",
            extra={"unit": "s"},
        ),
    ] = 15.0
    max_step_up: Annotated[
        Annotated[float, Meta(gt=1)] | None,
        Meta(
            description="Largest factor by which a task grows in one decision. Null: no limit.",
            extra={"unit": "ratio"},
        ),
    ] = None
    max_step_down: Annotated[
        Share | None,
        Meta(
            description="Largest share of a task's replicas taken away in one decision. Null: no limit.",
            extra={"unit": "share"},
        ),
    ] = 0.6
    cool_down_intervals: Annotated[
        int,
        Meta(
            ge=0,
            description="Nothing is scaled so long after a scale-up, and nothing down after a scale-down.",
            extra={"unit": "intervals"},
        ),
    ] = 2
    ineffective_gain: Annotated[
        Share | None,
        Meta(
            description="A scale-up that brought less than this share of linear scaling is not repeated."
            " Null: no such memory.",
            extra={"unit": "share"},
        ),
    ] = 0.1
    rollback_tolerance: Annotated[
        Share | None,
        Meta(
            description="A change after which the share of the load delivered fell by more, or which took"
            " replicas away and broke a constraint, is undone. Null: nothing is undone.",
            extra={"unit": "share"},
        ),
    ] = 0.1
    rollback_settle_s: Annotated[
        Seconds, Meta(description="Time after a change until it is judged.", extra={"unit": "s"})
    ] = 10.0
    divide_keys_above: Annotated[
        Share | None,
        Meta(
            description="Keys are divided anew where the busiest replica of a task is busier. Null: never.",
            extra={"unit": "share"},
        ),
    ] = 0.6
    divide_keys_gain: Annotated[
        Share,
        Meta(
            description="By what share the busiest replica must have less to do for keys to be divided anew.",
            extra={"unit": "share"},
        ),
    ] = 0.05
    divide_keys_intervals: Annotated[
        int,
        Meta(
            ge=1,
            description="Intervals in a row in which that is so, and that lie between two divisions.",
            extra={"unit": "intervals"},
        ),
    ] = 2
    memory_s: Annotated[
        Seconds,
        Meta(
            description="How long ineffective scale-ups and undone changes are remembered.",
            extra={"unit": "s"},
        ),
    ] = 1800.0
    load_tolerance: Annotated[
        Share,
        Meta(
            description="A source's rate that moved by no more than this share is the same load.",
            extra={"unit": "share"},
        ),
    ] = 0.1
