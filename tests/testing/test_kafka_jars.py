"""The jars of a broker are those that were pinned, or none."""

import hashlib
from pathlib import Path

import pytest

from penstock.testing import kafka_jars
from penstock.testing.kafka_jars import Jar, JarsError, cached_jars, check, pinned

CONTENT = b"a jar"
GOOD = Jar(hashlib.sha256(CONTENT).hexdigest(), "org.example", "thing", "1.0")


def test_every_jar_is_pinned_by_a_version_and_a_digest() -> None:
    jars = pinned()
    assert any((jar.artifact, jar.version) == ("kafka_2.13", kafka_jars.KAFKA) for jar in jars)
    assert all(len(jar.sha256) == 64 for jar in jars)
    assert len({jar.file for jar in jars}) == len(jars)


def test_a_jar_with_another_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / GOOD.file).write_bytes(CONTENT)
    check(tmp_path, [GOOD])
    (tmp_path / GOOD.file).write_bytes(CONTENT + b"!")
    with pytest.raises(JarsError, match=r"thing-1\.0\.jar has the digest [0-9a-f]{64}, and [0-9a-f]{64} was"):
        check(tmp_path, [GOOD])


def test_a_jar_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(JarsError, match=r"thing-1\.0\.jar was not fetched"):
        check(tmp_path, [GOOD])


def test_what_cannot_be_fetched_leaves_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with pytest.raises(JarsError, match=r"cannot be fetched: .*no-java"):
        cached_jars()
    assert list(tmp_path.iterdir()) == []


def test_the_cache_is_used_without_asking_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setattr(kafka_jars, "java", lambda: pytest.fail("nothing is to be fetched"))
    place = tmp_path / f"kafka-{kafka_jars.KAFKA}"
    place.mkdir()
    assert cached_jars() == place
