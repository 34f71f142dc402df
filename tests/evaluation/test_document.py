"""From recordings to a document with tables, checks and pictures."""

from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from penstock.bench.harness import Check
from penstock.cli.main import app
from penstock.evaluation import wordcount
from penstock.evaluation.document import BEGIN, END, measured, part_in, parts_in, write_document
from penstock.evaluation.panels import Line, Panel, draw
from penstock.evaluation.part import Part, Picture, Table
from penstock.evaluation.registry import find_trials
from tests.evaluation.histories import interval, record
from tests.report.recordings import history, snapshot

RUN = history(snapshot(), snapshot(wait_ms=None), snapshot(replicas=5))


def panel() -> Panel:
    return Panel("mean latency [ms]", [Line("run", RUN, RUN.latencies_ms("c"))], bound_ms=10.0)


def part(*checks: Check) -> Part:
    return Part(
        title="An application",
        about="What was run.",
        tables=[Table(("figure", "ours"), [("latency", "8.0 ms")])],
        differs="the scale.",
        checks=checks,
        pictures=[Picture("a_picture", "What it shows", lambda: draw([panel()]))],
    )


def test_a_document_holds_tables_checks_and_pictures(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.md"
    checks = (Check("held", 0.95, ">=", 0.93), Check("cpu", None, "<=", 0.5))
    drawn = draw([panel()])
    pictures = [Picture("a_picture", "What it shows", lambda: drawn)]
    write_document({"an": replace(part(*checks), pictures=pictures), "another": None}, path)
    assert drawn.get_suptitle() == "What it shows, measured on Spark"
    assert drawn.axes[0].get_legend_handles_labels()[1] == ["run", "bound, 10 ms"]
    text = path.read_text()
    assert "| latency | 8.0 ms |" in text
    assert "![What it shows](pictures/a_picture.png)" in text
    assert "| held | 0.95 | >= 0.93 | ok |" in text
    assert "| cpu | not measured | <= 0.5 | missed |" in text
    assert "Not measured yet: another." in text
    assert (tmp_path / "pictures" / "a_picture.png").stat().st_size > 5_000


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.md"
    path.write_text(f"# Evaluation\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter.\n")
    write_document({"an": part()}, path)
    first = path.read_text()
    assert first.startswith("# Evaluation\n\nBefore.\n")
    assert first.endswith(f"{END}\n\nAfter.\n")
    assert "old" not in first
    write_document({"an": part()}, path)
    assert path.read_text() == first


def test_a_file_without_marks_gets_them_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.md"
    path.write_text("# Evaluation\n")
    write_document({"an": part()}, path)
    assert path.read_text().startswith(f"# Evaluation\n\n{BEGIN}\n")
    assert path.read_text().endswith(f"{END}\n")


def test_an_application_is_left_out_until_all_its_runs_are_recorded(tmp_path: Path) -> None:
    run = [interval({"splitter": 1, "counter": 1})]
    record(tmp_path / "wordcount-ds2.jsonl", run)
    assert part_in(wordcount, tmp_path) is None
    assert measured(parts_in(tmp_path)) == []
    record(tmp_path / "wordcount-dhalion.jsonl", run)
    assert [found.title for found in measured(parts_in(tmp_path))] == ["Word count: ds2 and dhalion"]


def test_the_command_names_what_is_not_there(tmp_path: Path) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["evaluate", *arguments, "--out", str(tmp_path)])
        return found.exit_code, found.output

    code, text = said("--only", "tweets")
    assert code == 2
    assert "no application of the evaluation is called 'tweets'; there are twitter, livestream" in text
    code, text = said("--only", "wordcount-ds3")
    assert code == 2
    assert "no run of the evaluation is called 'wordcount-ds3'; there are wordcount-ds2" in text
    code, text = said("--no-run")
    assert code == 2
    assert "holds no complete set of recordings" in text


def test_the_command_writes_the_document_from_what_is_recorded(tmp_path: Path) -> None:
    for policy in ("ds2", "dhalion"):
        record(tmp_path / f"wordcount-{policy}.jsonl", [interval({"splitter": 1, "counter": 1})])
    found = CliRunner().invoke(app, ["evaluate", "--no-run", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert "### Word count" in (tmp_path / "evaluation.md").read_text()


def test_runs_are_found_by_application_and_by_the_beginning_of_their_name() -> None:
    assert len(find_trials("primetest")) == 10
    assert len(find_trials("primetest-cpu")) == 5
    assert [trial.name for trial in find_trials("wordcount-ds2")] == ["wordcount-ds2"]
