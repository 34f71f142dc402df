"""A flow that runs: figures within a second, steering from the page, and what is told when it ends."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from penstock.dashboard.live import LiveFlow
from penstock.dashboard.server import DashboardServer
from penstock.observe.progress import Status
from tests.dashboard.chromium import Browser, Page
from tests.dashboard.flows import WatchedJob

TOKEN = "a-token-for-tests-only"


@dataclass(frozen=True)
class Outage:
    """A second."""

    why: str = "executor 3 died at item 'secret'"
    began_s: float = 10.0
    ended_s: float = 11.5
    replayed: int = 1200


@pytest.fixture(scope="module")
def job() -> WatchedJob:
    return WatchedJob()


@pytest.fixture(scope="module")
def serving(job: WatchedJob) -> Iterator[DashboardServer]:
    watched = LiveFlow(job)
    server = DashboardServer(watched, 0, TOKEN)
    yield server
    server.close()
    watched.close()


@pytest.fixture(scope="module")
def page(chrome: Browser, serving: DashboardServer) -> Page:
    opened = chrome.page(serving.signed_url)
    opened.until(
        "document.querySelector('#constraints form.steer') && document.querySelector('#policy form')"
    )
    return opened


def fill(page: Page, label: str, value: str) -> None:
    """Type into a field and press Enter, as with a keyboard."""
    page.until(f"document.querySelector('[aria-label=\"{label}\"]')")
    page.run(f"document.querySelector('[aria-label=\"{label}\"]').focus()")
    page.type(value)
    page.press("Enter")


def said(page: Page, words: str) -> None:
    page.until(f"[...document.querySelectorAll('.said')].some((one) => one.innerText.includes({words!r}))")


def test_a_bound_is_set_and_logged(page: Page, job: WatchedJob) -> None:
    fill(page, "bound of quick in ms", "35")
    said(page, "quick: bound 20 ms -> 35 ms")
    assert job.layout.graph.constraints[0].latency_ms == 35
    page.until("document.querySelector('#log').innerText.includes('quick: bound 20 ms -> 35 ms')")
    assert any(row[1] == "by hand (dashboard)" for row in page.rows("#log"))
    page.until("document.querySelector('#kept').innerText.includes('35.00 ms')")


def test_a_policy_is_switched(page: Page, job: WatchedJob) -> None:
    for mode in ("recommend", "off"):
        page.run(f"document.querySelector('#policy select').value = '{mode}'")
        page.run("document.querySelector('#policy button').focus()")
        page.press("Enter")
        page.until(f"document.querySelector('#policy .said').innerText.includes('-> {mode}')")
        assert job.control is not None
        assert job.control.mode == mode


def test_replicas_and_lifetimes_are_set_on_the_page_of_a_task(page: Page, job: WatchedJob) -> None:
    page.run("location.hash = '#/task/work'")
    fill(page, "replicas of work (1 to 20)", "6")
    said(page, "work: 2 -> 6 replicas")
    assert job.active["work"] == 6
    page.until("document.querySelector('#figures').innerText.includes('6 / 8')")
    fill(page, "lifetime of numbers->work in ms", "7.5")
    said(page, "numbers->work: lifetime 5 ms -> 7.5 ms")
    assert job.lifetimes["numbers->work"] == 7.5
    fill(page, "replicas of work (1 to 20)", "21")
    said(page, "refused: 21 replicas of task")
    reasons = [reason.why for entry in job.logged for reason in entry.decision.reasons]
    assert reasons[-2:] == ["work: 2 -> 6 replicas", "numbers->work: lifetime 5 ms -> 7.5 ms"]
    page.run("location.hash = '#/'")


def test_what_is_new_reaches_the_page_within_a_second_and_no_items(
    chrome: Browser, page: Page, serving: DashboardServer, job: WatchedJob
) -> None:
    reader = chrome.page(serving.url)
    reader.until("document.getElementById('kept')")
    assert reader.run("document.querySelectorAll('form.steer').length") == 0
    job.stopped.append(Outage())
    for who, detail in ((page, "secret"), (reader, "hidden")):
        who.until("document.querySelector('#events')?.innerText.includes('1,200 items replayed')")
        assert detail in who.run("document.querySelector('#events').innerText")
    assert "secret" not in reader.text()
    before = int(page.run("document.getElementById('slider').max"))
    page.until(f"Number(document.getElementById('slider').max) > {before}")
    age_s = time.time() - page.run(
        "fetch('/api/columns').then((answer) => answer.json()).then((told) => told.times.at(-1))"
    )
    assert age_s < 5, "a second and what a busy machine adds"


class Foreign(BaseHTTPRequestHandler):
    """A page at another port of the same host: browsers send it the same cookies."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>elsewhere</p>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Nobody reads it."""


ATTACK = """(async () => {
  const body = JSON.stringify({ do: "set", replicas: { work: 9 } });
  const asked = (path, options) => fetch(BASE + path, { credentials: "include", ...options })
    .then((answer) => `${answer.type} ${answer.status}`, () => "refused");
  const json = { "content-type": "application/json" };
  return [
    await asked("api/set", { method: "POST", body, headers: json }),
    await asked("api/set", { method: "POST", body, mode: "no-cors" }),
    await asked("api/flow", {}),
  ];
})()"""


def test_pages_from_elsewhere_neither_read_nor_steer(
    chrome: Browser, serving: DashboardServer, job: WatchedJob
) -> None:
    elsewhere = HTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    try:
        attacker = chrome.page(serving.signed_url)
        attacker.until("document.querySelector('form.steer')")
        before = job.active["work"]
        attacker.open(f"http://127.0.0.1:{elsewhere.server_port}/")
        attacker.until("document.body.innerText === 'elsewhere'")
        answers = attacker.run(ATTACK.replace("BASE", repr(serving.url)))
        assert answers == ["refused", "refused", "refused"]
        assert job.active["work"] == before
    finally:
        elsewhere.shutdown()
        elsewhere.server_close()
    reader = chrome.page(serving.url)
    reader.until("document.getElementById('kept')")
    assert reader.run(ATTACK.replace("BASE", "'/'")) == ["basic 401", "basic 401", "basic 200"]
    assert job.active["work"] == before


def test_nothing_went_wrong(page: Page) -> None:
    # The refusal of too many replicas is told by the browser, too.
    assert [one for one in page.problems() if "409" not in one] == []


def test_the_page_survives_the_end_of_the_flow_and_finds_the_next(chrome: Browser) -> None:
    first_job = WatchedJob()
    watched = LiveFlow(first_job)
    first = DashboardServer(watched, 0, TOKEN)
    page = chrome.page(first.signed_url)
    page.until("document.getElementById('kept')")
    port = first.access.port
    first.close()
    watched.close()
    page.until("document.getElementById('state').innerText.includes('not connected')")
    assert page.rows("#kept"), "what was shown stays"
    next_job = WatchedJob()
    next_job.status = Status("running", "batch 9")
    watched = LiveFlow(next_job)
    second = DashboardServer(watched, port, TOKEN)
    page.until("document.getElementById('state').innerText === 'running, batch 9'")
    second.close()
    watched.close()


def test_failures_commits_and_restarts_become_events() -> None:
    job = WatchedJob()
    counted = job.metrics()
    job.metrics = lambda: counted  # type: ignore[method-assign]
    watched = LiveFlow(job)
    try:
        job.recent_progress = [{"time_s": 17.0, "batch": 4}]
        counted.tasks["work"].skipped = 3
        counted.tasks["work"].restarts = 1
        job.status = Status("failed", "item 'secret'")
        watched.look()
        assert [(one.kind, one.text) for one in watched.events()] == [
            ("run", "the flow is running"),
            ("commit", "batch 3 is committed"),
            ("failure", "work: 1 worker processes died and were replaced"),
            ("failure", "work: 3 items skipped"),
            ("failure", "the flow is failed"),
        ]
    finally:
        watched.close()
