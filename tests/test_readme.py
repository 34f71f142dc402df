"""The README outside the repository: nothing in it leads to a place that is not there."""

import re
from pathlib import Path

import pytest

from hatch_readme import given_repository, outside, urls

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
ADDRESS = "https://example.org/penstock"


def test_no_relative_link_or_picture_is_left() -> None:
    shown = outside(README)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", shown) == []
    assert "docs/pictures" not in shown
    assert "running a flow (`docs/running.md`)" in shown


def test_with_an_address_links_and_pictures_lead_to_files_that_are_there() -> None:
    shown = outside(README, ADDRESS)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", shown) == []
    led_to = re.findall(rf"{ADDRESS}/(?:blob|raw)/main/([^)#]+)", shown)
    assert len(led_to) > 20
    assert [path for path in led_to if not (ROOT / path).exists()] == []
    assert f"]({ADDRESS}/raw/main/docs/pictures/demo.png)" in shown


def test_what_leads_elsewhere_stays() -> None:
    text = "[Spark](https://spark.apache.org) and [below](#limits)"
    assert outside(text) == text
    assert outside(text, ADDRESS) == text


def test_the_address_is_what_was_said_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_REPOSITORY", raising=False)
    assert given_repository() is None
    monkeypatch.setenv("PENSTOCK_REPOSITORY", f"{ADDRESS}/")
    assert given_repository() == ADDRESS
    assert urls(ADDRESS)["Changelog"] == f"{ADDRESS}/blob/main/CHANGELOG.md"
    monkeypatch.setenv("PENSTOCK_REPOSITORY", "git@example.org:penstock")
    with pytest.raises(ValueError, match="give one that begins with https://"):
        given_repository()
