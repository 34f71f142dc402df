"""Who holds a checkpoint: one driver at a time reads and commits there, and a file in it says which."""

import socket
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from penstock import processes
from penstock.flow.errors import FlowError

FILE = ".penstock-holder"


class Hold(Protocol):
    """A checkpoint that a flow holds."""

    def when_taken(self, tell: Callable[["Holder"], None]) -> None:
        """Whom to tell that somebody else has taken it: a lock cannot be taken, a file can."""
        ...

    def release(self) -> None:
        """The flow is over; a second call does nothing."""
        ...


class Holder(msgspec.Struct, frozen=True):
    """A driver that holds a checkpoint: its own process, then that of its Spark, as `system` knows them."""

    flow: str
    host: str
    processes: list[str]
    system: str
    since_s: float
    token: str

    @property
    def is_near(self) -> bool:
        """Whether it can be seen from here if it lives."""
        return self.system == processes.system()

    @property
    def is_alive(self) -> bool:
        """Whether one of its processes is there; only for one that is near."""
        return any(processes.is_alive(who) for who in self.processes)

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_s).astimezone().isoformat(" ", "seconds")
        return f'flow "{self.flow}" on {self.host}, process {self.processes[0].split()[0]}, since {since}'


def new_holder(flow: str, pids: Sequence[int]) -> Holder:
    """This driver, whose processes these are."""
    return Holder(
        flow=flow,
        host=socket.gethostname(),
        processes=[who for pid in pids if (who := processes.identity(pid)) is not None],
        system=processes.system(),
        since_s=time.time(),
        token=uuid.uuid4().hex,
    )


def encoded(holder: Holder) -> str:
    """The first line of the file."""
    return msgspec.json.encode(holder).decode() + "\n"


def decoded(text: str | None) -> Holder | None:
    """Who wrote it; None if nobody did, or it is being written."""
    try:
        return msgspec.json.decode((text or "").partition("\n")[0], type=Holder)
    except ValueError:
        return None


def refusal(address: str, holder: Holder | None) -> FlowError:
    """Why the checkpoint cannot be used."""
    who = "somebody who has not said who it is" if holder is None else str(holder)
    return FlowError(
        f"the checkpoint {address} is held by {who}; stop that flow first, or choose another directory"
    )
