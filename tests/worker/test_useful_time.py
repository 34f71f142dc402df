"""Useful time of two threads: any moment of work counts once, waiting never."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.worker.useful_time import ShipperTime, TaskTime

steps = st.lists(st.tuples(st.sampled_from(("task", "shipper")), st.integers(1, 1000)), max_size=40)


def test_the_clock_of_the_task_stands_still_between_envelopes_and_while_it_waits() -> None:
    clock = TaskTime()
    assert clock.go(100) == 0
    clock.waited(30)
    assert clock.at(150) == 20
    assert clock.halt(200) == 70
    assert not clock.runs
    clock.waited(1000)
    assert clock.at(900) == 70, "what is waited between envelopes is not taken off again"
    assert clock.go(900) == 70
    assert clock.halt(901) == 71


@given(steps)
def test_both_together_are_the_moments_in_which_either_works(changes: list[tuple[str, int]]) -> None:
    """Each step lets one thread begin or end its work, and then some time pass."""
    task = TaskTime()
    shipper = ShipperTime(task)
    now_ns, expected_ns, working = 1, 0, {"task": False, "shipper": False}
    for thread, passed_ns in changes:
        working[thread] = not working[thread]
        if thread == "task":
            (task.go if working[thread] else task.halt)(now_ns)
        elif working[thread]:
            shipper.go(now_ns)
        else:
            shipper.halt(now_ns)
        now_ns += passed_ns
        expected_ns += passed_ns * any(working.values())
    if working["shipper"]:
        shipper.halt(now_ns)
    assert task.at(now_ns) + shipper.total_ns == expected_ns


def test_a_wait_of_the_shipper_does_not_count() -> None:
    shipper = ShipperTime(TaskTime())
    shipper.go(10)
    shipper.halt(15)
    shipper.go(100)
    assert shipper.halt(103) == 8
