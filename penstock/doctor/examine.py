"""Looks at this machine and this installation, and hands what is there to the checks."""

import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Collection
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from penstock import processes
from penstock.doctor import machine, software
from penstock.doctor.finding import Finding, wrong
from penstock.operate.place import PlaceError, check, places
from penstock.spark import build_bridge
from penstock.spark.build_bridge import BridgeBuildError
from penstock.spark.session_conf import SPARK_VERSION

EXTRAS = {
    "apps": ("vaderSentiment",),
    "arrow": ("pyarrow",),
    "bench": ("pandas", "pyarrow"),
    "dashboard": ("starlette", "uvicorn"),
    "kafka": ("confluent_kafka",),
    "livestream": ("av", "PIL"),
    "metrics": ("prometheus_client",),
    "report": ("matplotlib",),
}
_SAY_S = 20.0
_CGROUP = Path("/sys/fs/cgroup")


def examine() -> list[Finding]:
    """Everything that a flow needs, in the order in which it needs it; nothing is started or changed."""
    checks: list[Callable[[], Finding]] = [
        lambda: software.check_system(platform.system(), has_proc=(processes.PROC / "self/stat").exists()),
        lambda: software.check_python(sys.version_info[:3]),
        _java,
        lambda: software.check_pyspark(_installed("pyspark"), SPARK_VERSION),
        lambda: software.check_spark_home(os.environ.get("SPARK_HOME"), _pyspark_home()),
        lambda: software.check_real_time_mode(_spark_classes()),
        lambda: software.check_bridge(build_bridge.built_digest(build_bridge.JAR), _sources_digest()),
        _javac,
        lambda: machine.check_cores(len(os.sched_getaffinity(0))),
        lambda: machine.check_memory(_available_memory()),
        lambda: machine.check_loopback(_loopback_problem()),
        lambda: machine.check_ports(*_ephemeral_ports()),
        lambda: machine.check_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        lambda: machine.check_temporary(tempfile.gettempdir(), _writing_problem(Path(tempfile.gettempdir()))),
        lambda: machine.check_disk(tempfile.gettempdir(), shutil.disk_usage(tempfile.gettempdir()).free),
        lambda: machine.check_commands(str(places()[0]), _place_problem(places()[0])),
        lambda: software.check_extras(_missing_extras()),
    ]
    return [_carried_out(one) for one in checks]


def _carried_out(one: Callable[[], Finding]) -> Finding:
    try:
        return one()
    except OSError as problem:
        return wrong("machine", f"cannot be examined: {problem}", "look at what the message names")


def _java() -> Finding:
    path = _program("java")
    return software.check_java(path, "" if path is None else _said(path))


def _program(name: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    return (shutil.which(str(Path(home) / "bin" / name)) if home else None) or shutil.which(name)


def _said(path: str) -> str:
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False, timeout=_SAY_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout + said.stderr


def _javac() -> Finding:
    wanted = _sources_digest()
    needed = wanted is not None and build_bridge.built_digest(build_bridge.JAR) != wanted
    try:
        build_bridge.find_javac(os.environ)
        return software.check_javac(None, needed=needed)
    except BridgeBuildError as problem:
        return software.check_javac(str(problem), needed=needed)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _pyspark_home() -> str | None:
    try:
        return str(build_bridge.pyspark_home())
    except BridgeBuildError:
        return None


def _spark_classes() -> Collection[str]:
    """Of the jars that could hold what is looked for."""
    found: set[str] = set()
    home = _pyspark_home()
    for pattern in ("spark-core_*.jar", "spark-sql-api_*.jar"):
        for jar in [] if home is None else Path(home, "jars").glob(pattern):
            with zipfile.ZipFile(jar) as archive:
                found.update(archive.namelist())
    return found


def _sources_digest() -> str | None:
    """None where only the jar was installed."""
    if not build_bridge.SOURCES.is_dir():
        return None
    try:
        files = build_bridge.java_sources(build_bridge.SOURCES)
        return build_bridge.digest(build_bridge.SOURCES, files, build_bridge.pyspark_home())
    except BridgeBuildError:
        return None


def _available_memory() -> int | None:
    lines = (processes.PROC / "meminfo").read_text().splitlines()
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    limits = [left for left in (*available, _left_in_container()) if left is not None]
    return min(limits, default=None)


def _left_in_container() -> int | None:
    try:
        most = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - used) if most.isdecimal() else None


def _loopback_problem() -> str | None:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=2).close()
    except OSError as problem:
        return problem.strerror or str(problem)
    return None


def _ephemeral_ports() -> tuple[int, int]:
    first, last = (processes.PROC / "sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(first), int(last)


def _writing_problem(place: Path) -> str | None:
    try:
        with tempfile.NamedTemporaryFile(dir=place) as file:
            file.write(b"x")
            file.flush()
    except OSError as problem:
        return problem.strerror or str(problem)
    return None


def _place_problem(place: Path) -> str | None:
    try:
        check(place)
    except FileNotFoundError:
        return None  # made with the first flow
    except PlaceError as problem:
        return str(problem)
    return None


def _missing_extras() -> list[str]:
    return [extra for extra, modules in EXTRAS.items() if any(find_spec(name) is None for name in modules)]
