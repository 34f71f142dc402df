"""A screen that may go away: who reads it may end before the flow does."""

from rich.console import Console


class Screen(Console):
    """Says nothing more when nobody reads it; a console of rich would end the thread that writes."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
