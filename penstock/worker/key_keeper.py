"""Which keys a replica has, of a task that declares no state, where commits are epoch marks."""

from penstock.epochs.boundary import Place
from penstock.epochs.storage import Storage
from penstock.wire.divisions import Division
from penstock.worker.bridged_files import storage_at
from penstock.worker.state_keeper import entry_of_attempt


class KeyKeeper:
    """Of one replica. There is nothing to hand over, and yet keys that come to it wait for the same commit.

    Only then is it known that the replica before has done all that came before the mark: a key is never in
    two places, and its items are taken in their order.
    """

    def __init__(
        self, place: Place, replica: int, division: Division, storage: Storage | None = None
    ) -> None:
        self._place = place
        self._replica = replica
        self._storage: Storage = storage or storage_at(place)
        self._since = 0
        self.division = division
        """Who has which keys."""
        self.awaited: frozenset[int] = frozenset()
        """Groups of keys that may still be at work elsewhere."""

    def restore(self, since: int) -> None:
        """A batch begins, or a process; the keys are this replica's from epoch `since` on."""
        if entry_of_attempt(self._storage, self._place).epoch < since:
            self._await(self._groups(self.division), since)

    def move(self, division: Division, epoch: int) -> None:
        """Behind the mark of this epoch keys are divided in this way."""
        before, self.division = self.division, division
        self._await(self._groups(division) - self._groups(before), epoch)

    def look(self) -> bool:
        """Whether nothing is awaited any more."""
        if entry_of_attempt(self._storage, self._place).epoch < self._since:
            return False
        self.awaited = frozenset()
        return True

    def _await(self, groups: frozenset[int], epoch: int) -> None:
        self.awaited, self._since = groups, epoch

    def _groups(self, division: Division) -> frozenset[int]:
        return frozenset(division.groups_of(self._replica))
