"""Useful time of a worker (DS2, OSDI 2018, section 4.2.1): what its threads spend on work, not on waiting.

The task's thread decodes, processes and codes; the shipper's thread codes what has reached its lifetime. They
share one interpreter, so a moment in which both work is one moment of work:

    useful = time of the task's thread without its waits
           + time in which the shipper's thread codes and the task's thread does not work

Waiting is: for input, for room in the output, and for the lock that the other thread holds.
"""


class TaskTime:
    """The stopwatch of the task's thread; any thread may read it."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        # Total, and since when it runs (0: it stands still); one value, so that nobody sees half of a change.
        self._state = (0, 0)

    def go(self, now_ns: int) -> int:
        """Work begins; the total so far."""
        total_ns = self._state[0]
        self._state = (total_ns, now_ns)
        return total_ns

    def halt(self, now_ns: int) -> int:
        """Work ends; the total so far."""
        total_ns = self.at(now_ns)
        self._state = (total_ns, 0)
        return total_ns

    @property
    def runs(self) -> bool:
        """Whether the task's thread is at work."""
        return self._state[1] != 0

    def waited(self, wait_ns: int) -> None:
        """So much of what passed since work began was waiting."""
        total_ns, since_ns = self._state
        if since_ns:
            self._state = (total_ns - wait_ns, since_ns)

    def at(self, now_ns: int) -> int:
        """The total at that time."""
        total_ns, since_ns = self._state
        return total_ns + max(0, now_ns - since_ns) if since_ns else total_ns


class ShipperTime:
    """The stopwatch of the shipper's thread: counts what the task's does not count at the same time."""

    __slots__ = ("_began_ns", "_task", "_task_ns", "_total_ns")

    def __init__(self, task: TaskTime) -> None:
        self._task = task
        self._began_ns = self._task_ns = self._total_ns = 0

    def go(self, now_ns: int) -> None:
        """Work begins, or goes on after a wait that does not count."""
        self._began_ns, self._task_ns = now_ns, self._task.at(now_ns)

    def halt(self, now_ns: int) -> int:
        """Work ends, perhaps to go on; the total so far."""
        passed_ns = now_ns - self._began_ns
        self._total_ns += max(0, passed_ns - (self._task.at(now_ns) - self._task_ns))
        self._began_ns, self._task_ns = now_ns, self._task.at(now_ns)
        return self._total_ns

    @property
    def total_ns(self) -> int:
        """What was counted so far."""
        return self._total_ns
