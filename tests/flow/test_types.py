"""What mypy says of flows: nothing of good ones, and where a body does not fit its input, that.

One run for all. A line that must be an error ends with `# error: ` and some of its words, or a code of mypy.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOWS = ROOT / "tests" / "flow" / "typed_flows.txt"
SETTINGS = """
[mypy]
strict = True
ignore_missing_imports = True
follow_imports = silent
[mypy-pyspark.*,py4j.*,numpy.*,penstock.spark.*]
follow_imports = skip
"""
MARK = re.compile(r"# error: (.+)$")
SAID = re.compile(r"^[^:]+:(\d+): error: (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says, by the line it says it of."""
    place = tmp_path_factory.mktemp("typed")
    flows = place / "typed_flows.py"
    flows.write_text(FLOWS.read_text())
    (place / "mypy.ini").write_text(SETTINGS)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", flows.name],
        cwd=place,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    found: dict[int, str] = {}
    for line, words in SAID.findall(ran.stdout):
        found[int(line)] = f"{found.get(int(line), '')}{words}\n"
    return found


def expected() -> dict[int, str]:
    marks = {number: MARK.search(line) for number, line in enumerate(FLOWS.read_text().splitlines(), start=1)}
    return {number: mark[1] for number, mark in marks.items() if mark}


def test_good_flows_pass(said: dict[int, str]) -> None:
    assert {line: words for line, words in said.items() if line not in expected()} == {}


@pytest.mark.parametrize("line", expected())
def test_bodies_that_do_not_fit_are_found(said: dict[int, str], line: int) -> None:
    assert expected()[line] in said.get(line, "nothing")
