"""The entry point: every command is a module with a function `command`."""

from typing import Annotated

import typer

from penstock.cli import (
    arena,
    bench,
    checkpoint,
    dashboard,
    decide,
    demo,
    demo_kafka,
    doctor,
    evaluate,
    explain,
    faults,
    graph,
    list_known,
    ps,
    replay_dead_letters,
    report,
    run,
    set_running,
    simulate,
    soak,
    state,
    status,
    stop,
)
from penstock.control.recording_header import installed_versions

app = typer.Typer(
    name="penstock",
    help="Python dataflows with latency constraints on Apache Spark real-time mode.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        found = installed_versions()
        others = ", ".join(f"{name} {number}" for name, number in found.items() if name != "penstock")
        typer.echo(f"penstock {found.get('penstock', 'from its sources')} ({others})")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Show the versions of what is installed."
        ),
    ] = False,
) -> None:
    """What all commands share."""


app.command("run")(run.command)
app.command("ps")(ps.command)
app.command("status")(status.command)
app.command("state")(state.command)
app.add_typer(checkpoint.app, name="checkpoint")
app.command("set")(set_running.command)
app.command("stop")(stop.command)
app.command("replay-dead-letters")(replay_dead_letters.command)
app.command("explain")(explain.command)
app.command("graph")(graph.command)
app.command("report")(report.command)
app.command("dashboard")(dashboard.command)
app.command("demo")(demo.command)
app.command("demo-kafka")(demo_kafka.command)
app.command("bench")(bench.command)
app.command("faults")(faults.command)
app.command("soak")(soak.command)
app.command("evaluate")(evaluate.command)
app.command("decide")(decide.command)
app.command("simulate")(simulate.command)
app.command("arena")(arena.command)
app.command("list")(list_known.command)
app.command("doctor")(doctor.command)
