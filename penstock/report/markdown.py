"""Figures in pages of Markdown: tables, and the part of a page between two marks."""

from collections.abc import Sequence
from pathlib import Path


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A header, the line below it, and the rows.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [header, ["---" for _ in header], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def put_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of a file; at its end, marks included, if it has none."""
    before, _, rest = (path.read_text() if path.exists() else "").partition(begin)
    after = rest.partition(end)[2] or "\n"
    if before and not rest:
        before = before.rstrip("\n") + "\n\n"
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
