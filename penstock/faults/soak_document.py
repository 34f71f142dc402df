"""What came of a soak, in files and in a page."""

from pathlib import Path

import msgspec

from penstock.bench.harness import Result
from penstock.faults.soak import Soak
from penstock.faults.soak_picture import draw
from penstock.report.markdown import markdown_table, put_between
from penstock.testing.arrivals import Entries

BEGIN, END = "<!-- penstock soak: begin -->", "<!-- penstock soak: end -->"
PICTURE = "soak.png"
PICTURES = "pictures"


def keep(about: Soak, result: Result, entries: Entries, directory: Path) -> None:
    """The result, what was sampled and done, and the picture."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "soak.json").write_text(result.to_json() + "\n")
    (directory / "samples.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, about.samples)) + b"\n")
    (directory / "faults.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, about.faults)) + b"\n")
    draw(about, entries, directory / PICTURE)


def write_page(directory: Path, page: Path) -> None:
    """Put the checks and the picture of the soak in a directory into a page."""
    told = msgspec.json.decode((directory / "soak.json").read_bytes())
    figures = told["figures"]
    rows = [
        (
            check["name"],
            "not measured" if check["value"] is None else f"{check['value']:g}",
            f"{check['op']} {check['bar']:g}",
            "ok" if check["ok"] else "**missed**",
        )
        for check in told["checks"]
    ]
    held = figures["windows_held"]
    about = (
        f"{figures['seconds'] / 60:g} min of {figures['load']}, seed {figures['seed']}: "
        f"{figures['items']:,} items, "
        f"{figures['killed']['worker']} workers and {figures['killed']['executor']} executors killed, "
        f"{figures['restarts']} restarts; {'no' if held is None else f'{held:.1%}'} of the windows held."
    )
    pictures = page.parent / PICTURES
    pictures.mkdir(exist_ok=True)
    (pictures / PICTURE).write_bytes((directory / PICTURE).read_bytes())
    picture = f"![Rate, latency, faults and memory over time]({PICTURES}/{PICTURE})"
    put_between(
        page, BEGIN, END, f"{about}\n\n{markdown_table(('check', 'value', 'bar', ''), rows)}\n\n{picture}\n"
    )
