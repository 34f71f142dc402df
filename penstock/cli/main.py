"""The entry point: every command is a module with a function `command`."""

import typer

from penstock.cli import (
    bench,
    decide,
    demo,
    evaluate,
    explain,
    faults,
    graph,
    replay_dead_letters,
    report,
    run,
    simulate,
    soak,
    status,
)

app = typer.Typer(
    name="penstock",
    help="Python dataflows with latency constraints on Apache Spark real-time mode.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.command)
app.command("status")(status.command)
app.command("replay-dead-letters")(replay_dead_letters.command)
app.command("explain")(explain.command)
app.command("graph")(graph.command)
app.command("report")(report.command)
app.command("demo")(demo.command)
app.command("bench")(bench.command)
app.command("faults")(faults.command)
app.command("soak")(soak.command)
app.command("evaluate")(evaluate.command)
app.command("decide")(decide.command)
app.command("simulate")(simulate.command)
