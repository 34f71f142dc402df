"""The compose file of docs: a broker takes its settings, and nobody but this machine reaches it."""

import re
import subprocess
from pathlib import Path

from penstock.testing import KafkaBroker
from penstock.testing.kafka_jars import KAFKA, cached_jars, java

FILE = (Path(__file__).resolve().parents[1] / "docs" / "kafka_compose.yml").read_text()
SETTINGS = {
    name.lower().replace("_", "."): value
    for name, value in re.findall(r'^      KAFKA_(\w+): "([^"]*)"$', FILE, re.MULTILINE)
}


def test_it_is_the_version_that_tests_use_and_listens_on_loopback_alone() -> None:
    assert f"image: apache/kafka:{KAFKA}\n" in FILE
    assert re.findall(r'^      - "(\S+:\d+)"$', FILE, re.MULTILINE) == ["127.0.0.1:9092:9092"]
    assert SETTINGS["advertised.listeners"] == "CLIENTS://127.0.0.1:9092"
    assert FILE.count("KAFKA_") == len(SETTINGS)


def test_a_broker_takes_its_settings(broker: KafkaBroker, tmp_path: Path) -> None:
    """As far as formatting its storage goes, which reads and checks all of them."""
    settings = tmp_path / "server.properties"
    own = {**SETTINGS, "log.dirs": str(tmp_path / "data")}
    settings.write_text("\n".join(f"{name}={value}" for name, value in own.items()))
    format_ = ("kafka.tools.StorageTool", "format", "-t", "cGVuc3RvY2stY2x1c3Rlcg", "-c", str(settings))
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{cached_jars()}/*", *format_]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "data" / "meta.properties").exists()
