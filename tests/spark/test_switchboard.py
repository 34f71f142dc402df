"""How a change reaches the workers where keys change hands at an epoch mark, without any Spark."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

import penstock as ps
from penstock.spark import switchboard
from penstock.spark.changes import Change, rescaling
from penstock.spark.committing import Committing, Moving
from penstock.spark.slots import SlotBook
from penstock.spark.switchboard import Switchboard
from penstock.wire.orders import Switches
from tests.spark.test_changes import OfKeys, by_marks, keyed

PLACED = keyed(OfKeys)
NOW = by_marks(PLACED)
THEN = msgspec.structs.replace(NOW, active=NOW.active | {"work": 4, "more": 4})


class Driver:
    """A bridge that notes what is published, commits that do what the test says, and a board between them."""

    def __init__(self) -> None:
        self.published: list[Switches] = []
        self.exhausted = False
        self.ends: str | None = None
        self.on_move: Callable[[Moving], None] = lambda _: None
        self.moving: Moving | None = None
        self.hastened = 0
        self.board = Switchboard(
            PLACED,
            NOW,
            cast("Any", self),
            cast("Any", None),
            SlotBook().claim("run", "moved", 2, 100, ""),
            self._check_running,
            cast("Committing", self),
        )

    def publish(self, switches: Switches) -> None:
        self.published.append(msgspec.structs.replace(switches, version=0))

    def is_exhausted(self) -> bool:
        return self.exhausted

    def move(self, tell: Callable[[int], None]) -> Moving:
        self.moving = Moving(tell)
        self.on_move(self.moving)
        return self.moving

    def hasten(self) -> None:
        self.hastened += 1

    def _check_running(self) -> None:
        if self.ends is not None:
            raise ps.FlowError(self.ends)

    def turn(self) -> float | None:
        return self.board.turn(Change(NOW, at_mark=THEN))


def tell(moving: Moving) -> None:
    assert moving.tell(7)


def do(moving: Moving) -> None:
    tell(moving)
    moving.over.set()


def test_all_hear_of_it_before_and_after() -> None:
    driver = Driver()
    driver.on_move = do
    assert driver.turn() == 0.0, "without a gap"
    assert driver.published == [rescaling(NOW, THEN, 7), THEN]
    driver.board.settle()
    assert len(driver.published) == 2


@pytest.mark.parametrize("on_move", [tell, lambda _: None])
def test_a_flow_that_ends_meanwhile_has_the_replicas_from_before(on_move: Callable[[Moving], None]) -> None:
    driver = Driver()
    driver.on_move = on_move
    driver.ends = 'flow "moved" is restarting'
    with pytest.raises(ps.FlowError, match="is restarting"):
        driver.turn()
    assert msgspec.structs.replace(driver.board.switches, version=0) == NOW
    driver.board.begin_again()
    assert driver.board.switches.active == NOW.active


def test_a_change_that_has_to_wait_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "_LONGEST_S", 0.03)
    driver = Driver()
    with pytest.raises(ps.FlowError, match=r"under way did not end within 0.03 s; nothing was changed"):
        driver.turn()
    assert driver.published == []
    assert driver.moving is not None
    assert not driver.moving.tell(7), "nobody wants it any more"


def test_one_that_is_known_is_done_though_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "_LONGEST_S", 0.03)
    driver = Driver()
    driver.on_move = tell
    with pytest.raises(ps.FlowError, match=r"for more than 0.03 s; they have when the next commit is done"):
        driver.turn()
    with pytest.raises(ps.FlowError, match="still changing hands after the change before; nothing was ch"):
        driver.board.settle()
    assert driver.moving is not None
    driver.moving.over.set()
    driver.board.settle()
    assert driver.published == [rescaling(NOW, THEN, 7), THEN]


def test_another_run_begins_with_what_was_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "_LONGEST_S", 0.0)
    driver = Driver()
    driver.on_move = tell
    with pytest.raises(ps.FlowError):
        driver.turn()
    driver.board.begin_again()
    assert msgspec.structs.replace(driver.board.switches, version=0) == THEN


def test_a_flow_whose_sources_have_run_dry_is_left_as_it_is() -> None:
    driver = Driver()
    driver.exhausted = True
    assert driver.turn() == 0.0
    assert driver.published == []


def test_other_chains_hasten_a_mark_behind_which_some_of_them_are_made() -> None:
    driver = Driver()
    chained = msgspec.structs.replace(NOW, chains=[["work", "more"]])
    driver.board.turn(Change(chained))
    assert (driver.published, driver.hastened) == ([chained], 1)
    driver.board.turn(Change(msgspec.structs.replace(driver.board.switches, sampling=1.0)))
    assert driver.hastened == 1
