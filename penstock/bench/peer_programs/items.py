"""What every program here shares: questions, items that are due at even times, and the file they end in."""

import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

RECORD = struct.Struct("<qqqqq")
"""As the files of `penstock.testing.ledger`, which read it: partition, index, due, arrived and lag in ns."""
ANSWER = "answer: "
MOST_AT_ONCE = 100
PAYLOAD_BYTES = 32

Item = tuple[int, int, int, int, bytes]
"""As `penstock.testing.stamped` makes them: partition, index, due ns, lag ns, payload."""


class Asked(NamedTuple):
    """A turn: how many hops, how many items a second for how long, where what arrives is written.

    With `flat_out` more is offered than anybody takes, and the source ends with the time.
    """

    hops: int
    rate_per_s: float
    seconds: float
    directory: str
    flat_out: bool = False


def asked(line: str) -> Asked:
    """The turn that a line of JSON asks for."""
    return Asked(**json.loads(line))


def said(turn: Asked) -> str:
    """A line that asks for it."""
    return json.dumps(turn._asdict())


def turns() -> Iterator[Asked]:
    """One for each line of the standard input; it is answered when the next one is asked for."""
    for line in sys.stdin:
        yield asked(line)
        print(ANSWER + "done", flush=True)


class Paced:
    """Items at even times, from now on."""

    def __init__(self, turn: Asked) -> None:
        self._gap_ns = 1e9 / turn.rate_per_s
        self._count = round(turn.rate_per_s * turn.seconds)
        self._made = 0
        self._begin_ns = time.monotonic_ns()
        self._end_ns = self._begin_ns + round(turn.seconds * 1e9) if turn.flat_out else None

    @property
    def is_over(self) -> bool:
        """Whether all have been made, or there is no more time."""
        if self._end_ns is not None and time.monotonic_ns() >= self._end_ns:
            return True
        return self._made >= self._count

    @property
    def wait_ns(self) -> int:
        """How long until the next one is due; 0 or less if it is."""
        return self._due_ns - time.monotonic_ns()

    @property
    def _due_ns(self) -> int:
        return self._begin_ns + round(self._made * self._gap_ns)

    def due(self, most: int = MOST_AT_ONCE) -> list[Item]:
        """Those that are due, and not more than so many."""
        now_ns = time.monotonic_ns()
        found: list[Item] = []
        while len(found) < most and self._made < self._count and (due_ns := self._due_ns) <= now_ns:
            found.append((0, self._made, due_ns, now_ns - due_ns, self._made.to_bytes(PAYLOAD_BYTES, "big")))
            self._made += 1
        return found

    def one_by_one(self) -> Iterator[Item]:
        """For a thread that may sleep."""
        while not self.is_over:
            if (wait_ns := self.wait_ns) > 0:
                time.sleep(wait_ns * 1e-9)
            yield from self.due()


class Arrivals:
    """Writes a record for each item that arrives, at once."""

    def __init__(self, directory: str, replica: int = 0) -> None:
        path = Path(directory) / f"replica-{replica:05d}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, item: Item) -> None:
        """Its latency ends here."""
        now_ns = time.monotonic_ns()
        partition, index, due_ns, lag_ns, _ = item
        os.write(self._descriptor, RECORD.pack(partition, index, due_ns, now_ns, lag_ns))

    def close(self) -> None:
        """Whoever opened it closes it."""
        os.close(self._descriptor)
