"""`penstock dashboard`: a recorded run in a browser, with a slider for time."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.dashboard.recorded import RecordedFlow
from penstock.dashboard.server import DashboardServer, dashboard_address


def command(
    recording: Annotated[
        Path, typer.Argument(help="A file of --recording of `penstock run` or `penstock simulate`.")
    ],
    address: Annotated[
        str, typer.Option("--at", metavar="[HOST:]PORT", help="Where; loopback without a host, 0: any port.")
    ] = "0",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser at once.")] = False,
) -> None:
    """Show a recorded run in a browser until Ctrl-C."""
    console = Console(stderr=True)
    with user_errors(console):
        dashboard_address(address)
        server = DashboardServer(RecordedFlow(recording), address)
    console.print(f"dashboard at {server.signed_url}", markup=False, highlight=False, soft_wrap=True)
    if open_browser:
        webbrowser.open(server.signed_url)
    try:
        with suppress(KeyboardInterrupt):
            server.wait()
    finally:
        server.close()
