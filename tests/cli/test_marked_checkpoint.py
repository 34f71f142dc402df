"""`penstock checkpoint` where commits are epoch marks, and starts from older ones."""

import shutil
from pathlib import Path

import msgspec
import pytest

from penstock.epochs.commits import find_commit, storage_of
from penstock.epochs.copying import ASIDE, copy_checkpoint, go_back
from penstock.epochs.entries import Handle
from penstock.epochs.errors import LogError
from penstock.epochs.log import newest_entry
from penstock.epochs.storage import LocalStorage
from tests.cli.test_checkpoint import asked, listed, seen
from tests.epochs.test_marks import Flow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def flow(place: Path) -> Flow:
    """Epochs 1, 2 and 3 in two attempts; one that was void in between."""
    flow = Flow(place / "epochs")
    flow.keep = 10
    for number in range(4):
        if number == 2:
            flow.start(2)
        for item in range(number + 1, 9):
            flow.take(item)
        flow.mark(valid=number != 1)
    return flow


def on(checkpoint: Path, flow: Flow) -> Flow:
    """The same flow on another checkpoint, as far as that has it."""
    other = Flow.__new__(Flow)
    other.root, other.keep, other.items = checkpoint / "epochs", 10, flow.items
    other.committed = {*range(len(flow.items) + 1)}
    other.storage = LocalStorage(other.root)
    return other


def test_commits_are_listed_checked_copied_and_pruned(flow: Flow, place: Path, tmp_path: Path) -> None:
    assert listed(place) == [0, 1, 2, 3]
    assert "commits, by the number of their epoch" in asked("list", place)
    assert asked("check", place) == "commits that are whole: 0, 1, 2, 3"
    assert asked("copy", place, tmp_path / "copy").endswith("has the commits 0, 1, 2, 3")
    assert seen(tmp_path / "copy") == seen(place)
    assert asked("copy", place, tmp_path / "older", "--commit", 2).endswith("has the commits 0, 1, 2")
    assert seen(tmp_path / "older") != seen(place)
    assert "commits that are left: 2, 3;" in asked("prune", place, "--keep", 2)
    assert asked("check", place) == "commits that are whole: 2, 3"
    assert "has no commit 1 to start from: it is not there; there are 2, 3" in asked(
        "copy", place, tmp_path / "none", "--commit", 1, code=2
    )
    for checkpoint in (place, tmp_path / "copy", tmp_path / "older"):
        on(checkpoint, flow).start(3)  # checks what it finds


def test_what_is_wrong_is_told(flow: Flow, place: Path) -> None:
    newest = max((place / "epochs" / "state").iterdir())
    content = newest.read_bytes()
    newest.write_bytes(content[:-1] + b"?")
    words = asked("check", place, code=1)
    assert f"{newest.name} is damaged" in words
    assert words.endswith("commits that are whole: 0, 1, 2")
    newest.unlink()
    assert f"the newest commit, 3, cannot be used: state/{newest.name} is missing" in asked(
        "list", place, code=2
    )
    assert "so nothing is removed" in asked("prune", place, code=2)
    newest.write_bytes(content)
    (place / "epochs" / "log" / "notes").touch()
    assert "log/notes does not belong into a log; remove it" in asked("check", place, code=2)


def test_a_flow_goes_back_and_what_came_later_is_a_checkpoint_of_its_own(flow: Flow, place: Path) -> None:
    last, later = [*flow.items], seen(place)
    older = find_commit(place, 2).state
    assert older is not None
    with pytest.raises(
        LogError, match="has no commit 7 to start from: it is not there; there are 0, 1, 2, 3"
    ):
        go_back(place, 7)
    assert go_back(place, 3) is None, "it is the last"
    aside = go_back(place, 2)
    assert aside == place / ASIDE / "epochs-3-to-3"
    assert listed(place) == [0, 1, 2]
    flow.committed = {older.entry.positions["items"]["all"].ordinal}
    flow.start(1)  # checks what it finds
    flow.take(5)
    flow.mark(valid=True)
    assert listed(place)[-2:] == [3, 4], "numbers go on: epoch 3 is where it began again"
    flow.start(2)
    assert seen(aside) == later
    flow.items = last
    on(aside, flow).start(2)
    assert flow.place.checkpoint != newest_entry(storage_of(aside)).settings["name"]  # type: ignore[union-attr]


def test_prepared_output_is_committed_by_the_checkpoint_that_has_it(flow: Flow, place: Path) -> None:
    """Not by copies, nor by what was put aside; also if it is of a commit that is gone back from."""
    handle = Handle(task="out", replica=0, attempt=2, epoch=4, content="prepared")
    flow.log.append(msgspec.structs.replace(flow.log.entry, epoch=4, handles=(handle,)))
    entry = flow.log.entry
    assert copy_checkpoint(place, place.with_name("copy")) == [0, 1, 2, 3, 4]
    aside = go_back(place, 1)
    assert aside is not None
    for another in (aside, place.with_name("copy")):
        found = newest_entry(storage_of(another))
        assert found is not None
        assert (found.epoch, found.positions, found.handles) == (4, entry.positions, ())
        assert found.settings["name"] != entry.settings["name"]
    found = newest_entry(storage_of(place))
    assert found is not None
    assert (found.epoch, found.handles, found.settings["name"]) == (4, (handle,), entry.settings["name"])
    assert found.attempt > entry.attempt
    assert found.positions["items"]["all"].ordinal == 8
    shutil.rmtree(aside)
    assert asked("check", place).startswith("commits that are whole: 0, 1")
