"""What Prometheus itself says of the alerts and of the questions that the Grafana dashboard asks.

Its programs come from Debian's package (`scripts/install_prometheus.sh`); without them the tests are skipped.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from tests.observe.test_grafana import PLACE, Collector, Job, expressions

HERE = Path(__file__).resolve().parent
WITHIN_S = 30.0
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    """On the path, or where the script put it."""
    beside = Path(sys.prefix) / "prometheus" / "usr" / "bin" / name
    found = shutil.which(name) or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_alerts_come_when_they_should() -> None:
    asked = [program("promtool"), "test", "rules", "alerts.test.yml"]
    told = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_alert_is_tried() -> None:
    rules, tried = (PLACE / "alerts.yml").read_text(), (HERE / "alerts.test.yml").read_text()
    names = [line.split()[-1] for line in rules.splitlines() if "- alert:" in line]
    assert len(names) == 9
    # Once where it is to come, once where it is not.
    assert [name for name in names if tried.count(f"alertname: {name}") < 2] == []


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """One that scrapes a flow, and knows the alerts."""
    binary = program("prometheus")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(Job()))
    served, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    written = CONFIGURATION.format(rules=PLACE / "alerts.yml", port=served.server_port)
    (tmp_path / "prometheus.yml").write_text(written)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [
            binary,
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}"
    running.terminate()
    running.wait(WITHIN_S)
    served.shutdown()
    served.server_close()
    thread.join()


def told(url: str, path: str, **asked: str) -> Any:
    """What it answers; None while it is not ready."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(asked)}") as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code != 503:  # 400: it does not understand the question
            raise AssertionError(f"{asked}: {error.read().decode()}") from None
    except urllib.error.URLError:
        pass
    return None


def test_every_question_of_the_dashboard_has_an_answer(prometheus: str) -> None:
    questions = [
        asked.replace("$job", ".*").replace("$instance", ".*")
        for asked, words in expressions()
        if words and "$instance" in asked
    ]
    assert len(questions) > 20
    deadline_s = time.monotonic() + WITHIN_S
    silent = questions
    while silent and time.monotonic() < deadline_s:
        silent = [one for one in silent if not (told(prometheus, "query", query=one) or {}).get("result")]
        time.sleep(0.2)
    assert silent == []
    (group,) = told(prometheus, "rules")["groups"]
    assert {rule["name"]: rule["health"] for rule in group["rules"] if rule["health"] != "ok"} == {}
