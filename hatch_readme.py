"""Metadata hook: addresses of the repository, and the README as package indexes show it.

Links of the README lead into the repository. Where that has a public address, `PENSTOCK_REPOSITORY` names it
while a wheel is built: the links lead there, and the metadata have URLs. Otherwise links become the paths of
what they lead to, and there are no URLs: none is made up.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "PENSTOCK_REPOSITORY"

_IMAGE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]*)\)")


def outside(text: str, repository: str | None = None) -> str:
    """The text with links to the repository's address; without one, paths in their place and no pictures.

    >>> outside("See [running](docs/running.md).")
    'See running (`docs/running.md`).'
    >>> outside("See [running](docs/running.md).", "https://example.org/penstock")
    'See [running](https://example.org/penstock/blob/main/docs/running.md).'
    """
    if repository is None:
        return _LINK.sub(r"\1 (`\2`)", _IMAGE.sub("", text))
    linked = _LINK.sub(rf"[\1]({repository}/blob/main/\2)", text)
    return _PICTURE.sub(rf"![\1]({repository}/raw/main/\2)", linked)


def urls(repository: str) -> dict[str, str]:
    """What the metadata say of where things are."""
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def given_repository() -> str | None:
    """The public address, if somebody has said one; anything but https is refused."""
    said = os.environ.get(REPOSITORY, "").rstrip("/")
    if said and not said.startswith("https://"):
        raise ValueError(
            f"{REPOSITORY}={said} is no address of a repository; give one that begins with https://"
        )
    return said or None


class ReadmeHook(MetadataHookInterface):
    """Sets the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = given_repository()
        metadata["readme"] = {"content-type": "text/markdown", "text": outside(text, repository)}
        metadata["urls"] = {} if repository is None else urls(repository)
