"""What a stranger gets: the files that images and archives name are there, and what they say agrees."""

import re
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_what_the_image_copies_is_there() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert {"requirements.lock", "pyproject.toml", "java", "penstock"} <= set(names)
    assert [name for name in names if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert set(names) & set(ignored) == set()


def test_the_image_has_the_versions_of_the_lock_file() -> None:
    script = re.search(r"sed '([^']+)'", DOCKERFILE)
    assert script is not None
    made = subprocess.run(
        ["sed", script[1], str(ROOT / "requirements.lock")], capture_output=True, text=True, check=True
    ).stdout
    pins = [Requirement(line) for line in made.splitlines() if line.strip()]
    locked = re.findall(r"^[A-Za-z0-9._-]+==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert len(pins) == len(locked) > 50
    assert all(str(pin.specifier).startswith("==") for pin in pins)


def test_the_extras_of_the_image_are_there() -> None:
    named = re.search(r"\.whl\)\[([a-z,]+)\]", DOCKERFILE)
    assert named is not None
    assert set(named[1].split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_what_the_archive_has_is_there() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name.lstrip("/")).exists()] == []
    assert {"/mkdocs.yml", "/CONTRIBUTING.md", "/SECURITY.md", "/Dockerfile"} <= set(included)


def test_pythons_that_are_promised_are_those_that_the_wheel_is_checked_with() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    checked = re.search(r"\$\{PYTHONS:-([^}]*)\}", (ROOT / "scripts/check_wheel.sh").read_text())
    assert checked is not None
    assert promised == checked[1].split()
    assert PROJECT["project"]["requires-python"] == f">={promised[0]}"
