"""The other terminal's side: which flows run, and a question to one of them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from penstock.operate.line import Line, stranger
from penstock.operate.place import PlaceError, check, clear, connect, places
from penstock.operate.protocol import (
    ANSWER_BYTES,
    Answer,
    Greeting,
    ProtocolError,
    Request,
    decode_answer,
    decode_greeting,
)

_GREETING_S = 5.0
ANSWER_S = 15.0


class NoSuchFlowError(LookupError):
    """No flow that runs, or more than one, is meant; the message lists them."""


class NoAnswerError(RuntimeError):
    """A flow that was there has not answered; the message says what is known."""


@dataclass(frozen=True, slots=True)
class Running:
    """A flow that can be asked."""

    greeting: Greeting
    path: Path


@dataclass(frozen=True, slots=True)
class Found:
    """All flows of this user, oldest first, and what was in the way of finding more."""

    flows: list[Running] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def find(where: Sequence[Path] | None = None) -> Found:
    """Ask everybody who listens for a greeting."""
    found = Found()
    for place in places() if where is None else where:
        try:
            check(place)
        except FileNotFoundError:
            continue
        except PlaceError as problem:
            found.problems.append(str(problem))
            continue
        for path in clear(place):
            try:
                with Call(path) as call:
                    found.flows.append(Running(call.greeting, path))
            except (NoAnswerError, PlaceError, ProtocolError) as problem:
                found.problems.append(str(problem))
    found.flows.sort(key=lambda flow: flow.greeting.started_at_s)
    return found


def chosen(reference: str | None, found: Found) -> Running:
    """The flow that a name, the pid of its driver, or the beginning of its run stands for.

    Without a reference it is the only one that runs.
    """
    flows = found.flows
    if reference is not None:
        for matches in (
            lambda greeting: greeting.flow == reference,
            lambda greeting: str(greeting.pid) == reference,
            lambda greeting: greeting.run.startswith(reference),
        ):
            flows = [flow for flow in found.flows if matches(flow.greeting)]
            if flows:
                break
    if len(flows) == 1:
        return flows[0]
    if flows:
        what = "several flows run" if reference is None else f'"{reference}" stands for {len(flows)} flows'
        raise NoSuchFlowError(f"{what}: {_listed(flows)}; give the run or, if that is enough, the pid")
    nobody = "no flow runs" if reference is None else f'no flow "{reference}" runs'
    others = f" (there are {_listed(found.flows)})" if found.flows else ""
    raise NoSuchFlowError("; ".join([f"{nobody} under this user on this machine{others}", *found.problems]))


class Call:
    """A connection to one flow, greeted; several requests may be made, one after the other."""

    def __init__(self, path: Path) -> None:
        connection = connect(path, _GREETING_S)
        self._connection = connection
        self._line = Line(connection, ANSWER_BYTES)
        self._who = f"the driver with pid {path.name.partition('-')[0]}"
        try:
            if (who := stranger(connection)) is not None:
                raise PlaceError(f"{path} is answered by {who} and is not used")
            self.greeting = decode_greeting(self._received("it does not answer; it may be stopped or stuck"))
            self._who = f'flow "{self.greeting.flow}" (pid {self.greeting.pid})'
        except BaseException:
            self.close()
            raise

    def ask(self, request: Request, timeout_s: float = ANSWER_S) -> Answer:
        """The answer; `NoAnswerError` if none comes in time, or the driver ends before it."""
        self._connection.settimeout(timeout_s)
        try:
            self._line.send(request)
        except OSError as error:
            raise NoAnswerError(f"{self._who}: {error.strerror or error}") from None
        return decode_answer(self._received(f"no answer within {timeout_s:g} s"))

    def _received(self, late: str) -> bytes:
        try:
            text = self._line.receive()
        except TimeoutError:
            raise NoAnswerError(f"{self._who}: {late}") from None
        except OSError as error:
            raise NoAnswerError(f"{self._who}: {error.strerror or error}") from None
        if text is None:
            raise NoAnswerError(f"{self._who} has ended without an answer")
        return text

    def close(self) -> None:
        """Ask nothing more."""
        self._line.close()

    def __enter__(self) -> "Call":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def ask(flow: Running, request: Request, timeout_s: float = ANSWER_S) -> Answer:
    """One question to a flow."""
    with closing(Call(flow.path)) as call:
        return call.ask(request, timeout_s)


def _listed(flows: Sequence[Running]) -> str:
    return ", ".join(
        f"{flow.greeting.flow} (run {flow.greeting.run[:8]}, pid {flow.greeting.pid})" for flow in flows
    )
