"""How far a contest of two checkouts is, line by line."""

from rich.console import Console

from penstock.bench.against import REPEATS, Place, Turn
from penstock.bench.compared import COMPARED


class Lines:
    """A line when a turn begins and one when it has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def warms_up(self, bench: str, contestant: str) -> None:
        self._say(f"bench {bench}: {contestant} warms up")

    def begins(self, place: Place) -> None:
        again = f", attempt {place.attempt}" if place.attempt > 1 else ""
        left_min = place.left_s / 60
        self._say(
            f"bench {place.bench}: turn {place.number} of {place.of}, {place.contestant}{again}; "
            f"about {left_min:.0f} min left"
        )

    def waits(self, slower: float) -> None:
        self._say(f"  waiting: the reference loop is {slower:.0%} slower than its best")

    def ended(self, place: Place, turn: Turn) -> None:
        values = {
            figure.name: figure.value_in(turn.report.figures)
            for figure in COMPARED[place.bench]
            if figure.worse_at_most is not None
        }
        shown = [
            f"{name} {'unknown' if value is None else f'{value:,.4g}'}" for name, value in values.items()
        ]
        self._say(f"  {', '.join(shown)}")
        if turn.conditions.disturbances:
            then = "it is repeated" if place.attempt <= REPEATS else "it counts all the same"
            self._say(f"  disturbed, {then}: {'; '.join(turn.conditions.disturbances)}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
