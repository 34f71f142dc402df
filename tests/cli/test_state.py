"""`penstock state` on a checkpoint."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.wire.keys import key_group
from tests.epochs.test_boundary import World

runner = CliRunner()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two replicas and four keys after batch 1; batch 2 was written and never committed."""
    place = tmp_path_factory.mktemp("kept")
    world = World(place / "epochs")
    world.start(2)
    for item in (1, 2, 2, 3, 14):
        world.take(item)
    world.end_batch(is_committed=True)
    world.take(3)
    world.end_batch(is_committed=True)
    world.take(9)
    world.end_batch(is_committed=False)
    (place / "commits").mkdir()
    for batch in (0, 1):
        (place / "commits" / str(batch)).touch()
    (place / "commits" / ".2.crc").touch()
    return place


def shown(*arguments: object) -> str:
    result = runner.invoke(app, ["state", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_summary_by_task(checkpoint: Path) -> None:
    words = shown(checkpoint)
    assert "state after batch 1" in words
    row = next(line for line in words.splitlines() if "counts" in line)
    assert [cell.strip() for cell in row.split("│")[2:5]] == ["2", "4", "8"]


def test_the_values_of_a_task_and_of_a_key(checkpoint: Path) -> None:
    assert shown(checkpoint, "counts", 2) == "2  seen = 2\n2  silence = 1000000000\n"
    lines = [json.loads(line) for line in shown(checkpoint, "counts", "--json").splitlines()]
    seen = {line["key"]: line["value"] for line in lines if line["name"] == "seen"}
    assert seen == {"1": "1", "2": "2", "3": "2"}
    totals = {line["replica"]: int(line["value"]) for line in lines if line["name"] == "total"}
    assert (sorted(totals), sum(totals.values())) == ([0, 1], 6)
    group = key_group(2)
    assert shown(checkpoint, "--group", group) == shown(checkpoint, "counts", "--group", group)
    assert shown(checkpoint, "counts", "--group", group) == shown(checkpoint, "counts", 2)
    assert shown(checkpoint, "counts", "--limit", 2).endswith("and 6 more; see --limit\n")


def test_what_is_not_there_is_told(checkpoint: Path, tmp_path: Path) -> None:
    for arguments, words in (
        ([checkpoint, "others"], 'has no state of task "others"; it has that of counts'),
        ([checkpoint, "counts", "77"], 'knows no key 77 of task "counts" after batch 1'),
        ([checkpoint, "--group", key_group(77)], f"knows no key of group {key_group(77)} after batch 1"),
        ([checkpoint, "--group", 4096], "less than or equal to 4095"),
        ([tmp_path], "has no committed state"),
    ):
        result = runner.invoke(app, ["state", *map(str, arguments)])
        assert result.exit_code == 2
        assert words in " ".join(result.stderr.split())
