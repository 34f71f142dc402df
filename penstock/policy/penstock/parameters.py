"""What can be set: the share of intervals to hold, and a switch for each part."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Switch = Literal["on", "off"]


class PenstockParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The share that is promised, the time in which a backlog goes, and the parts for an ablation."""

    share: Annotated[
        float,
        Meta(
            gt=0.5,
            lt=1,
            description="Intervals to be held, of constraints that say nothing else.",
            extra={"unit": "share"},
        ),
    ] = 0.99
    drain_s: Annotated[
        float,
        Meta(gt=0, description="In which time a backlog is to be gone, or an interval.", extra={"unit": "s"}),
    ] = 5.0
    envelope_ms: Annotated[
        float,
        Meta(ge=0, description="What an envelope costs its sender or receiver.", extra={"unit": "ms"}),
    ] = 0.05
    lifetimes: Annotated[Switch, Meta(description="Off: batch lifetimes stay as they are.")] = "on"
    chains: Annotated[Switch, Meta(description="Off: chains stay as they are.")] = "on"
    forecast: Annotated[Switch, Meta(description="Off: what comes is what came in the last interval.")] = "on"
    season: Annotated[Switch, Meta(description="Off: a load that comes again is met as if it never had.")] = (
        "on"
    )
    headroom: Annotated[Switch, Meta(description="Off: forecasts are taken as certain.")] = "on"
    capacity: Annotated[
        Switch, Meta(description="Off: each replica does as much as now, however many there are.")
    ] = "on"
    waiting: Annotated[
        Switch, Meta(description="Off: Kingman's formula with arrivals that stay as they are.")
    ] = "on"
    margin: Annotated[
        Switch, Meta(description="Off: nothing is learnt from intervals that were not held.")
    ] = "on"
    price: Annotated[
        Switch, Meta(description="Off: changes are taken to cost nothing, and made at once.")
    ] = "on"
