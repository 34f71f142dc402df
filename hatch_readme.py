"""Metadata hook: the README as package indexes show it, where links into the repository lead nowhere."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def outside(text: str) -> str:
    """The text without pictures of the repository; links become the paths of what they lead to.

    >>> outside("See [running](docs/running.md).")
    'See running (`docs/running.md`).'
    """
    return _LINK.sub(r"\1 (`\2`)", _IMAGE.sub("", text))


class ReadmeHook(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text)}
