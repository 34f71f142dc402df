"""Watches what is made to survive a crash of the host, and in which order."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files and directories as they are synced; a file that is renamed as "from > to"."""
    calls: list[str] = []

    def noted(real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            calls.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
            real(descriptor)

        return sync

    def rename(source: Path, target: Path) -> Path:
        calls.append(f"{source.name} > {target.name}")
        os.replace(source, target)  # noqa: PTH105 - Path.replace is what is watched here
        return target

    monkeypatch.setattr("os.fsync", noted(os.fsync))
    monkeypatch.setattr("os.fdatasync", noted(os.fdatasync))
    monkeypatch.setattr(Path, "replace", rename)
    return calls
