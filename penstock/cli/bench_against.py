"""`penstock bench --against`: this checkout and another one in turn."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from penstock.bench.against import AGAINST, THIS, Contest, comparable
from penstock.bench.against_progress import Lines
from penstock.bench.checkout import Checkout
from penstock.bench.harness import Result
from penstock.bench.reference import Reference


def compare(names: Sequence[str], against: Path, turns: int, console: Console) -> Iterator[Result]:
    """One result for each bench; whatever cannot be run is refused before the first turn."""
    benches = comparable(names)
    checkouts = {THIS: Checkout.own(), AGAINST: Checkout.at(against)}
    for name, checkout in checkouts.items():
        console.print(f"{name}: {checkout.root}", markup=False, highlight=False, soft_wrap=True)
        checkout.prepare()
    for bench in benches:
        with ExitStack() as both:
            runs = {name: both.enter_context(checkout.contestant()) for name, checkout in checkouts.items()}
            contest = Contest(runs, checkouts[AGAINST].root, Reference(), Lines(console), turns=turns)
            yield contest.run(bench)
