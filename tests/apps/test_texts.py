"""Where the texts come from."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.sentiment import sentiment
from penstock.apps.texts import VARIABLE, TextsError, checked_texts, read_texts, text

LINES = "1\t2.7\tSo lucky &amp; blessed.\n2\t-1.4\tDie die die\n\n3\t0\tA phone\n"
TEXTS = ("So lucky & blessed.", "Die die die", "A phone")


@given(st.integers(0, 10**6), st.integers(0, 5))
def test_a_text_is_the_same_whenever_it_is_asked_for(number: int, seed: int) -> None:
    assert text(number, seed, None) == text(number, seed, None)


def test_made_up_texts_differ() -> None:
    assert len({text(number, 0, None) for number in range(500)}) > 300


@pytest.mark.parametrize("name", ["tweets.tsv", "tweets.tsv.gz"])
def test_texts_are_read_from_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES.encode()) if name.endswith(".gz") else LINES.encode())
    assert read_texts(str(path)) == TEXTS
    assert {text(number, 0, str(path)) for number in range(50)} == set(TEXTS)


def test_the_file_is_given_or_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, named = tmp_path / "given.tsv", tmp_path / "named.tsv"
    for path in (given, named):
        path.write_text(LINES)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert checked_texts(None) is None
    monkeypatch.setenv(VARIABLE, str(named))
    assert checked_texts(None) == str(named)
    assert checked_texts(str(given)) == str(given)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.tsv", None, "missing.tsv cannot be read: "),
        ("empty.tsv", b"\n\n", "empty.tsv has no text in it; it needs one a line, in the last column"),
        ("torn.tsv.gz", gzip.compress(LINES.encode())[:-12], "torn.tsv.gz cannot be read: "),
        ("plain.tsv.gz", LINES.encode(), "plain.tsv.gz cannot be read: "),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TextsError, match=message):
        checked_texts(str(tmp_path / name))


@pytest.mark.parametrize(
    ("words", "feeling"),
    [("I love it!", "positive"), ("I hate it", "negative"), ("on the way to school", "neutral")],
)
def test_sentiments(words: str, feeling: str) -> None:
    assert sentiment(words) == feeling
