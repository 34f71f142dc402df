"""Who is refused, and what those see who have no token."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.dashboard.access import Access, new_token
from penstock.dashboard.live import LiveFlow
from penstock.dashboard.recorded import RecordedFlow
from penstock.dashboard.server import DashboardServer
from penstock.dashboard.told import HIDDEN
from penstock.flow.errors import FlowError
from tests.dashboard.flows import WatchedJob

TOKEN = "a-token-for-tests-only"
WANTED = {"do": "set", "replicas": {"work": 5}}


def ask(
    server: DashboardServer, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    """Status, body and headers of an answer; underscores in names of headers stand for hyphens."""
    connection = http.client.HTTPConnection("127.0.0.1", server.access.port, timeout=30)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = json.dumps(body).encode() if isinstance(body, dict) else body
    connection.request(method, path, raw, sent)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(text) if is_json else text.decode(), answer.headers


@pytest.fixture
def job() -> WatchedJob:
    return WatchedJob()


@pytest.fixture
def live(job: WatchedJob) -> Iterator[DashboardServer]:
    watched = LiveFlow(job)
    serving = DashboardServer(watched, 0, TOKEN)
    yield serving
    serving.close()
    watched.close()


def steer(server: DashboardServer, body: Any = WANTED, **headers: str) -> tuple[int, Any]:
    own = {"origin": server.url.rstrip("/"), "content_type": "application/json", **headers}
    status, answer, _ = ask(server, "/api/set", "POST", body, **{k: v for k, v in own.items() if v})
    return status, answer


def test_steering_takes_the_token(live: DashboardServer, job: WatchedJob) -> None:
    assert steer(live)[0] == 401
    assert steer(live, authorization="Bearer wrong")[0] == 401
    assert steer(live, cookie=f"{live.access.cookie}={TOKEN}")[0] == 401, "the token is no cookie"
    assert job.adapted == []
    status, answer = steer(live, authorization=f"Bearer {TOKEN}")
    assert (status, answer["changes"]) == (200, ["work: 2 -> 5 replicas"])
    assert job.active["work"] == 5


def test_the_address_with_the_token_gives_a_cookie_that_steers(
    live: DashboardServer, job: WatchedJob
) -> None:
    status, _, headers = ask(live, f"/?token={TOKEN}")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert steer(live, cookie=cookie.partition(";")[0])[0] == 200
    assert ask(live, "/?token=wrong")[0] == 403


@pytest.mark.parametrize(
    "foreign",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"host": "evil.example"},
        {"host": "127.0.0.1:1"},
    ],
    ids=str,
)
def test_what_comes_from_elsewhere_is_refused_even_with_the_cookie(
    live: DashboardServer, job: WatchedJob, foreign: dict[str, str]
) -> None:
    cookie = f"{live.access.cookie}={live.access.session}"
    assert steer(live, cookie=cookie, **foreign)[0] == 403
    assert job.adapted == []


def test_a_name_that_is_not_ours_reads_nothing(live: DashboardServer) -> None:
    assert ask(live, "/api/flow", host=f"evil.example:{live.access.port}")[0] == 403
    assert ask(live, "/api/flow", origin="http://evil.example")[0] == 403
    assert ask(live, "/api/flow", host=f"localhost:{live.access.port}")[0] == 200


def test_nothing_is_changed_by_get_or_by_what_is_no_json(live: DashboardServer, job: WatchedJob) -> None:
    signed = {"authorization": f"Bearer {TOKEN}"}
    for path in ("/api/set", "/api/set?replicas=work=5", "/session"):
        assert ask(live, path, **signed)[0] == 405
    assert steer(live, content_type="text/plain", **signed)[0] == 415
    assert steer(live, b"{", **signed)[0] == 400
    assert steer(live, {"do": "set"}, **signed)[0] == 400
    assert steer(live, {"do": "stop"}, **signed)[0] == 400
    assert steer(live, b"[" * 100_000, **signed)[0] == 413
    refused = steer(live, {"do": "set", "replicas": {"work": 50}}, **signed)
    assert refused[0] == 409
    assert "declared with 1 to 20" in refused[1]["why"]
    assert job.adapted == []


def test_off_loopback_everything_takes_the_token(recording: Path) -> None:
    serving = DashboardServer(RecordedFlow(recording), "0.0.0.0:0", TOKEN)
    try:
        for path in ("/", "/api/flow", "/api/columns", "/static/main.js", "/?token=wrong"):
            status, body, _ = ask(serving, path)
            assert status == 401, path
            assert "by-hand" not in body
        assert ask(serving, "/api/flow", host=f"evil.example:{serving.access.port}")[0] == 403
        assert ask(serving, "/api/flow", authorization=f"Bearer {TOKEN}")[1]["flow"] == "by-hand"
        form = {"content_type": "application/x-www-form-urlencoded", "origin": serving_origin(serving)}
        assert ask(serving, "/session", "POST", b"token=wrong", **form)[0] == 403
        status, _, headers = ask(serving, "/session", "POST", f"token={TOKEN}".encode(), **form)
        assert status == 303
        assert ask(serving, "/", cookie=headers["set-cookie"].partition(";")[0])[0] == 200
    finally:
        serving.close()


def serving_origin(server: DashboardServer) -> str:
    return f"http://127.0.0.1:{server.access.port}"


def test_every_answer_has_the_headers(server: DashboardServer) -> None:
    for path in ("/", "/api/flow", "/static/main.js", "/nowhere"):
        headers = ask(server, path)[2]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_items_and_keys_are_hidden_without_the_token(server: DashboardServer) -> None:
    signed = {"authorization": f"Bearer {server.access.token}"}
    problem = [one["problem"] for one in ask(server, "/api/decisions?count=1")[1]]
    assert problem == [HIDDEN]
    assert "secret" in ask(server, "/api/decisions?count=1", **signed)[1][0]["problem"]
    assert "key_groups" not in ask(server, "/api/interval/0")[1]["snapshot"]["tasks"]["work"]
    assert "key_groups" in ask(server, "/api/interval/0", **signed)[1]["snapshot"]["tasks"]["work"]


def test_a_failure_is_told_and_its_words_only_with_the_token(live: DashboardServer, job: WatchedJob) -> None:
    told = ask(live, "/api/events")[1]
    assert [(one["text"], one["detail"]) for one in told] == [("the flow is running", HIDDEN)]
    signed = ask(live, "/api/events", authorization=f"Bearer {TOKEN}")[1]
    assert signed[0]["detail"] == "batch 3"


def test_names_of_the_server_itself() -> None:
    everywhere = Access("0.0.0.0", 80, TOKEN)
    assert everywhere.problem("GET", {"host": "192.0.2.7"}) is None
    assert everywhere.problem("GET", {"host": "rebound.example"}) is not None
    named = Access("box.example", 8050, TOKEN)
    assert named.problem("GET", {"host": "BOX.example:8050"}) is None
    assert Access("::1", 8050, TOKEN).problem("GET", {"host": "[::1]:8050"}) is None
    assert Access("::1", 8050, TOKEN).url == "http://[::1]:8050/"
    assert TOKEN not in repr(named)


def test_a_token_from_the_environment() -> None:
    assert new_token({"PENSTOCK_DASHBOARD_TOKEN": TOKEN}) == TOKEN
    assert new_token({}) != new_token({})
    with pytest.raises(FlowError, match="16 printable characters"):
        new_token({"PENSTOCK_DASHBOARD_TOKEN": "short"})


def test_an_address_that_is_taken_or_none_is_refused(server: DashboardServer, recording: Path) -> None:
    with pytest.raises(FlowError, match="cannot be served at 127"):
        DashboardServer(RecordedFlow(recording), server.access.port)
    with pytest.raises(FlowError, match='"nowhere" is no address for the dashboard'):
        DashboardServer(RecordedFlow(recording), "nowhere")
