"""Under which conditions a turn was measured, and whether it was disturbed."""

from dataclasses import dataclass

from penstock.bench.reference import SLOWER_AT_MOST

NEIGHBOURS_AT_MOST = 0.05
STOLEN_AT_MOST = 0.02


@dataclass(frozen=True, slots=True)
class Conditions:
    """The reference loop before and after a turn (0.1: a tenth slower than its best), and who else had CPU.

    What neighbours took and what was stolen are shares of all cores, while the turn ran.
    """

    slower_before: float
    slower_after: float
    neighbours: float
    stolen: float

    @property
    def disturbances(self) -> list[str]:
        """In words; none on a quiet machine."""
        found = []
        if self.slower_before > SLOWER_AT_MOST:
            found.append(f"the reference loop was {self.slower_before:.0%} slower before it")
        if self.slower_after > SLOWER_AT_MOST:
            found.append(f"the reference loop was {self.slower_after:.0%} slower after it")
        if self.neighbours > NEIGHBOURS_AT_MOST:
            found.append(f"other processes took {self.neighbours:.0%} of the CPU")
        if self.stolen > STOLEN_AT_MOST:
            found.append(f"{self.stolen:.0%} of the CPU was stolen")
        return found
