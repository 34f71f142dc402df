"""The jars of a Kafka broker, fetched once from Maven Central into a cache, each checked against its digest.

Ivy, which Spark brings along, fetches them: nothing but Java and pyspark is needed. `kafka_jars.txt` pins
every one of them. Other jars that are pinned by such a list can be had the same way.
"""

import hashlib
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

KAFKA: Final = "4.1.1"
_LIST: Final = Path(__file__).with_name("kafka_jars.txt")
_PATIENCE_S: Final = 300.0
# Ivy's name for Maven Central. All is pinned here, so it need not read what the jars say of each other.
_SETTINGS: Final = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


class JarsError(RuntimeError):
    """Jars cannot be had, or are not those that were pinned."""


class Jar(NamedTuple):
    """One file of Maven Central."""

    sha256: str
    group: str
    artifact: str
    version: str

    @property
    def file(self) -> str:
        """Its name in the cache."""
        return f"{self.artifact}-{self.version}.jar"


def pinned(listed: Path = _LIST) -> list[Jar]:
    """All jars of a list; without one, those that a broker needs."""
    rows = [line.split() for line in listed.read_text().splitlines() if line and not line.startswith("#")]
    return [Jar(digest, *name.split(":")) for digest, name in rows]


def cached_jars(name: str = f"kafka-{KAFKA}", listed: Path = _LIST) -> Path:
    """The directory that holds the jars of a list; they are fetched if it is not there yet.

    It is in PENSTOCK_CACHE, or in a user's cache directory (XDG_CACHE_HOME).
    """
    place = cache() / name
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=place.parent) as scratch:
        fetched = Path(scratch) / "jars"
        _fetch(Path(scratch), fetched, name, pinned(listed))
        check(fetched, pinned(listed))
        try:
            fetched.rename(place)
        except OSError:  # another process was faster
            if not place.is_dir():
                raise
    return place


def check(directory: Path, jars: list[Jar]) -> None:
    """Refuse a directory in which one is missing or another one than was pinned."""
    for jar in jars:
        path = directory / jar.file
        if not path.exists():
            raise JarsError(f"{jar.file} was not fetched; {directory} holds {sorted(_names(directory))}")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != jar.sha256:
            raise JarsError(f"{jar.file} has the digest {found}, and {jar.sha256} was pinned")


def java() -> str:
    """The Java to run: that of JAVA_HOME, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def cache() -> Path:
    """What was fetched once is kept there."""
    own = os.environ.get("PENSTOCK_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _names(directory: Path) -> Iterator[str]:
    return (path.name for path in directory.glob("*"))


def _fetch(scratch: Path, into: Path, name: str, jars: list[Jar]) -> None:
    wanted, settings = scratch / "ivy.xml", scratch / "settings.xml"
    wanted.write_text(_ivy_file(jars))
    settings.write_text(_SETTINGS)
    pattern = f"{into}/[artifact]-[revision].[ext]"
    command = [
        java(), "-jar", str(_ivy()), "-error", "-cache", str(scratch / "cache"), "-settings", str(settings),
        "-ivy", str(wanted), "-types", "jar", "-retrieve", pattern,
    ]  # fmt: skip
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise JarsError(f"the jars of {name} cannot be fetched: {problem}") from None
    if ran.returncode:
        last = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-5:])
        raise JarsError(f"the jars of {name} cannot be fetched: {last}")


def _ivy_file(jars: list[Jar]) -> str:
    """What Ivy is asked for: these and nothing that they name in turn."""
    wanted = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="org.penstock" module="broker"/>\n'
        f"  <dependencies>\n{wanted}\n  </dependencies>\n"
        "</ivy-module>\n"
    )


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    found = [] if spec is None or spec.origin is None else Path(spec.origin).parent.glob("jars/ivy-*.jar")
    for jar in found:
        return jar
    raise JarsError("jars cannot be fetched: pyspark, which brings Ivy, is not installed")
