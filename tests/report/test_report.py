"""Reports of small recordings: everything is drawn, and the page needs nothing but itself."""

import re
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.recording import Recorder
from penstock.policy.decision import Reason, Refusal
from penstock.report import charts_load
from penstock.report.charts import CHARTS
from penstock.report.errors import PictureError
from penstock.report.history import read_history
from penstock.report.page import page
from penstock.report.report import title_of, write_report
from penstock.stats.snapshot import encode_snapshot
from tests.control.headers import header
from tests.report.browser import console_messages
from tests.report.recordings import decision, history, simulated, snapshot

REFERENCE = re.compile(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)')


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("recordings")
    return [
        simulated(place / "chained.jsonl", "livestream", "tenth", "nephele", 15),
        simulated(place / "fixed.jsonl", "livestream", "tenth", "static", 15),
    ]


@pytest.fixture(scope="module")
def report(recordings: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([str(path) for path in recordings], str(tmp_path_factory.mktemp("report")))


def test_every_picture_is_there(report: Path) -> None:
    assert {path.stem for path in report.parent.glob("*.png")} == {chart.name for chart in CHARTS}
    for path in report.parent.glob("*.png"):
        with Image.open(path) as picture:
            assert picture.width > 600
            assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 10, f"{path.name} is empty"


def test_the_page_refers_to_nothing_outside(report: Path) -> None:
    text = report.read_text()
    references = [first or second for first, second in REFERENCE.findall(text)]
    assert len(references) > len(CHARTS)
    assert [found for found in references if not found.startswith("data:")] == []
    assert text.count("data:image/png;base64,") == len(CHARTS)


def test_the_page_opens_in_a_browser_without_an_error(report: Path, tmp_path: Path) -> None:
    seen, messages = console_messages(report, tmp_path)
    assert messages == []
    assert "live: intervals held" in seen
    assert "chained" in seen


def test_the_browser_would_tell(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<html><body><img alt="gone" src="gone.png"><script>nothing()</script></body></html>')
    _, messages = console_messages(bad, tmp_path)
    assert any("nothing is not defined" in message for message in messages)
    assert "broken picture: gone" in messages


def test_one_recording_without_decisions_or_chains_is_enough() -> None:
    drawn = {chart.name for chart in CHARTS if chart.draw([history(snapshot())]) is not None}
    assert drawn == {chart.name for chart in CHARTS} - {"chains", "decisions"}


def test_reasons_and_refusals_are_told_and_escaped() -> None:
    told = decision(
        3,
        reasons=[Reason(rule="rebalance", why="queue < 5 & growing")],
        refused=[Refusal(guard="cool_down", task="work", why="too soon")],
    )
    text = page([history(snapshot(), decided=[told])], {})
    assert "rebalance: queue &lt; 5 &amp; growing" in text
    assert "held back by cool_down: too soon" in text
    assert "work: 2 → 3 replicas" in text


def test_figures_of_both_recordings_stand_side_by_side(report: Path) -> None:
    text = report.read_text()
    held = re.search(r"live: intervals held</td>(.*?)</tr>", text)
    assert held is not None
    assert len(re.findall(r"\d+\.\d%", held[1])) == 2


def test_pictures_say_what_they_show_and_where_it_is_from(tmp_path: Path) -> None:
    chart = CHARTS[0]
    for name, started_at_s in (("planned", 0.0), ("done", 1767225600.0)):
        with Recorder(tmp_path / f"{name}.jsonl", header(started_at_s=started_at_s)) as recorder:
            recorder.write_snapshot(snapshot(), at_s=started_at_s + 5)
    planned, done = (read_history(tmp_path / f"{name}.jsonl") for name in ("planned", "done"))
    assert title_of(chart, [planned]) == "Latency: planned, simulated"
    assert title_of(chart, [done]) == "Latency: done, measured on Spark"
    assert title_of(chart, [history(snapshot())]) == "Latency: run"
    drawn = chart.draw([planned, done])
    assert drawn is not None
    assert [axes.get_title() for axes in drawn.axes] == ["planned, simulated", "done, measured on Spark"]
    assert [axes.texts[0].get_text() for axes in drawn.axes] == ["bound, 10 ms"] * 2


def test_active_replicas_are_drawn_as_they_were() -> None:
    figure = charts_load.replicas([history(snapshot(replicas=2), snapshot(replicas=5))])
    assert figure is not None
    lines = {patch.get_label(): patch for patch in figure.axes[0].patches}
    assert set(lines) == {"pool", "active", "needed"}
    values, edges, _ = lines["active"].get_data()  # type: ignore[attr-defined]
    assert list(values) == [2, 5]
    assert list(edges) == [0, 5, 10]


def test_the_command(recordings: list[Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(recordings[0]), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "index.html").exists()


def test_recordings_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    missing, empty, broken, mixed = (
        tmp_path / name for name in ("missing.jsonl", "empty.jsonl", "broken.jsonl", "mixed.jsonl")
    )
    renamed = msgspec.structs.replace(
        snapshot(), tasks={**snapshot().tasks, "more": snapshot().tasks["sink"]}
    )
    mixed.write_bytes(encode_snapshot(snapshot()) + b"\n" + encode_snapshot(renamed) + b"\n")
    empty.touch()
    broken.write_text('{"version": 3}\n')
    for path, complaint in (
        (missing, "missing.jsonl cannot be read: No such file or directory"),
        (empty, "empty.jsonl is empty; it must hold at least one snapshot"),
        (broken, "broken.jsonl, line 1: version"),
        (mixed, "mixed.jsonl: snapshot 1 has other tasks than those before it (source, work, sink, more)"),
    ):
        with pytest.raises(PictureError, match=re.escape(complaint)):
            read_history(path)
    refused = CliRunner().invoke(app, ["report", str(missing), "--out", str(tmp_path / "out")])
    assert refused.exit_code == 2
    assert "cannot be read" in refused.stderr


def test_recordings_of_the_same_name_are_told_apart(recordings: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other" / recordings[0].name
    other.parent.mkdir()
    other.write_bytes(recordings[0].read_bytes())
    text = write_report([recordings[0], other], tmp_path / "out").read_text()
    assert str(other.with_suffix("")) in text
