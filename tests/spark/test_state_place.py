"""Where state is committed, and what is refused in words."""

import pytest

import penstock as ps
from penstock.epochs.killers import Caution
from penstock.epochs.log import DIRECTORY
from penstock.epochs.output import Sinks
from penstock.spark.checkpoint import Committed
from penstock.spark.state_place import NoRoom, Room, begin_marked, cautious, room_for_marks, state_place
from penstock.testing.storage import MemoryStorage
from penstock.wire.reports import Restart
from tests.epochs.test_boundary import graph_of

ADDRESS = "hdfs://name-node/primes"


def remote() -> Room:
    return Room(f"{ADDRESS}/epochs", MemoryStorage(), is_remote=True)


def test_without_room_nothing_is_committed_and_marks_are_refused() -> None:
    nowhere = NoRoom("files of s3a: cannot be renamed in one step")
    assert state_place(nowhere, "s3a://bucket/primes", graph_of(), -1, 3, ()) is None
    with pytest.raises(ps.FlowError, match="commits cannot be marks in s3a://bucket/primes: files of s3a:"):
        room_for_marks(nowhere, "s3a://bucket/primes")


def test_workers_are_told_that_only_their_executor_reaches_it() -> None:
    room = remote()
    place = state_place(room, ADDRESS, graph_of(), -1, 3, ())
    assert place is not None
    assert (place.root, place.is_remote) == (room.root, True)
    assert room.storage.names(DIRECTORY)
    died = [Restart("counts", 0, "killed")]
    assert cautious(room, place, graph_of(), -1, died).caution == Caution(0)
    log, place = begin_marked(room, ADDRESS, graph_of(), Committed(), 3, (), Sinks())
    assert place.is_remote
    assert log.entry.attempt == place.attempt == 2


def test_a_file_system_that_fails_is_told_in_words() -> None:
    class Broken(MemoryStorage):
        def names(self, directory: str) -> list[str]:
            raise OSError("the name node is away")

    with pytest.raises(ps.FlowError, match=f"in the checkpoint {ADDRESS} cannot be reached: the name node"):
        state_place(Room(ADDRESS, Broken(), is_remote=True), ADDRESS, graph_of(), -1, 3, ())
