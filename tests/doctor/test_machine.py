"""What the machine must have: each check on enough, on little, and on too little."""

from collections.abc import Callable

import pytest

from penstock.doctor import machine
from penstock.doctor.finding import Finding


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (machine.check_cores, {2: "ok", 1: "doubtful"}),
        (
            machine.check_memory,
            {8_000_000_000: "ok", 2_000_000_000: "doubtful", 1_000_000_000: "wrong", None: "doubtful"},
        ),
        (machine.check_open_files, {4096: "ok", 1024: "doubtful", 256: "wrong"}),
        (lambda last: machine.check_ports(32768, last), {60999: "ok", 32868: "doubtful"}),
        (
            lambda free: machine.check_disk("/tmp", free),
            {10_000_000_000: "ok", 1_000_000_000: "doubtful", 1_000_000: "wrong"},
        ),
        (machine.check_loopback, {None: "ok", "Network is unreachable": "wrong"}),
        (lambda problem: machine.check_temporary("/tmp", problem), {None: "ok", "Read-only": "wrong"}),
        (lambda problem: machine.check_commands("/run", problem), {None: "ok", "not yours": "doubtful"}),
    ],
)
def test_states_and_remedies(check: Callable[[object], Finding], values: dict[object, str]) -> None:
    for value, state in values.items():
        found = check(value)
        assert found.state == state, value
        assert (found.remedy is None) == (state == "ok")


def test_sizes_are_told_as_people_read_them() -> None:
    assert machine.check_memory(22_816_800_000).found == "22.8 GB free"
    assert machine.check_disk("/tmp", 78_900_000_000).found == "78.9 GB free in /tmp"


def test_a_temporary_directory_must_leave_room_for_the_names_of_sockets() -> None:
    longest = "/" + "x" * (machine.LONGEST_TEMPORARY - 1)
    assert machine.check_temporary(longest, None).state == "ok"
    assert machine.check_temporary(longest + "x", None).remedy == "set TMPDIR to a shorter one"
    assert len(f"{longest}/penstock-{2**63 - 1}/workers.sock") == 107
