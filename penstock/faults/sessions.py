"""Trials in processes that stay: those of one kind share a driver and its Spark.

Run as a module it is such a process: it is asked by lines of its standard input, and answers by lines.
"""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

import penstock
from penstock.bench.checkout import Checkout
from penstock.bench.harness import Check
from penstock.bench.own_session import ANSWER, OwnSession, SessionEndedError
from penstock.faults.clocks import java_home
from penstock.faults.row import Outcome, Row, Where
from penstock.faults.standalone import await_slots
from penstock.faults.trial import trial, warm_up

LOCAL_SLOTS = 24
CLUSTER_SLOTS = 12
CLUSTER = f"local-cluster[2,{CLUSTER_SLOTS // 2},1024]"
TRIAL_TIMEOUT_S = 240.0


class Question(msgspec.Struct):
    """Which trial is wanted; none if the row has no name, only that all is ready for one."""

    row: str
    seed: int
    number: int


class Stage(Protocol):
    """Carries trials out, one after the other."""

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        """One trial of a row."""
        ...


class OwnStage:
    """In a process of its own; one that breaks is replaced."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._session: OwnSession | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="pf-", ignore_cleanup_errors=True)

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        try:
            self.begin()
            assert self._session is not None
            question = msgspec.json.encode(Question(row.name, seed, number)).decode()
            answered = self._session.ask(question, TRIAL_TIMEOUT_S)
        except SessionEndedError as problem:
            self._end_session()
            return Outcome({"problem": str(problem)}, [Check("trial came to its end", None, "==", 1)])
        return msgspec.json.decode(answered.text, type=Outcome)

    def begin(self) -> None:
        """Return when it is there, and warm."""
        if self._session is None:
            self._session = self._begun()
            self._session.ask(msgspec.json.encode(Question("", 0, 0)).decode(), TRIAL_TIMEOUT_S)

    def close(self) -> None:
        """End it and what it has started."""
        self._end_session()
        self._directory.cleanup()

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.__exit__()
            self._session = None

    def _begun(self) -> OwnSession:
        place = self._directory.name  # what others leave in the common one is not ours
        environment = {
            **Checkout.own().environment(),
            "TMPDIR": place,
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place}",
        }
        if self._where == "cluster":
            environment["JAVA_HOME"] = str(java_home(Path(tempfile.mkdtemp(dir=place))))
        command = [sys.executable, "-P", "-m", __name__, self._where]
        return OwnSession(command, environment=environment, directory=Path(place))


class HereStage:
    """In this process, on a Spark that is there already.

    One at a time, however many stages there are: what belongs to another trial would look left behind.
    """

    _turn = threading.Lock()

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        with self._turn:
            return trial(row, seed, number)


@contextmanager
def stage(where: Where) -> Iterator[Stage]:
    """Where trials of rows of a kind take place."""
    own = OwnStage(where)
    try:
        own.begin()
        yield own
    finally:
        own.close()


def _begin_local() -> None:
    penstock.session(LOCAL_SLOTS, least=0)


def _begin_cluster() -> None:
    """Executors that the last trial has killed are there again, and all that they listen on."""
    await_slots(penstock.session(LOCAL_SLOTS, CLUSTER, least=0), CLUSTER_SLOTS)


_BEGINNINGS = {"local": _begin_local, "cluster": _begin_cluster}


def _answer_questions(where: str) -> None:
    from penstock.faults.table import ROWS

    begin = _BEGINNINGS.get(where)
    if begin is not None:
        begin()
        warm_up()
    for line in sys.stdin:
        if begin is not None:
            begin()
        question = msgspec.json.decode(line, type=Question)
        wanted = ROWS.get(question.row)
        outcome = Outcome({}, []) if wanted is None else trial(wanted, question.seed, question.number)
        print(ANSWER + msgspec.json.encode(outcome).decode(), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    _answer_questions(sys.argv[1])
