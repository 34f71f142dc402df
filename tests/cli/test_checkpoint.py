"""`penstock checkpoint` on checkpoints that are whole, torn, missing files, or in use."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.epochs.batches import Positions
from penstock.epochs.copying import go_back
from penstock.epochs.looking import look
from penstock.epochs.storage import LocalStorage
from penstock.spark.hold_by_lock import LockHold
from penstock.spark.holder import new_holder
from tests.epochs.test_boundary import World

runner = CliRunner()


class Committing(World):
    """With what Spark would write."""

    def end_batch(self, *, is_committed: bool) -> None:
        super().end_batch(is_committed=is_committed)
        if is_committed:
            positions = msgspec.json.encode(Positions(2, {})).decode()
            for directory, text in (("offsets", f"v1\n{{}}\n{positions}"), ("commits", "v1\n{}")):
                (self.root.parent / directory).mkdir(exist_ok=True)
                (self.root.parent / directory / str(self.batch - 1)).write_text(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Six commits in two attempts; a seventh batch was written and never committed."""
    (tmp_path / "kept").mkdir()
    world = Committing(tmp_path / "kept" / "epochs")
    for batch in range(6):
        if batch == 4:
            world.start(2)
        for item in range(batch + 1, 10):
            world.take(item)
        world.end_batch(is_committed=True)
    world.take(3)
    world.end_batch(is_committed=False)
    return world


def asked(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, ["checkpoint", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def seen(checkpoint: Path) -> dict[int, int]:
    return {kept.key: kept.value for kept in look(checkpoint).kept["counts"] if kept.name == "seen"}  # type: ignore[misc]


def listed(checkpoint: Path) -> list[int]:
    result = runner.invoke(app, ["checkpoint", "list", str(checkpoint), "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line)["commit"] for line in result.stdout.splitlines()]


def test_commits_are_listed_checked_copied_and_pruned(world: World, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    assert listed(place)[-2:] == [4, 5]
    first = json.loads(
        runner.invoke(app, ["checkpoint", "list", str(place), "--json"]).stdout.splitlines()[-1]
    )
    assert first["tasks"] == {"counts": {"replicas": 2, "keys": 9}}
    assert first["bytes"] > 0
    assert "counts x 2" in asked("list", place)
    assert "commits that are whole: 1, 2, 3, 4, 5 files that no commit needs: 3" in asked("check", place)
    assert "has the commits 1, 2, 3, 4, 5" in asked("copy", place, tmp_path / "copy")
    assert seen(tmp_path / "copy") == seen(place)
    assert "is there already" in asked("copy", place, tmp_path / "copy", code=2)
    assert asked("copy", place, tmp_path / "older", "--commit", 3).endswith("has the commits 1, 2, 3")
    assert seen(tmp_path / "older") != seen(place)
    assert "commits that are left: 4, 5;" in asked("prune", place, "--keep", 2)
    assert asked("check", place) == "commits that are whole: 4, 5"
    assert asked("check", tmp_path / "copy") == "commits that are whole: 1, 2, 3, 4, 5"
    world.start(1)  # checks what it finds
    copied = Committing.__new__(Committing)
    copied.root, copied.batch, copied.committed = tmp_path / "copy" / "epochs", 6, world.committed
    copied.storage = LocalStorage(copied.root)
    copied.start(3)


@pytest.mark.parametrize("starts_again", [True, False])
def test_what_the_kept_commits_go_on_from_stays(tmp_path: Path, *, starts_again: bool) -> None:
    place = tmp_path / "kept"
    place.mkdir()
    world = Committing(place / "epochs")
    world.take(1)
    world.end_batch(is_committed=True)
    if starts_again:
        world.start(2)
    world.take(2)
    world.end_batch(is_committed=True)
    left = "0, 1" if starts_again else "1"
    assert f"commits that are left: {left};" in asked("prune", place, "--keep", 1)
    assert asked("check", place) == f"commits that are whole: {left}"
    world.start(1)  # checks what it finds


def test_what_is_wrong_is_told(world: World, tmp_path: Path) -> None:
    place = tmp_path / "kept"
    (place / "commits" / "notes.txt").touch()
    (place / "epochs" / "state" / "mine").touch()
    (place / "epochs" / "parts" / "mine").touch()
    part = place / "epochs" / "parts" / "000000000005-00000-counts"
    words = asked("check", place, code=1)
    assert "commits/notes.txt is none of Spark's files" in words
    assert "state/mine does not belong among files of state" in words
    assert "parts/mine" in words
    for file in ("commits/notes.txt", "epochs/state/mine", "epochs/parts/mine"):
        (place / file).unlink()
    newest = max((place / "epochs" / "state").glob("00000002-*-base-*"))
    content = newest.read_bytes()
    for damaged, expected in ((content[:-3], "is cut off"), (content[:-1] + b"?", "is damaged")):
        newest.write_bytes(damaged)
        words = asked("check", place, code=1)
        assert f"{newest.name} {expected}" in words
        assert "commits that are whole: 1, 2, 3 " in words
    older = min((place / "epochs" / "state").glob("00000001-*"))
    older_content = older.read_bytes()
    older.unlink()
    assert f"commit 1 cannot be used: state/{older.name} is missing" in asked("check", place, code=1)
    older.write_bytes(older_content)
    newest.unlink()
    assert f"{newest.name} is missing" in asked("check", place, code=1)
    assert "so nothing is removed" in asked("prune", place, code=2)
    assert "no commit 5 to start from" in asked("copy", place, tmp_path / "copy", code=2)
    assert not (tmp_path / "copy").exists()
    newest.write_bytes(content)
    part.write_bytes(part.read_bytes()[:-1])
    assert f"{part.name} is cut off" in asked("check", place, code=1)
    part.unlink()
    (place / "offsets" / "5").write_text("v1\n{}\n")
    assert "offsets/5 cannot be used: it is cut off" in asked("check", place, code=1)
    for arguments in (["list"], ["check"], ["copy", tmp_path / "new"], ["prune"]):
        command, *rest = arguments
        assert "has no commit" in asked(command, tmp_path, *rest, code=2)


def test_nothing_is_pruned_under_a_flow(world: World, tmp_path: Path) -> None:
    hold = LockHold(tmp_path / "kept", new_holder("counting", [os.getpid()]))
    try:
        assert 'is held by flow "counting"' in asked("prune", tmp_path / "kept", "--keep", 1, code=2)
    finally:
        hold.release()
    assert listed(tmp_path / "kept")[-2:] == [4, 5]


def test_later_commits_are_put_aside_complete(world: World, tmp_path: Path) -> None:
    place, last = tmp_path / "kept", seen(tmp_path / "kept")
    aside = go_back(place, 3)
    assert aside == place / "aside" / "batches-4-to-5"
    assert listed(place)[-1] == 3
    assert (listed(aside)[-1], seen(aside)) == (5, last)
    world.batch, world.committed = 4, (world.seen.__class__(seen(place)), 9 + 8 + 7 + 6)
    world.start(1)
    world.take(8)
    world.end_batch(is_committed=True)
    assert seen(aside) == last, "going on does not touch it"
    assert go_back(place, 4) is None
    assert go_back(place, 3) == place / "aside" / "batches-4-to-4"
    assert "put aside:" in asked("list", place)
    asked("prune", place, "--aside")
    assert not aside.exists()
    world.batch, world.committed = 4, (world.seen.__class__(seen(place)), 9 + 8 + 7 + 6)
    world.start(2)
