"""Constraints of a running flow, looked at whenever their window is over."""

from msgspec.structs import replace

from penstock.flow.graph import Constraint
from penstock.observe.constraint_watch import ConstraintWatch
from penstock.stats.snapshot import ConstraintSpec, Snapshot, TaskStats


class View:
    """A flow whose intervals were judged already."""

    def __init__(self, *verdicts: bool | None, samples: int = 100) -> None:
        self.bound_ms = 20.0
        self.samples = samples
        self.lengths_s: list[float] = []
        self._verdicts = iter(verdicts)

    def constraints(self) -> tuple[Constraint, ...]:
        return (Constraint("fast", ("work",), self.bound_ms, window_s=2.0),)

    def snapshot(self, interval_s: float) -> Snapshot:
        self.lengths_s.append(interval_s)
        held = next(self._verdicts)
        seen = ConstraintSpec(name="fast", sequence=["work"], latency_ms=self.bound_ms)
        if held is not None:
            value_ms = 10.0 if held else 30.0
            tail = {"p95_ms": 40.0, "p99_ms": 50.0, "samples": self.samples}
            seen = replace(seen, held=held, mean_ms=value_ms, **tail)
        work = TaskStats(kind="task", parallelism=1)
        return Snapshot(interval_s=interval_s, tasks={"work": work}, constraints=[seen])


class NoConstraints(View):
    def constraints(self) -> tuple[Constraint, ...]:
        return ()


def watched(view: View, *times_s: float) -> ConstraintWatch:
    now_s = [0.0]
    watch = ConstraintWatch(view, lambda: now_s[0])
    for time_s in times_s:
        now_s[0] = time_s
        watch.look()
    return watch


def test_nothing_is_known_before_a_window_is_over() -> None:
    view = View()
    (state,) = watched(view, 0.1, 1.9).states()
    assert view.lengths_s == []
    assert (state.name, state.sequence, state.bound_ms, state.window_s) == ("fast", ("work",), 20.0, 2.0)
    assert (state.mean_ms, state.p95_ms, state.p99_ms, state.held, state.share_held) == (None,) * 5
    assert state.intervals == 0


def test_an_interval_is_as_long_as_the_window_and_the_next_begins_at_its_end() -> None:
    view = View(True, True)
    watched(view, 1.0, 2.1, 2.2, 4.0, 4.5)
    assert view.lengths_s == [2.1, 2.4]


def test_the_last_interval_and_the_share_of_all() -> None:
    (state,) = watched(View(True, True, None, False), 2.0, 4.0, 6.0, 8.0).states()
    assert (state.mean_ms, state.p95_ms, state.p99_ms, state.held) == (30.0, 40.0, 50.0, False)
    assert (state.share_held, state.intervals) == (2 / 3, 3), "one interval showed nothing"


def test_percentiles_of_few_items_are_not_told() -> None:
    (state,) = watched(View(True, samples=99), 2.0).states()
    assert (state.mean_ms, state.p95_ms, state.p99_ms) == (10.0, None, None)


def test_a_new_bound_is_told_at_once() -> None:
    view = View(True)
    watch = watched(view, 2.0)
    view.bound_ms = 5.0
    assert watch.states()[0].bound_ms == 5.0


def test_a_flow_without_constraints_is_not_looked_at() -> None:
    view = NoConstraints()
    assert watched(view, 10.0).states() == []
    assert view.lengths_s == []
