"""`penstock report`: recordings become pictures and a page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from penstock.report.charts import CHARTS, Chart
from penstock.report.grid import save
from penstock.report.history import History, read_history
from penstock.report.page import page

PAGE = "index.html"


def write_report(recordings: Sequence[Path | str], directory: Path | str) -> Path:
    """Write `index.html` and one PNG for each picture into a directory; the page needs none of them."""
    directory = Path(directory)
    histories = _with_distinct_names([read_history(path) for path in recordings], recordings)
    directory.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for chart in CHARTS:
        figure = chart.draw(histories)
        if figure is not None:
            figure.suptitle(title_of(chart, histories))
            path = directory / f"{chart.name}.png"
            save(figure, path)
            pictures[chart.name] = (chart.title, chart.about, path)
    written = directory / PAGE
    written.write_text(page(histories, pictures))
    return written


def title_of(chart: Chart, histories: Sequence[History]) -> str:
    """What a picture shows; of several recordings each column says whose it is."""
    return f"{chart.title}: {histories[0].title}" if len(histories) == 1 else chart.title


def _with_distinct_names(histories: list[History], paths: Sequence[Path | str]) -> list[History]:
    """The names of the files; with their directories where two have the same."""
    names = [history.name for history in histories]
    return [
        replace(history, name=str(Path(path).with_suffix(""))) if names.count(history.name) > 1 else history
        for history, path in zip(histories, paths, strict=True)
    ]
