"""What a worker shows its parent: which item it is at, since when, and how much memory it may use.

A page of memory that both see. The parent looks at it (zygote.py), not a thread of the worker: code that
hangs often holds the interpreter (a regular expression, a large power), and then no other thread of it runs.

The time of an item is its task's own: neither waiting for room in the output counts, nor tasks chained behind
it. Memory is what the worker got since its start, without what it shares with its parent.
"""

import mmap
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from penstock.durations import format_ms
from penstock.flow.graph import Graph
from penstock.sizes import format_size
from penstock.worker.asking import Give

_HEAD, _TASK, _TIMEOUT_NS, _BEGAN_NS, _WAITED_BEFORE_NS = range(5)
_WAITED_NS, _WAITING_SINCE_NS, _SEQUENCE, _ITEM, _OF_NO_ITEM, _MEMORY, _BASE, _USED = range(5, 13)
_FIELDS: Final = 13
_MARGIN_BYTES: Final = 64 << 20
_NOBODY: Final = -2  # before the next item: that of a batch is not known

Step = Callable[[Any], object]


class Over(NamedTuple):
    """A limit that a worker has exceeded, and the item it is at, if that item alone is to blame."""

    task: str
    problem: str
    sequence: int = 0
    item: int = -1


def has_limits(graph: Graph) -> bool:
    """Whether anybody has to look at the workers of a flow."""
    return any(task.memory_bytes is not None or task.timeout_ms is not None for task in graph.tasks)


class Gauge:
    """The page of one worker; made before it is forked."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._page = memoryview(mmap.mmap(-1, 8 * _FIELDS)).cast("q")
        self._data_bytes = 0
        self._taken = (0, -1)

    # What the worker does.

    def begin(self, head: str) -> None:
        """This process is the worker of this task."""
        self._page[_HEAD] = self._page[_TASK] = self._number(head)
        self._page[_TIMEOUT_NS] = self._timeout_ns(head)
        self._page[_ITEM] = _NOBODY
        self._page[_BASE] = _private_bytes("self")
        self._data_bytes = _status_bytes("self", "VmData:")

    def limit_memory(self, limits: list[int | None]) -> None:
        """The limits of all tasks in this process add up.

        One allocation that is far too large fails at once, in the user's code; what grows bit by bit, and is
        really used, the parent sees.
        """
        limit = sum(filter(None, limits))
        self._page[_MEMORY] = limit
        if limit:
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            most = self._data_bytes + 2 * limit + _MARGIN_BYTES
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

    def envelope(self, sequence: int, first: int = 0) -> None:
        """The items that come now are those of this input, from `first` on."""
        self._page[_SEQUENCE] = sequence
        self._page[_ITEM] = first - 1
        self._taken = (sequence, first - 1)

    def taken(self) -> tuple[int, int]:
        """The next item of the input is taken by an async body: what tells it from all others."""
        sequence, item = self._taken
        self._taken = (sequence, item + 1)
        return self._taken

    def enter(self, place: tuple[int, int]) -> None:
        """This item, of those that were taken, has the thread."""
        page = self._page
        page[_SEQUENCE], page[_ITEM] = place
        page[_WAITED_BEFORE_NS] = page[_WAITED_NS]
        page[_BEGAN_NS] = time.monotonic_ns()

    def leave(self) -> None:
        """It has it no more."""
        self._page[_BEGAN_NS] = 0

    def given(self, give: Give, _task: str) -> Give:
        """What an async body answered is given on while `enter` and `leave` tell whose time it takes."""
        return give

    def pausing(self, pause: Callable[[float], None]) -> Callable[[float], None]:
        """A pause before another try is not the item's time, and that try has all the time there is."""
        page = self._page

        def pause_noting(seconds: float) -> None:
            page[_BEGAN_NS] = 0
            pause(seconds)
            page[_WAITED_BEFORE_NS] = page[_WAITED_NS]
            page[_BEGAN_NS] = time.monotonic_ns()

        return pause_noting

    def timed(self, step: Step, task: str) -> Step:
        """A step that shows when it runs."""
        if self._number(task) == self._page[_HEAD]:
            return self._timed_head(step)
        return self._behind(step, task, names_item=True)

    def timed_batch(self, step: Step, task: str) -> Step:
        """The same for a step that takes lists; who of a list is at fault shows when they come one by one."""
        if self._number(task) == self._page[_HEAD]:
            return self._timed_head_batch(self._timed_head(step))
        return self._behind(step, task, names_item=False)

    def _timed_head_batch(self, timed_head: Step) -> Step:
        """The next item is known only if `envelope` says so again."""
        page = self._page

        def timed_step(items: Any) -> object:
            try:
                return timed_head(items)
            finally:
                page[_ITEM] = _NOBODY

        return timed_step

    def _timed_head(self, step: Step) -> Step:
        """The step of the worker's own task; the clock says which of its items is being processed."""
        page = self._page

        def timed_step(item: Any) -> object:
            page[_ITEM] += 1
            page[_WAITED_BEFORE_NS] = page[_WAITED_NS]
            page[_BEGAN_NS] = time.monotonic_ns()
            try:
                return step(item)
            finally:
                page[_BEGAN_NS] = 0

        return timed_step

    def _behind(self, step: Step, task: str, *, names_item: bool) -> Step:
        """The step of a task that is chained behind another; the clock of that one stands still meanwhile."""
        page = self._page
        number, timeout_ns = self._number(task), self._timeout_ns(task)

        def timed_step(item: Any) -> object:
            before, began_ns = (page[_TASK], page[_TIMEOUT_NS], page[_WAITED_BEFORE_NS]), page[_BEGAN_NS]
            entered_ns, waited_ns = time.monotonic_ns(), page[_WAITED_NS]
            of_no_item = page[_OF_NO_ITEM]
            # Handed on by a timer, or a batch of what came of several items.
            page[_OF_NO_ITEM] = of_no_item or not began_ns or not names_item
            self._turn_to((number, timeout_ns, waited_ns), entered_ns)
            try:
                return step(item)
            finally:
                further_ns = page[_WAITED_NS] - waited_ns
                resumed_ns = began_ns and began_ns + time.monotonic_ns() - entered_ns
                self._turn_to((*before[:2], before[2] + further_ns), resumed_ns)
                page[_OF_NO_ITEM] = of_no_item

        return timed_step

    def _turn_to(self, clock: tuple[int, int, int], began_ns: int) -> None:
        """Without a beginning the other fields mean nothing: so whoever looks never mixes two clocks."""
        page = self._page
        page[_BEGAN_NS] = 0
        page[_TASK], page[_TIMEOUT_NS], page[_WAITED_BEFORE_NS] = clock
        page[_BEGAN_NS] = began_ns

    def sending(self, send: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Waiting for room in the output is nobody's fault. Called by one thread at a time."""
        page = self._page

        def send_noting(data: bytes) -> None:
            page[_WAITING_SINCE_NS] = since_ns = time.monotonic_ns()
            send(data)
            page[_WAITED_NS] += time.monotonic_ns() - since_ns
            page[_WAITING_SINCE_NS] = 0

        return send_noting

    def stop_if_full(self) -> None:
        """In careful mode, after each item: too much memory is that item's doing, not the next one's."""
        limit = self._page[_MEMORY]
        if limit and (used := _private_bytes("self") - self._page[_BASE]) > limit:
            self._page[_USED] = used
            self._await_end()

    @staticmethod
    def _await_end() -> NoReturn:
        while True:
            time.sleep(60)

    # What its parent does.

    def over(self, pid: int, now_ns: int) -> Over | None:
        """The limit that the worker has exceeded, if there is one."""
        return self._took_too_long(now_ns) or self._uses_too_much(pid)

    def _took_too_long(self, now_ns: int) -> Over | None:
        page = self._page
        began_ns, timeout_ns = page[_BEGAN_NS], page[_TIMEOUT_NS]
        if not began_ns or not timeout_ns:
            return None
        waiting_ns = now_ns - page[_WAITING_SINCE_NS] if page[_WAITING_SINCE_NS] else 0
        took_ns = now_ns - began_ns - (page[_WAITED_NS] - page[_WAITED_BEFORE_NS]) - waiting_ns
        task, item = self._graph.tasks[page[_TASK]].name, -1 if page[_OF_NO_ITEM] else page[_ITEM]
        found = Over(task, self._timeout_words(page[_TASK], timeout_ns), page[_SEQUENCE], item)
        return found if took_ns > timeout_ns and page[_BEGAN_NS] == began_ns else None

    def _timeout_words(self, task: int, timeout_ns: int) -> str:
        who = "it" if task == self._page[_HEAD] else f'task "{self._graph.tasks[task].name}", chained to it,'
        return f"{who} took longer than its timeout={format_ms(timeout_ns * 1e-6)}"

    def _uses_too_much(self, pid: int) -> Over | None:
        limit = self._page[_MEMORY]
        if not limit:
            return None
        used = self._page[_USED] or _private_bytes(str(pid)) - self._page[_BASE]
        if used <= limit:
            return None
        head = self._graph.tasks[self._page[_HEAD]]
        of = "its memory={}" if head.memory_bytes == limit else "the memory={} of its chain"
        problem = f"its worker used {used / 1e6:.0f} MB, more than {of.format(format_size(limit))}"
        return Over(head.name, problem)

    def _number(self, task: str) -> int:
        return [known.name for known in self._graph.tasks].index(task)

    def _timeout_ns(self, task: str) -> int:
        return round((self._graph.task(task).timeout_ms or 0) * 1e6)


def is_timed(graph: Graph, task: str) -> bool:
    """Whether items of this task need a clock: it has a timeout, or a task that may be chained to it."""
    chained = [s.receiver for s in graph.streams if s.sender == task and s.wiring == "forward"]
    return graph.task(task).timeout_ms is not None or any(is_timed(graph, other) for other in chained)


def _private_bytes(pid: str) -> int:
    return _status_bytes(pid, "RssAnon:", "VmSwap:")


def _status_bytes(pid: str, *fields: str) -> int:
    """The sum of fields of /proc/PID/status; 0 of a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(fields))
