"""From results of trials to the table of a page."""

from pathlib import Path

from penstock.bench.harness import Check
from penstock.faults.document import BEGIN, END, keep, read, write_table
from penstock.faults.row import Outcome, Ran, Row
from tests.faults.test_row import nothing


def ran(name: str, *outcomes: Outcome, skipped: str = "", bar: float | None = 3.0) -> Ran:
    return Ran(Row(name, f"about {name}", "local", nothing, bar), 5, outcomes, skipped)


def outcome(lost: int, duplicated: int, recovered_s: float | None) -> Outcome:
    figures = {"items": 2000, "duplicated": duplicated, "took_s": 60.0}
    return Outcome(figures, [Check("lost", lost, "==", 0)], recovered_s)


def test_the_table_tells_what_was_lost_twice_and_when_the_bound_held_again(tmp_path: Path) -> None:
    results, page = tmp_path / "faults.jsonl", tmp_path / "page.md"
    page.write_text("# Page\n\nBefore.\n")
    keep(ran("good", outcome(0, 1200, 1.0), outcome(0, 3, 2.0), outcome(0, 0, 1.5)).result(), results)
    keep(ran("bad", outcome(0, 0, 0.5), outcome(4, 0, None)).result(), results)
    keep(ran("absent", skipped="no namespaces").result(), results)
    write_table(read(results), ["good", "bad", "absent", "untried"], page)
    text = page.read_text()
    assert text.startswith(f"# Page\n\nBefore.\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n")
    assert "| `good` | about good | 3 | 0 | 1,200 of 2,000 | 1.5 s (at most 2 s), bar 3 s | ok |" in text
    assert "| `bad` | about bad | 2 | 4 | 0 | never | **missed**: lost, bound holds again, median s |" in text
    assert "| `absent` | about absent | 0 | - | - | - | skipped: no namespaces |" in text
    assert "| `untried` | - | 0 | - | - | - | not measured |" in text
    assert "Seed 5; 5 min of trials, some of them side by side." in text


def test_a_row_that_is_run_again_replaces_its_result(tmp_path: Path) -> None:
    results = tmp_path / "faults.jsonl"
    keep(ran("one", outcome(1, 0, 0.0)).result(), results)
    keep(ran("two", outcome(0, 0, 0.0), bar=None).result(), results)
    keep(ran("one", outcome(0, 0, 0.0)).result(), results)
    assert [(result.row, result.ok) for result in read(results)] == [("two", True), ("one", True)]
