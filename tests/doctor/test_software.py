"""What must be installed: each check on what is right, and on what is not."""

import pytest

from penstock.doctor.software import (
    REAL_TIME_MODE,
    check_bridge,
    check_extras,
    check_java,
    check_javac,
    check_pyspark,
    check_python,
    check_real_time_mode,
    check_spark_home,
    check_system,
    java_release,
)


def test_the_system_is_linux_with_proc() -> None:
    assert check_system("Linux", has_proc=True).state == "ok"
    assert check_system("Darwin", has_proc=False).state == "wrong"
    assert check_system("Linux", has_proc=False).found == "Linux without /proc"


def test_python_is_new_enough() -> None:
    assert check_python((3, 11, 0)).state == "ok"
    old = check_python((3, 10, 9))
    assert (old.state, old.found) == ("wrong", "3.10.9")
    assert old.remedy == "install Penstock with Python 3.11 or newer"


@pytest.mark.parametrize(
    ("said", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("javac 17.0.1", 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_releases_of_java_are_read(said: str, release: int | None) -> None:
    assert java_release(said) == release


def test_java_is_there_tells_its_version_and_is_new_enough() -> None:
    assert check_java("/usr/bin/java", 'openjdk version "17.0.15"').state == "ok"
    for path, said in ((None, ""), ("/usr/bin/java", "no runtime"), ("/j", 'java version "1.8.0_202"')):
        found = check_java(path, said)
        assert found.state == "wrong"
        assert found.remedy is not None
        assert "JDK 17 or newer" in found.remedy


def test_a_compiler_is_missed_only_where_the_bridge_must_be_built() -> None:
    assert check_javac(None, needed=True).state == "ok"
    assert check_javac("none was found", needed=False).state == "ok"
    missed = check_javac("none was found", needed=True)
    assert (missed.state, missed.found) == ("wrong", "none was found")


def test_spark_is_the_one_version() -> None:
    assert check_pyspark("4.3.0", "4.3.0").state == "ok"
    for version in (None, "4.2.0"):
        assert check_pyspark(version, "4.3.0").remedy == "pip install pyspark==4.3.0"


def test_another_spark_home_is_wrong() -> None:
    assert check_spark_home(None, "/site/pyspark").state == "ok"
    assert check_spark_home("/site/pyspark", "/site/pyspark").state == "ok"
    assert check_spark_home("/opt/spark", "/site/pyspark").remedy == "run `unset SPARK_HOME`"


def test_real_time_mode_is_in_the_jars() -> None:
    assert check_real_time_mode(REAL_TIME_MODE).state == "ok"
    assert check_real_time_mode(REAL_TIME_MODE[:1]).found == "Spark's jars lack StreamingShuffleManager"


@pytest.mark.parametrize(
    ("built", "wanted", "state", "remedy"),
    [
        ("a", "a", "ok", None),
        ("a", None, "ok", None),
        ("a", "b", "wrong", "run `make bridge`"),
        (None, "b", "wrong", "run `make bridge`"),
        (None, None, "wrong", "install Penstock from a wheel, or from a checkout"),
    ],
)
def test_the_bridge_is_built_and_fresh(
    built: str | None, wanted: str | None, state: str, remedy: str | None
) -> None:
    found = check_bridge(built, wanted)
    assert (found.state, found.remedy) == (state, remedy)


def test_missing_extras_are_named_and_not_wrong() -> None:
    assert check_extras([]).state == "ok"
    found = check_extras(["report", "apps"])
    assert (found.state, found.found) == ("doubtful", "without apps, report")
    assert found.remedy == "pip install 'penstock[apps,report]', if you need them"
