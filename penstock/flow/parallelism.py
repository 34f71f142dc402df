"""How many replicas a task may have."""

from dataclasses import dataclass, field

from penstock.flow.errors import FlowError

# A pool near the need: twice the replicas a task starts with, but room for a few steps up in any case.
# Idle replicas hold a slot and connections to every sender, so the pool is not simply the maximum.
SMALLEST_DEFAULT_POOL = 8


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Bounds on the replicas of a task: `initial` are active at the start, `pool` are pre-allocated.

    `defaults` names the fields that the user left to Penstock.
    """

    min: int
    max: int
    initial: int
    pool: int
    defaults: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        shown = f"parallelism (min {self.min}, max {self.max}, initial {self.initial}, pool {self.pool})"
        for name in ("min", "max", "initial", "pool"):
            check_replicas(getattr(self, name), f"{shown}: {name}")
        if self.min > self.max:
            raise FlowError(f"{shown}: min {self.min} is greater than max {self.max}; swap the two bounds")
        if not self.min <= self.initial <= self.max:
            raise FlowError(
                f"{shown}: initial {self.initial} is outside {self.min} to {self.max};"
                " choose it between the bounds"
            )
        if not self.initial <= self.pool <= self.max:
            raise FlowError(
                f"{shown}: pool {self.pool} is outside {self.initial} to {self.max};"
                " it must hold the initial replicas and at most max"
            )

    @property
    def elastic(self) -> bool:
        """Whether the number of replicas may change while the flow runs."""
        return self.min < self.max

    def __str__(self) -> str:
        if self.elastic:
            return f"elastic({self.min}, {self.max}, initial={self.initial}, pool={self.pool})"
        return str(self.min)


def fixed(replicas: int) -> Parallelism:
    """Exactly `replicas` replicas, all active from the start."""
    return Parallelism(replicas, replicas, replicas, replicas)


def elastic(lowest: int, highest: int, *, initial: int | None = None, pool: int | None = None) -> Parallelism:
    """Between `lowest` and `highest` replicas; `initial` (default `lowest`) are active at the start.

    The pool defaults to twice the initial replicas, at least 8, at most `highest`.
    """
    start = lowest if initial is None else initial
    check_replicas(start, "elastic(...): the number of replicas to start with")
    check_replicas(highest, "elastic(...): the highest number of replicas")
    room = min(highest, max(SMALLEST_DEFAULT_POOL, 2 * start)) if pool is None else pool
    left_out = [name for name, given in (("initial", initial), ("pool", pool)) if given is None]
    return Parallelism(lowest, highest, start, room, tuple(left_out))


def check_replicas(count: object, what: str) -> None:
    """Refuse a number of replicas that is not a whole number of at least 1."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise FlowError(f"{what} must be a whole number of at least 1, not {count!r}")
