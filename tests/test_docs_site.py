"""The site: it is built without a complaint, and its references hold what the code has."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

import penstock
import penstock.testing
from penstock.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once; pages and anchors that links name and that are not there end it."""
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: penstock[docs]")
    place = tmp_path_factory.mktemp("site")
    asked = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    built = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return place


def text_of(page: Path) -> str:
    """What a page says, without its markup."""
    parser = _Text()
    parser.feed(page.read_text())
    return "".join(parser.said)


def test_every_command_is_in_the_reference(site: Path) -> None:
    page = text_of(site / "reference_commands.html")
    assert [name for name in COMMANDS if f"$ penstock {name} " not in page] == []
    assert "Directory of the commits; needed to go on later." in page


def test_the_reference_of_python_has_docstrings(site: Path) -> None:
    page = text_of(site / "reference_api.html")
    assert "A dataflow of Python tasks with the latency constraints it must keep." in page
    assert "All items with the same key(item) to the same replica." in page


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+stylesheet[^>]+href=["']?(?:https?:)?//"""
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert [page.name for page in pages if loaded.search(page.read_text())] == []


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference_api.md").read_text()
    named = re.findall(r"^::: (\S+)$", page, re.MULTILINE)
    public = [(module, name) for module in (penstock, penstock.testing) for name in module.__all__]
    assert sorted(name.rpartition(".")[2] for name in named) == sorted(name for _, name in public)
    # A function may have the name of its module; what is named must be what can be imported.
    meant = [pkgutil.resolve_name(name) for name in named]
    assert [name for module, name in public if getattr(module, name) not in meant] == []


def test_every_extra_is_documented() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    assert (
        set(re.findall(r"^\| `penstock\[(\w+)\]` \|", (ROOT / "docs/install.md").read_text(), re.MULTILINE))
        == extras
    )
    in_all = set(re.search(r"\[(.*)\]", project["optional-dependencies"]["all"][0])[1].split(","))  # type: ignore[index]
    assert in_all == extras - {"all", "bench", "dev", "docs"}
