"""`penstock demo-kafka`: see it run from topic to topic."""

from typing import Annotated

import typer
from rich.console import Console

from penstock.apps.kafka_demo import kafka_demo
from penstock.cli.errors import FAILED, user_errors


def command(
    seconds: Annotated[float, typer.Option(help="Length of the load.")] = 20.0,
    rate: Annotated[float, typer.Option(help="Records a second.")] = 500.0,
) -> None:
    """From topic to topic on a Kafka broker of its own; exit 1 if records are lost."""
    errors = Console(stderr=True)
    with user_errors(errors):
        outcome = kafka_demo(seconds, rate, errors.print)
    console = Console()
    console.print(f"{outcome.sent} records from topic to topic through a Python task, at {rate:g} a second")
    console.print(f"lost: {outcome.lost}, doubled: {outcome.doubled}")
    if len(outcome.times_ms) > 1:
        middle, high = outcome.percentile_ms(50), outcome.percentile_ms(99)
        console.print(f"from producer to consumer: p50 {middle:.1f} ms, p99 {high:.1f} ms")
    if outcome.lost:
        raise typer.Exit(FAILED)
