"""Building the bridge: only when needed, and refused in words that help."""

import zipfile
from pathlib import Path

import pytest

from penstock.spark.build_bridge import BridgeBuildError, build, find_javac

HELLO = "package demo; public class Hello { public static int one() { return 1; } }"


def sources(directory: Path, text: str = HELLO) -> Path:
    path = directory / "java" / "demo"
    path.mkdir(parents=True, exist_ok=True)
    (path / "Hello.java").write_text(text)
    return directory / "java"


def test_builds_once_and_again_only_after_a_change(tmp_path: Path) -> None:
    jar = tmp_path / "out" / "bridge.jar"
    build(sources(tmp_path), jar)
    first = jar.read_bytes()
    assert "demo/Hello.class" in zipfile.ZipFile(jar).namelist()
    stamp = jar.stat().st_mtime_ns
    build(sources(tmp_path), jar)
    assert jar.stat().st_mtime_ns == stamp, "nothing changed, nothing built"
    build(sources(tmp_path, HELLO.replace("1", "2")), jar)
    assert jar.read_bytes() != first
    assert [entry.name for entry in jar.parent.iterdir()] == ["bridge.jar"]


def test_compile_errors_are_shown(tmp_path: Path) -> None:
    with pytest.raises(BridgeBuildError, match=r"could not compile the Java bridge:\n(.|\n)*Hello.java"):
        build(sources(tmp_path, "package demo; nonsense"), tmp_path / "bridge.jar")


def test_an_installed_jar_needs_no_sources(tmp_path: Path) -> None:
    jar = tmp_path / "bridge.jar"
    jar.write_bytes(b"shipped")
    assert build(tmp_path / "no-java", jar) == jar
    with pytest.raises(BridgeBuildError, match="no Java sources of the bridge under"):
        build(tmp_path / "no-java", tmp_path / "missing.jar")


def test_no_javac_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BridgeBuildError, match=r"needs `javac` of a JDK 17.*scripts/install_jdk.sh"):
        find_javac({"PATH": str(tmp_path)})


def test_an_old_javac_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "bin" / "javac"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho javac 11.0.2\n")
    old.chmod(0o755)
    with pytest.raises(BridgeBuildError, match=r"needs `javac` 17 or newer, but .* says 'javac 11'"):
        find_javac({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
