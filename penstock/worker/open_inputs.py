"""Which inputs are done with when items are answered later than they are taken."""

from penstock.worker.outbox import Outbox


class OpenInputs:
    """Inputs in their order, each with what is open of it: calls, and the input itself while it is taken in.

    An input is finished when nothing of it and of those before it is open.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: dict[int, int] = {}

    def add(self, sequence: int) -> None:
        """Something more of an input is open; an input is first heard of after all those before it."""
        self._open[sequence] = self._open.get(sequence, 0) + 1

    def remove(self, sequence: int) -> None:
        """It is no more: what it sent is in the outbox."""
        self._open[sequence] -= 1
        while self._open:
            first = next(iter(self._open))
            if self._open[first]:
                return
            del self._open[first]
            self._outbox.finish_input(first)
