"""Texts like those people post: the labelled tweets of VADER's authors if at hand, else made-up ones.

The tweets are in the source distribution of vaderSentiment (not in its wheel), a file of `number, score,
text` separated by tabs; it may be packed with gzip.
"""

import functools
import gzip
import html
import os
import random
import zlib
from pathlib import Path

VARIABLE = "PENSTOCK_TWEETS"
OPENINGS = (
    "I love", "so happy about", "great news about", "enjoying", "can't wait for", "thanks for",
    "I hate", "so sad about", "terrible news about", "sick of", "worried about", "don't like",
    "just saw", "reading about", "waiting for", "on the way to", "heard about", "here comes",
)  # fmt: skip
SUBJECTS = (
    "the movie", "my favourite song", "the new book", "the football team", "this game", "the race",
    "lunch with friends", "dinner at home", "that pizza", "work", "my boss", "the office party",
    "school", "the exam", "my phone", "the new laptop", "the internet", "the election",
    "the president", "the weather", "the rain", "the traffic", "my family", "the baby", "her birthday",
)  # fmt: skip
ENDINGS = ("", " today", " tonight", " again", "!", "!!!", " :)", " :(", " lol", "...")


class TextsError(ValueError):
    """A file of texts cannot be used; the message names it."""


def checked_texts(given: str | None) -> str | None:
    """The file that was given or that PENSTOCK_TWEETS names, if it can be read; None for made-up texts."""
    path = given or os.environ.get(VARIABLE)
    if not path:
        return None
    path = str(Path(path).absolute())
    read_texts(path)
    return path


@functools.cache
def read_texts(path: str) -> tuple[str, ...]:
    """The last column of every line."""
    try:
        content = Path(path).read_bytes()
        lines = (gzip.decompress(content) if path.endswith(".gz") else content).decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TextsError(f"file of texts {path} cannot be read: {error}") from None
    found = [html.unescape(line.rsplit("\t", 1)[-1]).strip() for line in lines]
    if not any(found):
        raise TextsError(f"file of texts {path} has no text in it; it needs one a line, in the last column")
    return tuple(text for text in found if text)


def text(number: int, seed: int, path: str | None) -> str:
    """Text number `number`, the same whenever it is asked for; drawn from the file if there is one."""
    draw = random.Random(f"text/{seed}/{number}")
    if path is not None:
        return draw.choice(read_texts(path))
    return f"{draw.choice(OPENINGS)} {draw.choice(SUBJECTS)}{draw.choice(ENDINGS)}"
