"""Which items workers died at, from one attempt to the next."""

from pathlib import Path

from penstock.epochs.killers import Caution, Page, caution, digest_of

TASKS = ["items", "parse", "count"]


def test_an_item_is_condemned_when_workers_died_at_it_twice(tmp_path: Path) -> None:
    assert caution(tmp_path, 5, [], TASKS, again=False) is None
    assert caution(tmp_path, 5, [("parse", 0)], TASKS, again=True) == Caution(5), "the first death is blind"
    digest = digest_of(("ada", 1))
    assert digest is not None
    for deaths in (1, 2):
        dying, killed = Page(tmp_path, "parse", 0), Page(tmp_path, "count", 1)
        dying.show(2, digest)  # of a task that is chained behind
        killed.show(2, digest_of("innocent") or b"")  # ended with the others, at whatever it was at
        found = caution(tmp_path, 5, [("parse", 0)], TASKS, again=True)
        assert found == Caution(5, {"count": (digest.hex(),) if deaths == 2 else ()})
    assert caution(tmp_path, 5, [], TASKS, again=False) == found, "so does a driver that is started anew"
    assert caution(tmp_path, 6, [], TASKS, again=True) == Caution(6), "a commit later it is over"


def test_an_item_that_is_done_is_not_blamed(tmp_path: Path) -> None:
    page = Page(tmp_path, "parse", 0)
    outer = page.show(1, digest_of("outer") or b"")
    inner = page.show(2, digest_of("inner") or b"")
    page.show_again(inner)
    page.show_again(outer)
    assert caution(tmp_path, 1, [("parse", 0)], TASKS, again=True) == Caution(1)
    assert digest_of(lambda: 0) is None, "what cannot be pickled cannot be told"
