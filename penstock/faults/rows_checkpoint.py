"""Disks that are full or read-only, under a checkpoint or a sink; torn files; flows that have changed."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import penstock
from penstock.faults.bed import SELDOM, SINK, SOURCE, TASK, Bed, committed
from penstock.faults.items import Pass, numbers
from penstock.faults.row import Outcome, Row
from penstock.faults.sinks import Drop
from penstock.spark.job import Job

RAM_DISK: Final = "1m"


@contextmanager
def ram_disk(place: Path) -> Iterator[Path]:
    """A disk of one MiB."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={RAM_DISK}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def lacks_mounts() -> str:
    """Why no disk can be made."""
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if tried.returncode == 0 else f"no disk can be mounted: {tried.stderr.strip()}"


def _stopped(bed: Bed) -> None:
    """A run that ends well, with a commit."""
    bed.flowing(bed.flow(None)).stop()


def torn(bed: Bed) -> Outcome:
    """Half of the newest commit, or nothing in it: refused by its name; whole again, the flow goes on."""
    _stopped(bed)
    last = max((bed.checkpoint / "epochs" / "log").glob("[0-9]*"))
    whole = last.read_bytes()
    for content in (whole[: len(whole) // 2], b""):
        last.write_bytes(content)
        words = (f"the commits in the checkpoint {bed.checkpoint} cannot be used", last.name)
        bed.refused(partial(bed.run, bed.flow(None)), *words)
    last.write_bytes(whole)
    _stopped(bed)
    return bed.outcome(counts=committed(bed.checkpoint))


def read_only(bed: Bed) -> Outcome:
    """Refused at the start, with the place; writable again, the flow goes on."""
    with ram_disk(bed.directory / "disk") as disk:
        bed.checkpoint = place = disk / "checkpoint"
        _stopped(bed)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        bed.refused(partial(bed.run, bed.flow(None)), f"the checkpoint {place} cannot be")
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        _stopped(bed)
        return bed.outcome(counts=committed(place))


def passing(bed: Bed) -> penstock.Flow:
    """What keeps nothing."""
    return bed.flow(None)


def arrived(bed: Bed, counts: dict[int, int]) -> Outcome:
    """Of items alone."""
    return bed.outcome(counts=counts)


def full(
    bed: Bed,
    flow: Callable[[Bed], penstock.Flow] = passing,
    judged: Callable[[Bed, dict[int, int]], Outcome] = arrived,
    words: str = "nothing can be committed in {place}",
) -> Outcome:
    """A commit that finds no room is told and never half made; with room again, the flow goes on there."""
    with ram_disk(bed.directory / "disk") as disk:
        bed.checkpoint = place = disk / "checkpoint"
        job = bed.run(flow(bed), restarts=0, commit=SELDOM)
        bed.await_taken(job)  # an exact sink shows nothing before a commit
        job.boundary()
        before = committed(place)
        filler = disk / "filler"
        _fill(filler)
        told = (words.format(place=place), "No space left on device")
        bed.refused(partial(_commit, job), *told, error=penstock.JobFailed)
        bed.expect("commits on a full disk", committed(place) != before, "==", 0)
        filler.unlink()
        bed.strike(lambda: None, 0.0, 0.0)
        bed.flowing(flow(bed)).stop()
        return judged(bed, committed(place))


def full_under_sink(bed: Bed) -> Outcome:
    """A sink that finds no room ends the flow, with its name; with room again no item is missing or torn."""
    with ram_disk(bed.directory / "kept") as disk:
        job = bed.run(bed.flow(None, sink=bed.once()), commit=SELDOM)
        bed.await_taken(job)
        job.boundary()
        before = committed(bed.checkpoint)
        filler = disk / "filler"
        _fill(filler)
        bed.refused(
            partial(_commit, job), f'task "{SINK}"', "No space left on device", error=penstock.JobFailed
        )
        bed.expect("commits without room", committed(bed.checkpoint) != before, "==", 0)
        filler.unlink()
        bed.strike(lambda: None, 0.0, 0.0)
        bed.flowing(bed.flow(None, sink=bed.once())).stop()
        return bed.outcome(counts=committed(bed.checkpoint))


def held(bed: Bed) -> Outcome:
    """Another flow on the checkpoint of one that runs is refused, with who holds it."""
    job = bed.flowing(bed.flow(2.5))
    words = (f"{bed.checkpoint} is held by", f"process {os.getpid()}")
    bed.refused(partial(bed.run, bed.flow(2.5)), *words)
    bed.end(job)
    return bed.outcome()


def _fill(filler: Path) -> None:
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        return


def _commit(job: Job) -> None:
    with suppress(penstock.FlowError):
        job.boundary()
    job.await_termination(60)


def reordered(bed: Bed) -> Outcome:
    """Sources in another order, tasks renamed and another one added: carried on by the names of sources."""
    for order in ((SOURCE, "others"), ("others", SOURCE), ("new", "others", SOURCE)):
        flow = penstock.Flow("trial", ids=False)
        for name in order:
            source = numbers(300.0, None, bed.directory / f"zero-{name}", name=name)
            tasks = flow.source(source, name=name).task(Pass, name=f"{TASK}_{order[0]}_{name}")
            tasks.sink(bed.witness() if name == SOURCE else Drop(), name=f"to_{name}")
        job = bed.run(flow)
        bed.await_items(sum(committed(bed.checkpoint).values()) + 300, job)
        job.stop()
    return bed.outcome(counts=committed(bed.checkpoint))


def source_removed(bed: Bed) -> Outcome:
    """A source that is renamed or gone, and splits that are: refused by name before anything is read."""
    _stopped(bed)
    flow = penstock.Flow("trial")
    renamed = numbers(600.0, None, bed.directory / "zero", name="renamed")
    flow.source(renamed, name="renamed").sink(bed.witness(), name=SINK)
    bed.refused(partial(bed.run, flow), f'knows the source "{SOURCE}"', 'it has "renamed"')
    other = penstock.Flow("trial")
    split = numbers(600.0, None, bed.directory / "zero", partitions=3)
    other.source(split, name=SOURCE).sink(bed.witness(), name=SINK)
    bed.refused(partial(bed.run, other), 'knows split "0/2"', "0/3, 1/3, 2/3")
    _stopped(bed)
    return bed.outcome(counts=committed(bed.checkpoint))


ROWS = (
    Row("torn-checkpoint", "the newest commit in the checkpoint is cut off, or empty", "local", torn),
    Row(
        "read-only-checkpoint",
        "the disk of the checkpoint is read-only",
        "local",
        read_only,
        lacks=lacks_mounts,
    ),
    Row("disk-full", "the disk of the checkpoint is full at a commit", "local", full, lacks=lacks_mounts),
    Row("sink-disk-full", "the disk of a sink is full", "local", full_under_sink, lacks=lacks_mounts),
    Row("checkpoint-in-use", "a second flow on the checkpoint of one that runs", "local", held),
    Row("sources-reordered", "sources in another order, tasks renamed, a source added", "local", reordered),
    Row("source-removed", "a source renamed or removed, other splits", "local", source_removed),
)
