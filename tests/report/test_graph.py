"""Pictures of flows: nothing covers anything else, and both formats can be opened."""

import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from PIL import Image
from typer.testing import CliRunner

import penstock as ps
from penstock.apps.primetest import flow as primetest
from penstock.cli.main import app
from penstock.flow import Flow
from penstock.report.errors import PictureError
from penstock.report.graph import draw_graph
from penstock.report.graph_arrangement import arrange
from penstock.report.graph_labels import constraint_words, stream_words, task_words
from tests.flow.random_flows import Partitioned, flows, ignore


def branches() -> Flow:
    flow = Flow("branches")
    source = flow.source(Partitioned(2), name="source")
    left = source.by_key(hash).batched("5 ms").map(ignore, name="left", parallelism=ps.elastic(1, 4))
    right = source.broadcast().coded("bytes").map(ignore, name="right")
    joined = flow.map(ignore, left.round_robin(), right, name="joined")
    joined.forward().sink(ignore, name="sink")
    flow.constrain("20 ms", ["source->left", "left", "left->joined"], name="quick")
    return flow


@given(flows())
@settings(max_examples=50)
def test_boxes_are_apart_and_inside(flow: Flow) -> None:
    sheet = arrange(flow.graph())
    assert not [pair for pair in combinations(sheet.boxes.values(), 2) if pair[0].meets(pair[1])]
    for box in sheet.boxes.values():
        assert box.width / 2 < box.x < sheet.width - box.width / 2
        assert box.height / 2 < box.y < sheet.height - box.height / 2


@pytest.mark.parametrize("flow", [branches(), primetest()], ids=lambda flow: str(flow.name))
def test_words_cover_neither_boxes_nor_other_words(flow: Flow) -> None:
    sheet = arrange(flow.graph())
    everything = [*sheet.labels.values(), *sheet.boxes.values()]
    assert not [pair for pair in combinations(everything, 2) if pair[0].meets(pair[1])]


def test_what_the_words_say() -> None:
    graph = branches().graph()
    sheet = arrange(graph)
    said = {s.name: stream_words(s, several_outputs=False).lines for s in graph.streams}
    assert said["source->left"] == ("by key hash", "batches of 5 ms")
    assert said["source->right"] == ("broadcast", "bytes")
    assert said["left->joined"] == ("round robin",)
    assert said["joined->sink"] == ("forward",)
    assert task_words(graph.task("left"), sheet.layout).lines == ("1 to 4 replicas, pool 4",)
    assert task_words(graph.task("source"), sheet.layout).lines == ("2 replicas",)
    assert constraint_words(graph.constraints[0]).text == "quick: mean of at most 20 ms in any 5 s"


def test_both_formats(tmp_path: Path) -> None:
    for name in ("flow.svg", "flow.png", "again.svg"):
        draw_graph(branches().graph(), str(tmp_path / "new" / name))
    svg = (tmp_path / "new" / "flow.svg").read_text()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert svg == (tmp_path / "new" / "again.svg").read_text()
    assert f"<!-- Flow {branches().graph().name} -->" in svg
    with Image.open(tmp_path / "new" / "flow.png") as picture:
        assert picture.width > picture.height > 100
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 10


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        PictureError, match=r'"flow.gif" ends in neither .svg nor .png; choose one of the two'
    ):
        draw_graph(branches().graph(), Path("flow.gif"))


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "primetest.svg"
    done = CliRunner().invoke(app, ["graph", "primetest", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_text().startswith("<?xml")
    chosen = ["graph", "livestream", "--option", "pipelines=3", "--out", str(tmp_path / "livestream.svg")]
    assert CliRunner().invoke(app, chosen).exit_code == 0
    refused = CliRunner().invoke(app, ["graph", "primetest", "--out", "x.gif"])
    assert refused.exit_code == 2
    assert "ends in neither .svg nor .png" in refused.stderr
    unknown = CliRunner().invoke(app, ["graph", "nothing", "--out", str(out)])
    assert unknown.exit_code == 2
    assert "'nothing' is neither an application" in unknown.stderr
