"""The README outside the repository: nothing in it leads to a place that is not there."""

import re
from pathlib import Path

from hatch_readme import outside

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def test_no_relative_link_or_picture_is_left() -> None:
    shown = outside(README)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", shown) == []
    assert "docs/pictures" not in shown
    assert "running a flow (`docs/running.md`)" in shown


def test_what_leads_elsewhere_stays() -> None:
    text = "[Spark](https://spark.apache.org) and [below](#limits)"
    assert outside(text) == text
