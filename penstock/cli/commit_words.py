"""Commits by epoch marks and the state in them, in words."""

from collections.abc import Iterator, Sequence

from penstock.operate.commands import HEAVY
from penstock.operate.protocol import CommitsNow
from penstock.stats.snapshot import Snapshot

_UNITS = ("B", "KiB", "MiB", "GiB")
_STEP = 1024


def commit_words(commits: CommitsNow | None) -> list[str]:
    """A line, if there are such commits."""
    if commits is None:
        return []
    so_far = [f"{commits.count:,} commits"]
    if commits.epoch is not None and commits.age_s is not None and commits.took_ms is not None:
        so_far.append(
            f"the last, epoch {commits.epoch:,}, {commits.age_s:.1f} s ago, in {commits.took_ms:.0f} ms"
        )
    if commits.voids:
        so_far.append(f"{commits.voids:,} epochs void")
    if commits.rollbacks:
        so_far.append(f"rolled back {commits.rollbacks:,} times")
    return [", ".join(so_far)]


def state_size(amount_bytes: float | None) -> str:
    """As people read it; nothing where it is not known.

    >>> state_size(900), state_size(26_500_000), state_size(None)
    ('900 B', '25.3 MiB', '')
    """
    if amount_bytes is None:
        return ""
    unit = 0
    while amount_bytes >= _STEP and unit + 1 < len(_UNITS):
        amount_bytes, unit = amount_bytes / _STEP, unit + 1
    return f"{amount_bytes:.1f} {_UNITS[unit]}" if unit else f"{amount_bytes:.0f} B"


def heavy_words(snapshot: Snapshot) -> Iterator[str]:
    """Of every task of which it is known, the groups of keys with the most items."""
    for name, task in snapshot.tasks.items():
        yield from group_words(name, task.heaviest_groups(HEAVY))


def group_words(task: str, heavy: Sequence[tuple[int, float]]) -> Iterator[str]:
    """A line, if there are such groups."""
    if heavy:
        groups = ", ".join(f"{group} ({share:.0%} of its items)" for group, share in heavy)
        yield f"{task}: heaviest groups of keys {groups}"
