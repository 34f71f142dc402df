"""Where transactional sinks write: what is prepared is seen by nobody, what is committed by all."""

from penstock.epochs.entries import Handle
from tests.epochs.model.graph import Item


class Outside:
    """A system that knows handles; committing one again does nothing."""

    def __init__(self, *, idempotent: bool) -> None:
        self.prepared: dict[Handle, list[Item]] = {}
        self.published: dict[Handle, list[Item]] = {}
        self.lost: list[Handle] = []
        self._idempotent = idempotent

    def prepare(self, handle: Handle, items: list[Item]) -> None:
        self.prepared[handle] = list(items)

    def commit(self, handle: Handle) -> None:
        if handle in self.prepared:
            self.published[handle] = self.prepared.pop(handle)
        elif handle not in self.published:
            self.lost.append(handle)
        elif not self._idempotent:
            self.published[handle] += self.published[handle]

    def commit_up_to(self, task: str, replica: int, attempt: int, epoch: int) -> None:
        """All that one process has prepared up to an epoch, in its own attempt."""
        known = [*self.prepared] if self._idempotent else [*self.prepared, *self.published]
        for handle in known:
            if (handle.task, handle.replica, handle.attempt) == (
                task,
                replica,
                attempt,
            ) and handle.epoch <= epoch:
                self.commit(handle)

    def abort(self, attempt: int) -> None:
        """Drop all that earlier attempts have prepared."""
        self.prepared = {
            handle: items for handle, items in self.prepared.items() if handle.attempt >= attempt
        }
