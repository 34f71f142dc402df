"""Which epochs become entries, by what was reported of them."""

from penstock.epochs.entries import Entry, Handle, StateFile
from penstock.epochs.reports import VOIDS_BEFORE_QUIET, Done, Epochs, Marked
from penstock.wire.orders import Position

NEWEST = Entry(kind="commit", attempt=3, epoch=6, positions={"numbers": {"all": Position(10, 10)}})


def changes(epoch: int, replica: int = 0) -> StateFile:
    return StateFile(
        task="counts",
        replica=replica,
        attempt=3,
        epoch=epoch,
        kind="changes",
        groups=((0, 4095),),
        size=1,
        checksum="",
    )


def read(epoch: int, items: int, *, last: bool = False) -> Done:
    """Of the only replica of the source."""
    return Done(
        "numbers", 0, 1, epoch, last=last, said=Marked(positions={"all": Position(items, items, done=last)})
    )


def counted(epoch: int, replica: int, *, valid: bool = True, last: bool = False) -> Done:
    said = Marked(files=(changes(epoch, replica),), replicas=2)
    return Done("counts", replica, 2, epoch, valid, last, said)


def epochs_of(*reports: Done) -> Epochs:
    epochs = Epochs(["numbers", "counts"], NEWEST)
    for report in reports:
        epochs.hear(report)
    return epochs


def test_an_epoch_is_over_when_every_replica_of_every_pool_has_reported() -> None:
    epochs = epochs_of(read(7, 20), counted(7, 0))
    assert epochs.verdict(7) is None
    assert (epochs.missing(7), epochs.missing(8)) == (1, 3)
    epochs.hear(counted(7, 1))
    epochs.hear(counted(7, 1))
    assert epochs.verdict(7) is True
    entry = epochs.entry(7)
    assert (entry.kind, entry.attempt, entry.epoch) == ("commit", 3, 7)
    assert entry.positions == {"numbers": {"all": Position(20, 20)}}
    assert [file.replica for file in entry.files] == [0, 1]
    assert entry.pools == {"counts": 2}


def test_no_report_of_a_task_is_not_enough() -> None:
    epochs = epochs_of(counted(7, 0), counted(7, 1))
    assert epochs.verdict(7) is None
    assert epochs.missing(7) == 1, "nobody knows how many"


def test_files_of_a_void_epoch_are_in_the_next_entry() -> None:
    epochs = epochs_of(read(7, 20), counted(7, 0), counted(7, 1, valid=False))
    assert epochs.verdict(7) is False
    epochs.void()
    for report in (read(8, 30), counted(8, 0), counted(8, 1)):
        epochs.hear(report)
    entry = epochs.entry(8)
    assert {(file.epoch, file.replica) for file in entry.files} == {(7, 0), (7, 1), (8, 0), (8, 1)}
    assert entry.positions["numbers"]["all"].ordinal == 30


def prepared(epoch: int, replica: int) -> Handle:
    return Handle(task="counts", replica=replica, attempt=3, epoch=epoch, content=f"{epoch}-{replica}")


def test_what_is_prepared_is_in_every_entry_until_it_is_committed() -> None:
    epochs = epochs_of(read(7, 20, last=True))
    for epoch in (7, 8, 9):
        for replica in (0, 1):
            said = Marked(handles=(prepared(epoch, replica),))
            epochs.hear(Done("counts", replica, 2, epoch, said=said))
    epochs.void()
    entry = epochs.entry(8)
    assert {handle.content for handle in entry.handles} == {"7-0", "7-1", "8-0", "8-1"}
    epochs.committed(entry, batch_is_over=False)
    assert len(epochs.entry(9).handles) == 6, "nobody has said that they are committed"
    epochs.answered()
    assert {handle.content for handle in epochs.entry(9).handles} == {"9-0", "9-1"}


def test_after_three_voids_sources_wait() -> None:
    epochs = epochs_of(read(7, 20), counted(7, 0), counted(7, 1))
    for _ in range(VOIDS_BEFORE_QUIET):
        assert not epochs.wants_quiet
        epochs.void()
    assert epochs.wants_quiet
    epochs.committed(epochs.entry(7), batch_is_over=False)
    assert not epochs.wants_quiet


def test_a_source_that_has_run_dry_speaks_for_all_later_epochs_of_its_batch() -> None:
    epochs = epochs_of(read(7, 20, last=True), counted(7, 0), counted(7, 1))
    epochs.committed(epochs.entry(7), batch_is_over=False)
    for replica in (0, 1):
        epochs.hear(counted(8, replica))
    assert epochs.verdict(8) is True
    entry = epochs.entry(8)
    assert entry.positions["numbers"]["all"] == Position(20, 20, done=True)
    assert [file.epoch for file in entry.files] == [7, 7, 8, 8]
    epochs.committed(entry, batch_is_over=True)
    for replica in (0, 1):
        epochs.hear(counted(9, replica))
    assert epochs.verdict(9) is None, "in the next batch it says so again"


def test_a_last_report_does_not_speak_for_what_was_before_it() -> None:
    epochs = epochs_of(read(7, 20), counted(7, 0), counted(8, 1, last=True))
    assert epochs.verdict(7) is None
    epochs.hear(read(8, 25, last=True))
    epochs.hear(counted(8, 0, last=True))
    assert epochs.verdict(8) is True
    assert epochs.verdict(11) is True
