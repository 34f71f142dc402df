"""A copy of a checkpoint: complete or not at all, also while a flow commits there.

It is made beside its name, synced, and renamed. What a flow removes meanwhile belongs to commits that are no
longer kept: then the copy begins anew.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from penstock.epochs.batches import COMMITS, OFFSETS, files_of, remove_later
from penstock.epochs.boundary import IN_CHECKPOINT
from penstock.epochs.commits import Commit, commits_of, find_commit, storage_of, usable_commits
from penstock.epochs.errors import LogError
from penstock.epochs.log import indices, name_of
from penstock.epochs.marks import become_another, go_back_to, marked_entry

ASIDE: Final = "aside"
_TRIES: Final = 5


def copy_checkpoint(checkpoint: Path, target: Path, *, commit: int | None = None) -> list[int]:
    """Copy all commits from which a flow can start, or one and those before it; which they are.

    The newest must be whole, or the one that is named.
    """
    if target.exists():
        raise LogError(f"{target} is there already; give a directory that is not")
    for tried in range(1, _TRIES + 1):
        newest = find_commit(checkpoint, commits_of(checkpoint)[-1].number if commit is None else commit)
        chosen = [found for found in usable_commits(checkpoint) if found.number <= newest.number]
        try:
            _copy(checkpoint, target, _files(checkpoint, chosen), linked=False)
        except FileNotFoundError as problem:
            if tried == _TRIES:
                raise LogError(f"{problem.filename} is missing; was it removed meanwhile?") from None
            continue
        return [found.number for found in chosen]
    raise AssertionError("the last try returns or raises")


def go_back(checkpoint: Path, number: int) -> Path | None:
    """Make a commit the last one; where the later ones are now, a checkpoint of its own. None: it was last.

    Nobody else may use the checkpoint meanwhile. Should this end half way, the commits that are still there
    are whole, and what was put aside is complete or not there.
    """
    aside = put_aside(checkpoint, number)
    if aside is None:
        return None
    index = index_of(checkpoint, number)
    if index is None:
        remove_later(checkpoint, number)
    else:
        go_back_to(storage_of(checkpoint), index)
    return aside


def put_aside(checkpoint: Path, number: int) -> Path | None:
    """Make a checkpoint of its own of all commits, if there are later ones than this: where it is."""
    chosen = find_commit(checkpoint, number)
    known = commits_of(checkpoint)
    later = [commit.number for commit in known if commit.number > number]
    if not later:
        return None
    kind = "epochs" if chosen.is_marked else "batches"
    aside = free_name(checkpoint / ASIDE / f"{kind}-{later[0]}-to-{later[-1]}", Path.exists)
    _copy(checkpoint, aside, _files(checkpoint, known), linked=True)
    return aside


def index_of(checkpoint: Path, number: int) -> int | None:
    """Of the entry of the log that a commit by an epoch mark is; None for one at a boundary."""
    chosen = find_commit(checkpoint, number)
    if not chosen.is_marked:
        return None
    assert chosen.state is not None, "it is made of an entry"
    return chosen.state.origin


def _files(checkpoint: Path, commits: Iterable[Commit]) -> Iterator[str]:
    """Names of all files of a checkpoint that these commits need, Spark's last."""
    chosen, storage = [*commits], storage_of(checkpoint)
    if chosen[-1].is_marked:
        needed = dict.fromkeys(name for commit in chosen for name in commit.needs)
        yield from (f"{IN_CHECKPOINT}/{name}" for name in needed)
        return
    yield from (name for name in ("metadata", ".metadata.crc") if (checkpoint / name).exists())
    names = [name for commit in chosen for name in commit.needs]
    # All entries: attempts are numbered by the newest, and those before say whose the parts are.
    names += [name_of(index) for index in indices(storage)]
    yield from dict.fromkeys(f"{IN_CHECKPOINT}/{name}" for name in names)
    batches = {commit.number for commit in chosen}
    for directory, wanted in (
        (OFFSETS, batches | {batch - 1 for batch in batches}),
        (COMMITS, batches),
    ):
        for batch in sorted(wanted):
            yield from (f"{directory}/{file.name}" for file in files_of(checkpoint / directory, batch))


def _copy(checkpoint: Path, target: Path, names: Iterable[str], *, linked: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for kind in (OFFSETS, COMMITS):
            (made / kind).mkdir()
        for name in names:
            file = made / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if linked:
                file.hardlink_to(checkpoint / name)
            else:
                shutil.copy2(checkpoint / name, file)
                _sync(file)
        if marked_entry(storage_of(made)) is not None:
            become_another(storage_of(made))
        for directory in (made, *(path for path in made.rglob("*") if path.is_dir())):
            _sync(directory)
        made.rename(target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def free_name(wanted: Path, exists: Callable[[Path], bool]) -> Path:
    """That name, or with a number behind it if there is something of that name."""
    numbered = (wanted.with_name(f"{wanted.name}-{number}") for number in range(2, 10_000))
    return next(path for path in (wanted, *numbered) if not exists(path))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
