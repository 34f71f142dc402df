"""Python, Java, Spark and the bridge: what must be installed. Pure: what is there is given."""

import re
from collections.abc import Collection

from penstock.doctor.finding import Finding, doubtful, ok, wrong

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
REAL_TIME_MODE = (
    "org/apache/spark/sql/execution/streaming/RealTimeTrigger.class",
    "org/apache/spark/shuffle/streaming/StreamingShuffleManager.class",
)
_GET_JAVA = (
    f"install a JDK {OLDEST_JAVA} or newer (apt install openjdk-17-jdk-headless, https://adoptium.net)"
    " and set JAVA_HOME to it"
)


def check_system(name: str, *, has_proc: bool) -> Finding:
    """Workers, their limits and their CPU time are Linux's."""
    if name == "Linux" and has_proc:
        return ok("system", name)
    found = name if name != "Linux" else "Linux without /proc"
    return wrong("system", found, "run flows on Linux with /proc mounted, for example in a container")


def check_python(version: tuple[int, int, int]) -> Finding:
    """Of the interpreter that runs this, and the workers."""
    shown = ".".join(map(str, version))
    if version[:2] >= OLDEST_PYTHON:
        return ok("Python", shown)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return wrong("Python", shown, f"install Penstock with Python {oldest} or newer")


def java_release(said: str) -> int | None:
    """From what `java -version` or `javac -version` says; None if that is no version.

    >>> java_release('openjdk version "17.0.15" 2025-04-15'), java_release("javac 21"), java_release("what?")
    (17, 21, None)
    """
    found = re.search(r'(?:version "|javac )(\d+)(?:\.(\d+))?', said)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second else first


def check_java(path: str | None, said: str) -> Finding:
    """Spark runs on it."""
    if path is None:
        return wrong("Java", "none in JAVA_HOME or on the path", _GET_JAVA)
    release = java_release(said)
    if release is None:
        return wrong("Java", f"{path} tells no version", _GET_JAVA)
    if release < OLDEST_JAVA:
        return wrong("Java", f"{release}, {path}", _GET_JAVA)
    return ok("Java", f"{release}, {path}")


def check_javac(problem: str | None, *, needed: bool) -> Finding:
    """Only for building the bridge: of no use where its jar came in a wheel, or is as new as its sources."""
    if problem is None:
        return ok("javac", "there")
    if needed:
        return wrong("javac", problem, _GET_JAVA)
    return ok("javac", "none, and none is needed: the bridge is built")


def check_pyspark(version: str | None, wanted: str) -> Finding:
    """Real-time mode and the streaming shuffle are used through internals of one version."""
    if version == wanted:
        return ok("Spark", version)
    return wrong("Spark", version or "none", f"pip install pyspark=={wanted}")


def check_spark_home(home: str | None, installed: str | None) -> Finding:
    """A Spark of another place would be started instead of the one in pyspark."""
    if not home or home == installed:
        return ok("SPARK_HOME", "not set" if not home else "that of pyspark")
    return wrong("SPARK_HOME", f"{home}, and not pyspark's own", "run `unset SPARK_HOME`")


def check_real_time_mode(classes: Collection[str]) -> Finding:
    """Whether Spark's jars hold what flows run on."""
    missing = [name for name in REAL_TIME_MODE if name not in classes]
    if not missing:
        return ok("real-time mode", "in Spark's jars")
    names = ", ".join(name.rpartition("/")[2].removesuffix(".class") for name in missing)
    return wrong(
        "real-time mode",
        f"Spark's jars lack {names}",
        "install Spark from PyPI: pip install --force-reinstall pyspark",
    )


def check_bridge(built: str | None, wanted: str | None) -> Finding:
    """By the fingerprint of its sources: in the jar, and of the sources of now (None: not a checkout)."""
    if built is None:
        remedy = "run `make bridge`" if wanted else "install Penstock from a wheel, or from a checkout"
        return wrong("bridge", "its jar is missing or unreadable", remedy)
    if wanted is None:
        return ok("bridge", "built")
    if built != wanted:
        return wrong("bridge", "its jar is older than its sources, or of another Spark", "run `make bridge`")
    return ok("bridge", "built from these sources")


def check_extras(missing: Collection[str]) -> Finding:
    """What only some commands need."""
    if not missing:
        return ok("extras", "all")
    names = ",".join(sorted(missing))
    return doubtful(
        "extras", f"without {names.replace(',', ', ')}", f"pip install 'penstock[{names}]', if you need them"
    )
