"""`penstock explain`: what a flow would become on Spark, without starting it."""

from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.cli.flow_options import Options, Target
from penstock.cli.target import load_flow


def command(
    target: Target,
    options: Options = None,
) -> None:
    """Print layers, pools, slots, wirings, constraints, every default applied, and the settings for Spark."""
    with user_errors(Console(stderr=True)):
        print(load_flow(target, options or ()).explain())
