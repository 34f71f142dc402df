"""Whose CPU counts as that of neighbours."""

import os
import subprocess
import sys

from penstock.bench.neighbours import Look, Neighbour, look, neighbours_cpu_s, stolen_s

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
TURN = 7


def moment(*processes: tuple[int, int, int, float], stolen_s: float = 0.0) -> Look:
    """Of (pid, parent, session, seconds)."""
    return Look(
        {pid: Neighbour(parent, session, round(s * TICKS_PER_S)) for pid, parent, session, s in processes},
        round(stolen_s * TICKS_PER_S),
    )


def test_neighbours_count_and_the_session_itself_does_not() -> None:
    before = moment((2, 1, 2, 100))
    after = moment((2, 1, 2, 101), (3, 1, 3, 2), (7, 1, TURN, 50), (8, 1, TURN, 50))
    assert neighbours_cpu_s(before, after, TURN) == 3.0


def test_short_lived_children_count_in_their_parent() -> None:
    assert neighbours_cpu_s(moment((2, 1, 2, 1)), moment((2, 1, 2, 5)), TURN) == 4.0


def test_what_a_process_that_ended_had_used_before_does_not_count() -> None:
    before = moment((2, 1, 2, 10), (3, 2, 2, 100), (4, 3, 2, 1000))
    after = moment((2, 1, 2, 10 + 101 + 1002))
    assert neighbours_cpu_s(before, after, TURN) == 3.0


def test_a_process_that_nobody_waited_for_hides_no_other() -> None:
    before = moment((2, 1, 2, 10), (3, 2, 2, 100), (4, 1, 4, 100), (5, 1, 5, 0))
    after = moment((2, 1, 2, 10), (5, 1, 5, 2))
    assert neighbours_cpu_s(before, after, TURN) == 2.0


def test_stolen_time() -> None:
    assert stolen_s(moment(stolen_s=1), moment(stolen_s=3)) == 2.0


def test_a_look_knows_children_but_not_this_process_and_its_ancestors() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        seen = look().processes
    assert (seen[child.pid].parent, seen[child.pid].session) == (os.getpid(), child.pid)
    assert os.getpid() not in seen
    assert os.getppid() not in seen
