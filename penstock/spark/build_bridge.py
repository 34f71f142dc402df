"""Compiles the Java bridge, and what the benches compare it with, with plain `javac`.

It compiles against the jars inside the installed pyspark wheel.

Run as a file (`python penstock/spark/build_bridge.py`) or called by the build hook; it imports nothing of
Penstock, so that it works in an isolated build environment.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "java" / "src" / "main" / "java"
JAR = Path(__file__).resolve().parent / "jars" / "penstock-bridge.jar"
BENCH_SOURCES = ROOT / "java" / "src" / "bench" / "java"
BENCH_JAR = Path(__file__).resolve().parents[1] / "bench" / "jars" / "penstock-bench.jar"
JAVA_RELEASE = 17
DIGEST_ENTRY = "META-INF/penstock-bridge.sha256"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest date a zip can hold: equal sources give an equal jar


class BridgeBuildError(RuntimeError):
    """The bridge could not be compiled; the message says what to do about it."""


def find_javac(environment: Mapping[str, str]) -> str:
    """The compiler of JAVA_HOME, else the one on the path; refused when missing or too old."""
    home = environment.get("JAVA_HOME")
    candidate = str(Path(home) / "bin" / "javac") if home else "javac"
    javac = shutil.which(candidate, path=environment.get("PATH"))
    if javac is None and home:
        javac = shutil.which("javac", path=environment.get("PATH"))
    if javac is None:
        raise BridgeBuildError(
            f"the Java bridge needs `javac` of a JDK {JAVA_RELEASE} or newer and none was found in JAVA_HOME "
            "or on the path; "
            "install one with `scripts/install_jdk.sh` (or your package manager) and build again"
        )
    said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r"javac (\d+)", said.stdout + said.stderr)
    if version is None or int(version.group(1)) < JAVA_RELEASE:
        found = version.group(0) if version else "no version"
        raise BridgeBuildError(
            f"the Java bridge needs `javac` {JAVA_RELEASE} or newer, but {javac} says {found!r}; "
            "install a newer JDK with `scripts/install_jdk.sh` or point JAVA_HOME at one"
        )
    return javac


def pyspark_home() -> Path:
    """Directory of the installed pyspark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BridgeBuildError(
            "the Java bridge is compiled against pyspark 4.3.0, which is not installed here"
        )
    return Path(spec.origin).parent


def java_sources(sources: Path) -> list[Path]:
    """Every Java file of the bridge, in a fixed order."""
    found = sorted(sources.rglob("*.java"))
    if not found:
        raise BridgeBuildError(
            f"no Java sources of the bridge under {sources}; build from a complete checkout"
        )
    return found


def digest(sources: Path, files: list[Path], spark: Path) -> str:
    """Fingerprint of all that decides the jar's content: sources and the version of Spark."""
    total = hashlib.sha256((spark / "version.py").read_bytes())
    for path in files:
        total.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def built_digest(jar: Path) -> str | None:
    """Fingerprint stored in an existing jar, None without a readable jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(DIGEST_ENTRY).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def pack(classes: Path, fingerprint: str, jar: Path) -> None:
    """Write the jar beside its place and move it there, so that nobody ever reads half of one."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=jar.parent, suffix=".part")
    os.close(handle)
    entries = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", DIGEST_ENTRY: fingerprint.encode()}
    for path in sorted(classes.rglob("*.class")):
        entries[path.relative_to(classes).as_posix()] = path.read_bytes()
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    Path(unfinished).chmod(0o644)
    Path(unfinished).replace(jar)


def build(sources: Path = SOURCES, jar: Path = JAR) -> Path:
    """Compile and pack the bridge unless the jar already holds these sources; return the jar's path."""
    if not sources.is_dir() and jar.is_file():
        return jar
    files = java_sources(sources)
    spark = pyspark_home()
    fingerprint = digest(sources, files, spark)
    if built_digest(jar) == fingerprint:
        return jar
    javac = find_javac(os.environ)
    with tempfile.TemporaryDirectory(prefix="penstock-bridge-") as classes:
        command = [javac, "-nowarn", "-Xlint:-options", "--release", str(JAVA_RELEASE), "-encoding", "UTF-8"]
        command += ["-cp", str(spark / "jars" / "*"), "-d", classes, *map(str, files)]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise BridgeBuildError(
                f"javac could not compile the Java bridge:\n{outcome.stdout}{outcome.stderr}"
            )
        pack(Path(classes), fingerprint, jar)
    return jar


def build_all() -> list[Path]:
    """The bridge, and the rows and sinks of the benches, which only a bench's session loads."""
    return [build(), build(BENCH_SOURCES, BENCH_JAR)]


if __name__ == "__main__":
    try:
        print(*build_all(), sep="\n")
    except BridgeBuildError as error:
        sys.exit(f"penstock: {error}")
