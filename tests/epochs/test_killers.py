"""Which items workers died at, from one attempt to the next."""

from pathlib import Path

from penstock.epochs.killers import Caution, Page, caution, digest_of, remove_pages
from penstock.testing.storage import MemoryStorage
from penstock.wire.reports import Restart

TASKS = ["items", "parse", "count"]


def death(executor: Path) -> Restart:
    """Of the worker of `parse`, with what its executor reads on its page."""
    return Restart("parse", 0, "killed", (executor / "at-00000-parse").read_bytes().hex())


def test_an_item_is_condemned_when_workers_died_at_it_twice(tmp_path: Path) -> None:
    storage = MemoryStorage()
    assert caution(storage, 5, [], TASKS, again=False) is None
    blind = Restart("parse", 0, "killed")
    assert caution(storage, 5, [blind], TASKS, again=True) == Caution(5), "the first death is blind"
    digest = digest_of(("ada", 1))
    assert digest is not None
    for deaths in (1, 2):
        dying = Page(tmp_path, "parse", 0)
        dying.show(2, digest)  # of a task that is chained behind
        found = caution(storage, 5, [death(tmp_path)], TASKS, again=True)
        assert found == Caution(5, {"count": (digest.hex(),) if deaths == 2 else ()})
    assert caution(storage, 5, [], TASKS, again=False) == found, "so does a driver that is started anew"
    assert len(storage.files) == 1
    assert caution(storage, 6, [], TASKS, again=True) == Caution(6), "a commit later it is over"
    assert caution(storage, 6, [], TASKS, again=False) is None
    assert not storage.files
    remove_pages(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_item_that_is_done_is_not_blamed(tmp_path: Path) -> None:
    page = Page(tmp_path, "parse", 0)
    outer = page.show(1, digest_of("outer") or b"")
    inner = page.show(2, digest_of("inner") or b"")
    page.show_again(inner)
    page.show_again(outer)
    assert caution(MemoryStorage(), 1, [death(tmp_path)], TASKS, again=True) == Caution(1)
    assert digest_of(lambda: 0) is None, "what cannot be pickled cannot be told"
