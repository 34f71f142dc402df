"""A recording as the dashboard shows it: read once, every interval kept as the text it is."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from penstock.control.decision_log import Entry
from penstock.control.events import Event
from penstock.control.recording import RecordingError, decisions_path, events_path, read_events, read_log
from penstock.control.recording_header import RecordingHeader, decode_header
from penstock.dashboard.timeline import OtherTasksError, Timeline
from penstock.dashboard.told import Now, Told, is_loud, told_of
from penstock.operate.protocol import Answer, Set
from penstock.stats.snapshot import Snapshot, decode_snapshot


class _Line(msgspec.Struct, frozen=True):
    at_s: float | None = None
    stood_still_ms: float | None = None
    snapshot: msgspec.Raw = msgspec.Raw()


class RecordedFlow:
    """Nothing of it changes."""

    steer: Callable[[Set], Answer] | None = None

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.timeline = Timeline()
        self.flow, self.policy = self.path.stem, None
        self._events = list(read_events(self.path)) if events_path(self.path).exists() else []
        self._entries = _entries(self.path)
        self._by_number = {entry.number: entry for entry in self._entries if entry.by is None}
        self._loud = [entry for entry in self._entries if entry.by is not None]
        self._read()
        if self.timeline.latest is None:
            raise RecordingError(f"{self.path}: holds no snapshot yet")
        if self.policy is None and self._by_number:
            self.policy = self._entries[-1].decision.policy
        self._loud.sort(key=lambda entry: entry.at_s)
        self._events.sort(key=lambda event: event.at_s)

    def now(self) -> Now | None:
        """It is over."""
        return None

    def decisions(self, before_s: float, count: int, *, changes: bool) -> list[Told]:
        """See `Shown`."""
        entries = self._loud if changes else self._entries
        end = bisect_right(entries, before_s, key=lambda entry: entry.at_s)
        return [self._told(entry) for entry in reversed(entries[max(0, end - count) : end])]

    def events(self) -> list[Event]:
        """Starts of the driver, boundaries that stopped the sources, and recorded events, if it has some."""
        return self._events

    def _told(self, entry: Entry) -> Told:
        found = None if entry.by else self.timeline.interval(entry.number)
        return told_of(entry, None if found is None else _snapshot(bytes(found.snapshot)))

    def _read(self) -> None:
        number, ended_s, planned = 0, 0.0, dict[str, int]()
        for place, line in _lines(self.path):
            try:
                header = decode_header(line)
                if header is not None:
                    ended_s = self._begin(header)
                    continue
                told = _line(line)
                snapshot = _snapshot(bytes(told.snapshot))
                ended_s = ended_s + snapshot.interval_s if told.at_s is None else told.at_s
                self.timeline.add(
                    snapshot,
                    at_s=ended_s,
                    stood_still_ms=told.stood_still_ms,
                    planned=planned,
                    encoded=bytes(told.snapshot),
                )
            except OtherTasksError as problem:
                raise RecordingError(
                    f"{self.path}, line {place}: {problem} than before; flows that differ are recorded in"
                    " files of their own"
                ) from None
            except ValueError as problem:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                raise RecordingError(f"{self.path}, line {place}: {problem}") from None
            if told.stood_still_ms is not None:
                gap = f"the sources stood still for {told.stood_still_ms:.0f} ms at a boundary"
                self._events.append(Event(at_s=ended_s, kind="commit", text=gap))
            entry = self._by_number.get(number)
            if entry is not None:
                planned = entry.decision.parallelism
                if is_loud(told_of(entry, snapshot)):
                    self._loud.append(entry)
            number += 1

    def _begin(self, header: RecordingHeader) -> float:
        self.flow, self.policy = header.flow, header.policy
        words = f"a run begins, policy {header.policy}{', only recommending' if header.recommend else ''}"
        self._events.append(Event(at_s=header.started_at_s, kind="run", text=words))
        return header.started_at_s


def _entries(path: Path) -> list[Entry]:
    if not decisions_path(path).exists():
        return []
    return sorted(read_log(path), key=lambda entry: entry.at_s)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as lines:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None


_LINES = msgspec.json.Decoder(_Line)
_SNAPSHOTS = msgspec.json.Decoder(Snapshot)


def _line(line: bytes) -> _Line:
    """A line may be a snapshot alone."""
    return _LINES.decode(line) if line.startswith(b'{"at_s"') else _Line(snapshot=msgspec.Raw(line))


def _snapshot(text: bytes) -> Snapshot:
    """The quick way; what is wrong or of an older version takes the one that explains it."""
    try:
        return _SNAPSHOTS.decode(text)
    except msgspec.MsgspecError:
        return decode_snapshot(text)
