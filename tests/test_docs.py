"""Every example of the documentation runs, and what it refers to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = sorted([*(ROOT / name for name in AT_THE_TOP), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def examples(page: Path) -> list[tuple[str, str]]:
    """Python blocks of a page, with what stands behind the language; `spark` marks those that start Spark."""
    found = BLOCK.findall(page.read_text())
    return [(extra.strip(), code) for language, extra, code in found if language == "python"]


def run(blocks: list[str], page: Path) -> None:
    """The blocks of a page build on each other."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, code in enumerate(blocks, start=1):
        exec(compile(code, f"{page.name}, example {number}", "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run([code for extra, code in examples(page) if extra != "spark"], page)


@pytest.mark.spark
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(extra == "spark" for extra, _ in examples(page))],
    ids=lambda page: page.name,
)
def test_examples_on_spark_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run([code for _, code in examples(page)], page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


def test_targets_that_are_documented_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)[`\n]", "\n".join(page.read_text() for page in PAGES)))
    assert named <= targets
    assert {"setup", "bridge", "demo", "test", "lint", "bench", "clean"} <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Path) -> None:
    for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        assert (ROOT / file).exists(), file
        assert f"def {name}(" in (ROOT / file).read_text() or not name, f"{file}::{name}"
