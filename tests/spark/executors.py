"""The executors of a local cluster."""

import os
from pathlib import Path

from penstock import processes


def executors() -> list[int]:
    """Processes below this one that are Spark's executors."""
    found = []
    for pid in processes.tree(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"java" in command.split(b"\0")[0] and b"CoarseGrainedExecutorBackend" in command:
            found.append(pid)
    return found
