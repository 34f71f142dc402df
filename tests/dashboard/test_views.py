"""Every view shows the numbers of the recording behind it, in a real browser."""

import json
from pathlib import Path

import pytest

from penstock.control.recording import Recorder
from penstock.dashboard.recorded import RecordedFlow
from penstock.dashboard.server import DashboardServer
from penstock.dashboard.told import HIDDEN
from penstock.report.history import read_history
from penstock.report.metrics import needed
from tests.control.headers import header
from tests.dashboard.chromium import Browser, Page
from tests.dashboard.flows import NASTY, interval

SHOWN = "document.body.dataset.shown === '{}' && document.querySelector('.decisions, #figures, #decided p')"


@pytest.fixture(scope="module")
def page(chrome: Browser, server: DashboardServer) -> Page:
    opened = chrome.page(server.url)
    opened.until(SHOWN.format(3))
    return opened


def at(page: Page, number: int) -> None:
    """Move the slider there."""
    script = "const s = document.getElementById('slider'); s.value = {}; s.dispatchEvent(new Event('input'))"
    page.run(f"{{ {script.format(number)} }}")
    page.until(SHOWN.format(number))
    page.until(f"document.querySelector('.decisions').rows.length === {number + 2}")


def test_constraints_against_their_bounds(page: Page) -> None:
    at(page, 3)
    # 1 ms batching + 2 ms transport + 10 ms queue + 1 ms of work, bound 10; the first two intervals held it.
    assert page.rows("#kept") == [["c", "mean ≤ 10.00 ms", "14.00 ms", "14.50 ms", "–", "broken", "50.0 %"]]
    at(page, 0)
    assert page.rows("#kept") == [["c", "mean ≤ 10.00 ms", "8.00 ms", "11.50 ms", "–", "held", "100.0 %"]]
    assert page.legend("c")["mean"] == "8.00 ms"
    assert page.legend("c")["bound"] == "10.00 ms"


def test_the_graph_shows_load_replicas_pools_queues_and_chains(page: Page) -> None:
    at(page, 3)
    load, words = page.run(
        "(() => { const node = document.querySelector('[data-task=work] .node');"
        " return [node.getAttribute('class'), node.querySelector('title').textContent] })()"
    )
    assert load == "node load-hot"
    assert words == "work, task: 4 active / 4 pool, 80.0 % busy, 43 waiting"
    assert page.run("document.getElementById('chains').innerText") == "chains: work + sink"
    assert page.run("document.querySelector('[data-stream=\"source->work\"] text').textContent") == "13.00 ms"
    at(page, 0)
    assert (
        page.run("document.querySelector('[data-task=work] .node').getAttribute('class')") == "node load-busy"
    )
    assert page.run("document.querySelectorAll('[data-task=work] .pool').length") == 1


def test_where_the_latency_goes(page: Page) -> None:
    at(page, 1)
    rows = {row[0]: row[1:] for row in page.rows("#parts")}
    assert rows["source->work"] == ["1.00 ms", "2.00 ms", "6.00 ms", "–", "9.00 ms", "2.00 ms"]
    assert rows["work"][2:4] == ["6.00 ms", "1.00 ms"]
    spent = page.legend("c, by what it is spent on")
    assert spent == {"batching": "1.00 ms", "transport": "2.00 ms", "queue": "6.00 ms", "service": "1.00 ms"}
    assert page.legend("c, to each task and in it") == {"work": "10.00 ms"}


def test_rate_lag_and_replicas(page: Page, recording: Path) -> None:
    at(page, 2)
    seen = interval(2)
    assert page.legend("Rate")["sent: source"] == "102.0 /s"
    assert page.legend("Rate")["received: sink"] == "102.0 /s"
    assert page.legend("Lag of the sources") == {"source": "32.00 ms"}
    waiting = page.legend("Items that wait")
    assert (waiting["not read: source"], waiting["before work"]) == ("7", "42")
    planned = read_history(recording).decided[1].decision.parallelism["work"]
    assert page.legend("Replicas of work") == {
        "pool": "4",
        "active": "3",
        "planned": str(planned),
        "needed": str(needed(seen.tasks["work"])),
    }


def test_decisions_with_reasons_and_refusals(page: Page) -> None:
    at(page, 1)
    newest, oldest = page.rows("#log")
    assert newest[1] == "nephele"
    assert "work: 2 → 3 replicas" in newest[2]
    assert "work: held back by cool_down" in newest[2]
    assert f"rebalance: queue of {NASTY} grows" in newest[3]
    assert "held back by cool_down: too soon" in newest[3]
    assert newest[4] == "in effect after 42 ms"
    assert "work: 1 → 2 replicas" in oldest[2]


def test_commits_and_executors(page: Page) -> None:
    at(page, 1)
    assert [row[1:3] for row in page.rows("#events")] == [
        ["failure", f"{NASTY}: 2 items skipped"],
        ["commit", "batch 0 is committed"],
        ["run", "a run begins, policy nephele"],
    ]
    at(page, 3)
    newest, before, *_ = page.rows("#events")
    assert "the sources stood still for 210 ms at a boundary" in newest[2]
    assert before[1:] == ["restart", "started again after 1.5 s, 1,200 items replayed", HIDDEN]
    assert page.rows("#executors") == [
        ["0", "source 1, work 4", "5", "1.25", "0.31", "2", "5", "1,234 MiB"],
        ["1", "–", "0", "–", "–", "2", "0", "–"],
    ]
    headings = page.run("[...document.querySelectorAll('#executors th')].map((one) => one.innerText)")
    assert headings == [
        "executor",
        "replicas",
        "all replicas",
        "cores used by workers",
        "cores used by Java",
        "cores of its machine",
        "slots used",
        "memory",
    ]
    assert page.run("document.getElementById('cores').innerText") == "1 of 2 cores are used"


def test_commits_by_marks_and_state(page: Page) -> None:
    at(page, 3)
    assert page.rows("#last-commit") == [["20", "250.00 ms", "83.00 ms", "20", "2", "0"]]
    assert page.rows("#state") == [["work", "2.9 MiB", "–"]], (
        "which groups are heavy is for those who signed in"
    )
    assert page.legend("Commits") == {
        "time that the last one took": "83.00 ms",
        "time since the last one": "250.00 ms",
    }
    assert page.legend("Epochs void, and rollbacks") == {"void": "1", "rollbacks": "0"}
    assert page.legend("State in the last commit") == {"work": "2.9 MiB"}
    at(page, 0)
    assert page.rows("#last-commit") == [["5", "250.00 ms", "80.00 ms", "5", "0", "0"]]


def test_a_page_for_every_task(page: Page) -> None:
    at(page, 3)
    page.run(
        "document.querySelector('[data-task=work]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    page.until("document.getElementById('figures')")
    figures = dict(page.rows("#figures"))
    assert figures["replicas: active / pool"] == "4 / 4"
    assert figures["busy: average replica"] == "80.0 %"
    assert figures["wait in the queue"] == "10.00 ms"
    assert figures["items that wait"] == "43"
    assert figures["state in the last commit"] == "2.9 MiB"
    assert "lag" not in figures, "it is no source"
    assert page.legend("Items that wait") == {"before it": "43"}
    assert page.legend("Latency") == {"service": "1.00 ms", "queue": "10.00 ms"}
    assert page.rows("#streams")[0][0] == "source->work"
    spent = page.legend("source->work, by what it is spent on")
    assert spent == {"batching": "1.00 ms", "transport": "2.00 ms", "queue": "10.00 ms"}
    assert "work: 4 → 5 replicas" in page.rows("#decided")[0][2]
    page.run("location.hash = '#/'")
    page.until("document.getElementById('kept')")


def test_the_page_of_a_source_has_its_lag(page: Page) -> None:
    at(page, 2)
    page.run("location.hash = '#/task/source'")
    page.until("document.querySelector('#task h2')?.innerText === 'source'")
    assert dict(page.rows("#figures"))["lag"] == "32.00 ms, 7 items"
    assert page.legend("Items that wait") == {"not read": "7"}
    page.run("location.hash = '#/'")
    page.until("document.getElementById('kept')")


def test_what_was_simulated_says_so(chrome: Browser, page: Page, tmp_path: Path) -> None:
    assert page.run("document.getElementById('state').innerText") == "a recording"
    with Recorder(tmp_path / "run.jsonl", header(flow="sim", started_at_s=0.0)) as recorder:
        recorder.write_snapshot(interval(0), at_s=5.0)
    simulated = DashboardServer(RecordedFlow(tmp_path / "run.jsonl"), 0)
    try:
        opened = chrome.page(simulated.url)
        opened.until("document.getElementById('state').innerText === 'a recording, simulated'")
    finally:
        simulated.close()


def test_a_script_as_a_name_is_text(page: Page) -> None:
    assert page.run("document.querySelectorAll('script').length") == 2
    assert NASTY in page.run("document.getElementById('tasks').innerText")
    page.run(f"location.hash = '#/task/' + encodeURIComponent({json.dumps(NASTY)})")
    page.until(f"document.querySelector('#task h2')?.innerText === {json.dumps(NASTY)}")
    page.run("location.hash = '#/'")
    page.until("document.getElementById('kept')")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_readable_wide_and_narrow_light_and_dark(page: Page, width: int, dark: bool) -> None:
    page.look(width=width, dark=dark)
    at(page, 3)
    page.until(f"document.documentElement.scrollWidth <= {width}")
    for number in range(3):
        page.until(f"document.querySelectorAll('canvas')[{number}].getBoundingClientRect().right <= {width}")
    page.until("[...document.querySelectorAll('.wide')].every((one) => one.scrollWidth <= one.clientWidth)")
    assert page.run(f"document.querySelector('#kept .broken').getBoundingClientRect().right <= {width}")
    contrast = page.run(CONTRAST)
    assert contrast == [], "text that can hardly be told from what is behind it"
    dark_back = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    assert dark_back == dark
    page.run("location.hash = '#/task/work'")
    page.until("document.querySelectorAll('#streams canvas').length === 3")
    page.until(f"document.documentElement.scrollWidth <= {width}")
    page.until(f"document.querySelector('#streams canvas').getBoundingClientRect().right <= {width}")
    assert page.run(CONTRAST) == []
    page.run("location.hash = '#/'")
    page.until("document.getElementById('kept')")


def test_it_is_used_by_keyboard(page: Page) -> None:
    page.look(width=1280, dark=False)
    at(page, 3)
    page.run("document.getElementById('slider').focus()")
    page.press("ArrowLeft")
    page.until(SHOWN.format(2))
    assert page.run("document.getElementById('slider').getAttribute('aria-valuetext')").startswith("20")
    page.press("Home")
    page.until(SHOWN.format(0))
    page.press("Tab")
    assert page.run("document.activeElement.id") == "follow"
    page.press("Enter")
    page.until(SHOWN.format(3))
    for _ in range(40):
        page.press("Tab")
        if page.run("document.activeElement.getAttribute('data-task')") == "work":
            break
    page.press("Enter")
    page.until("document.querySelector('#task h2')?.innerText === 'work'")
    page.run("location.hash = '#/'")
    page.until("document.getElementById('kept')")


def test_nothing_went_wrong_and_nothing_came_from_elsewhere(page: Page, server: DashboardServer) -> None:
    assert page.problems() == []
    asked = page.addresses()
    assert len(asked) > 15
    assert [one for one in asked if not one.startswith((server.url, "data:"))] == []


def test_the_browser_would_tell(chrome: Browser, server: DashboardServer) -> None:
    opened = chrome.page(server.url)
    opened.until("document.getElementById('kept')")
    opened.run("void setTimeout(() => nothing(), 0)")
    inside = "Object.assign(document.createElement('script'), {textContent: 'window.got = 1'})"
    opened.run(f"document.body.append({inside})")
    opened.run("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:1/x.png'}))")
    opened.run("new Promise((done) => setTimeout(() => done(true), 50))")
    assert opened.run("window.got") is None, "scripts inside the page do not run"
    told = " ".join(opened.problems())
    assert "nothing is not defined" in told
    assert "violates the following Content Security Policy directive" in told


# Text whose colour is nearer to what is behind it than the 4.5 of WCAG 2, level AA; pictures aside.
CONTRAST = """(() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, number) => sum + one * [0.2126, 0.7152, 0.0722][number], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const shown = "p, td, th, h1, h2, h3, a, span, button, label, output, li";
  for (const element of document.querySelectorAll(shown)) {
    if (!element.innerText?.trim() || element.closest("svg, .skip")) continue;
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${element.tagName} ${element.innerText.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return [...new Set(bad)];
})()"""
