"""What the commits of a checkpoint leave on its disk, seen from outside while a flow runs."""

from dataclasses import dataclass, field
from pathlib import Path

STATE = Path("epochs") / "state"


@dataclass
class StateFiles:
    """The files of state that a checkpoint had at any look: they stay for some commits, then they go."""

    checkpoint: Path
    sizes: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Note what is new."""
        for file in (self.checkpoint / STATE).glob("[!.]*"):
            if file.name not in self.sizes:
                self.sizes[file.name] = _size(file)

    @property
    def bytes(self) -> int:
        """Of all that was written."""
        return sum(self.sizes.values())

    def of(self, kind: str) -> list[int]:
        """The sizes of those of a kind: `changes`, or `base`."""
        return [size for name, size in self.sizes.items() if name.split("-")[3] == kind]

    def whole_bytes(self) -> int:
        """Of all files that the checkpoint has now."""
        return sum(_size(file) for file in self.checkpoint.rglob("*") if file.is_file())


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
