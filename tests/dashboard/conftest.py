"""One browser, one server of a recording, for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.dashboard.recorded import RecordedFlow
from penstock.dashboard.server import DashboardServer
from tests.dashboard.chromium import Browser, browser
from tests.dashboard.flows import recorded


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recorded") / "run.jsonl")


@pytest.fixture(scope="module")
def server(recording: Path) -> Iterator[DashboardServer]:
    serving = DashboardServer(RecordedFlow(recording), 0)
    yield serving
    serving.close()
