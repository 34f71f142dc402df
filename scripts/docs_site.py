"""Hooks of mkdocs: what the site has and the pages in `docs/` have not.

The reference of commands is made from the code, by Typer. Changelog, CONTRIBUTING and SECURITY stand at
the top of the repository and become pages. Fences that tests tell apart (`python spark`) become plain ones.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = "<!-- commands -->"
FROM_ROOT = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}

# What was measured, what has changed and what is next: found after the pages that explain.
LOGS = ("arena", "bench", "changelog", "epochs", "evaluation", "measurements_", "reliability", "roadmap")

_FENCE = re.compile(r"^```python spark$", re.MULTILINE)
_LIST_OF_COMMANDS = re.compile(r"^\*\*Commands\*\*:\n.*?(?=^## )", re.MULTILINE | re.DOTALL)


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages whose text is elsewhere in the repository."""
    for name, page in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:  # noqa: ARG001
    """The text of a page as the site shows it."""
    if page.file.src_uri.startswith(LOGS):
        page.meta["search"] = {"boost": 0.2}
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    return inside_the_site(_FENCE.sub("```python", markdown))


def inside_the_site(text: str) -> str:
    """Links of the repository that lead to other places in the site.

    >>> inside_the_site("[changes](../CHANGELOG.md), [running](docs/running.md)")
    '[changes](changelog.md), [running](running.md)'
    """
    for name, page in FROM_ROOT.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({page}", text)
    return re.sub(r"\]\((?:\.\./)?docs/", "](", text)


def commands() -> str:
    """Every command with its arguments and options, as Typer prints them for documents."""
    asked = [sys.executable, "-m", "typer", "penstock.cli.main", "utils", "docs", "--name", "penstock"]
    made = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # The page has a title and a table of contents of its own.
    return _LIST_OF_COMMANDS.sub("", made).partition("\n")[2]
