"""Executors whose clocks are ahead of time: a home of Java whose next executor starts in a time namespace.

Needs Linux 5.6, `unshare` and the right to use it.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

AHEAD_S: Final = 5
_WISH = "wish"
_JAVA = """#!/bin/sh
# An executor that is started while there is a wish gets a clock of its own.
case "$*" in
*CoarseGrainedExecutorBackend*)
    if rmdir "{wish}" 2>/dev/null; then
        exec unshare --fork --kill-child --time --monotonic {ahead} -- "{java}" "$@"
    fi;;
esac
exec "{java}" "$@"
"""


def java_home(place: Path) -> Path:
    """Make such a home, for the JAVA_HOME of a driver of a `local-cluster`."""
    usual = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if usual is None else str(Path(usual) / "bin" / "java")
    home = place / "java"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(_JAVA.format(wish=home / _WISH, ahead=AHEAD_S, java=java))
    program.chmod(0o755)
    return home


def wish_for_one_ahead(home: Path) -> None:
    """The next executor that starts is ahead of time."""
    (home / _WISH).mkdir()


def is_ahead(pid: int) -> bool:
    """Whether a process has a clock of its own."""
    return Path(f"/proc/{pid}/ns/time").readlink() != Path("/proc/self/ns/time").readlink()


def lacks_clocks() -> str:
    """Why clocks cannot be set here; nothing if they can."""
    if shutil.which("unshare") is None:
        return "there is no `unshare`, which gives a process a clock of its own"
    tried = subprocess.run(
        ["unshare", "--fork", "--time", "--monotonic", "1", "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no process can have a clock of its own: {tried.stderr.strip()}" if tried.returncode else ""
