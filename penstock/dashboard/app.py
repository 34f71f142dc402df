"""The addresses of the dashboard: a page, its figures as JSON, a stream of what is new, and one that changes.

GET changes nothing. Every answer has a content security policy under which only this server's own scripts,
styles and addresses are used, and none inside the page.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.dashboard.access import Access
from penstock.dashboard.shape import Shape, shape_of
from penstock.dashboard.shown import Shown
from penstock.dashboard.told import HIDDEN, Now, Told, without_items
from penstock.operate.protocol import REQUEST_BYTES, Refused, Set

STATIC: Final = Path(__file__).with_name("static")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".LICENSE": "text/plain; charset=utf-8",
}
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LOOK_EVERY_S: Final = 0.2
_BEAT_S: Final = 1.0
_MOST_STREAMS: Final = 16
_MOST_DECISIONS: Final = 500


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a page asks first."""

    flow: str
    policy: str | None
    is_live: bool
    may_steer: bool
    is_signed: bool
    shape: Shape
    end: int


def create_app(shown: Shown, access: Access, is_over: Callable[[], bool]) -> ASGIApp:
    """The application; streams end when `is_over`."""
    pages = _Pages(shown, access, is_over)
    files = [path for path in STATIC.iterdir() if path.suffix in _TYPES]
    routes = [
        Route("/", pages.index),
        Route("/session", pages.sign_in, methods=["POST"]),
        Route("/api/flow", pages.about),
        Route("/api/columns", pages.columns),
        Route("/api/interval/{number:int}", pages.interval),
        Route("/api/decisions", pages.decisions),
        Route("/api/events", pages.events),
        Route("/api/stream", pages.stream),
        Route("/api/set", pages.set, methods=["POST"]),
        *(Route(f"/static/{path.name}", _file(path)) for path in files),
    ]
    return _Guard(Starlette(routes=routes), access)


class _Guard:
    """In front of everything: refuses what comes from elsewhere or has no token, and sets the headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope, receive)
        problem = self._access.problem(request.method, request.headers)
        if problem is not None:
            await _refused(403, problem)(scope, receive, with_headers)
            return
        scope["signed"] = self._access.is_signed(request.headers)
        if not (self._access.is_open or scope["signed"] or self._signs_in(request)):
            await _sign_in_page(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _signs_in(self, request: Request) -> bool:
        """Whether the request brings the token, to be given a cookie for it."""
        if request.url.path == "/session":
            return True
        return request.url.path == "/" and self._access.knows(request.query_params.get("token", ""))


class _Pages:
    def __init__(self, shown: Shown, access: Access, is_over: Callable[[], bool]) -> None:
        self._shown = shown
        self._access = access
        self._is_over = is_over
        self._streams = 0

    async def index(self, request: Request) -> Response:
        """The page; one that is asked for with the token is asked for again with a cookie."""
        token = request.query_params.get("token")
        if token is None:
            return _static(STATIC / "index.html")
        if not self._access.knows(token):
            return _refused(403, "this is not the token of this run")
        return self._with_cookie()

    async def sign_in(self, request: Request) -> Response:
        """The token in a form, for those who were not given an address with it."""
        body = await _body(request)
        if body is None:
            return _refused(413, "too long")
        given = parse_qs(body.decode(errors="replace")).get("token", [""])
        if not self._access.knows(given[0]):
            return _refused(403, "this is not the token of this run")
        return self._with_cookie()

    async def about(self, request: Request) -> Response:
        """What it is."""
        latest = self._shown.timeline.latest
        return _json(
            About(
                flow=self._shown.flow,
                policy=self._shown.policy,
                is_live=self._shown.steer is not None,
                may_steer=self._shown.steer is not None and request.scope["signed"],
                is_signed=request.scope["signed"],
                shape=Shape() if latest is None else shape_of(latest),
                end=self._shown.timeline.end,
            )
        )

    async def columns(self, request: Request) -> Response:
        """Figures over time, from an interval on."""
        first = _number(request, "from", 0)
        return _json(await run_in_threadpool(self._shown.timeline.columns, round(first)))

    async def interval(self, request: Request) -> Response:
        """One of them, as it was."""
        found = self._shown.timeline.interval(request.path_params["number"])
        if found is None:
            return _refused(404, "this interval is not held")
        if not request.scope["signed"]:
            found = msgspec.structs.replace(found, snapshot=_without_keys(bytes(found.snapshot)))
        return _json(found)

    async def decisions(self, request: Request) -> Response:
        """The last ones up to a time."""
        before_s = _number(request, "before", math.inf)
        count = min(_MOST_DECISIONS, max(1, round(_number(request, "count", 50))))
        changes = request.query_params.get("changes") == "1"
        found = await run_in_threadpool(self._shown.decisions, before_s, count, changes=changes)
        return _json(found if request.scope["signed"] else [_without_problem(one) for one in found])

    async def events(self, request: Request) -> Response:
        """Commits, failures, restarts."""
        found = self._shown.events()
        return _json(found if request.scope["signed"] else [without_items(one) for one in found])

    async def stream(self, request: Request) -> Response:
        """Server-sent events: new rows when there are any, and every second how the flow is."""
        if self._streams >= _MOST_STREAMS:
            return _refused(503, "too many pages are open")
        since = round(_number(request, "from", self._shown.timeline.end))
        sent = self._sent(request.scope["signed"], since)
        return StreamingResponse(sent, media_type="text/event-stream")

    async def set(self, request: Request) -> Response:
        """Change the flow, all or nothing."""
        if not request.scope["signed"]:
            return _refused(401, "steering needs the token that was printed at the start")
        if self._shown.steer is None:
            return _refused(409, "a recording cannot be changed")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused(415, "give application/json")
        body = await _body(request)
        if body is None:
            return _refused(413, "too long")
        try:
            wanted = msgspec.json.decode(body, type=Set)
        except msgspec.MsgspecError as problem:
            return _refused(400, f"this cannot be set: {problem}")
        if wanted == Set():
            return _refused(400, "nothing to set")
        answer = await run_in_threadpool(self._shown.steer, wanted)
        return _json(answer, 409 if isinstance(answer, Refused) else 200)

    async def _sent(self, is_signed: bool, since: int) -> AsyncIterator[bytes]:  # noqa: FBT001
        self._streams += 1
        try:
            beat_s = 0.0
            while not self._is_over():
                if self._shown.timeline.end > since:
                    columns = await run_in_threadpool(self._shown.timeline.columns, since)
                    since = columns.first + len(columns.times)
                    yield _event("rows", columns)
                if beat_s <= 0:
                    beat_s = _BEAT_S
                    now = await run_in_threadpool(self._shown.now)
                    yield _event("now", now if is_signed or now is None else _without_message(now))
                await asyncio.sleep(_LOOK_EVERY_S)
                beat_s -= _LOOK_EVERY_S
        finally:
            self._streams -= 1

    def _with_cookie(self) -> Response:
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._access.cookie, self._access.session, httponly=True, samesite="strict")
        return answer


def _event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _refused(status: int, why: str) -> Response:
    return _json(Refused(why=why), status)


async def _sign_in_page(scope: Scope, receive: Receive, send: Send) -> None:
    """Shows nothing of the flow."""
    is_page = Request(scope).headers.get("sec-fetch-mode", "navigate") == "navigate"
    answer = _static(STATIC / "sign_in.html", 401) if is_page else _refused(401, "the token is needed")
    await answer(scope, receive, send)


def _static(path: Path, status: int = 200) -> Response:
    return FileResponse(path, status, media_type=_TYPES[path.suffix])


def _file(path: Path) -> Callable[[Request], Awaitable[Response]]:
    async def serve(_: Request) -> Response:
        return _static(path)

    return serve


async def _body(request: Request) -> bytes | None:
    """None if it is longer than anything that makes sense."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > REQUEST_BYTES:
            return None
    return body


def _number(request: Request, name: str, default: float) -> float:
    try:
        found = float(request.query_params.get(name, ""))
    except ValueError:
        return default
    return found if math.isfinite(found) else default


def _without_keys(snapshot: bytes) -> msgspec.Raw:
    """Which groups of keys are busy is for those who have the token."""
    decoded: Any = msgspec.json.decode(snapshot)
    for task in decoded["tasks"].values():
        task.pop("key_groups", None)
        task.pop("key_table", None)
    return msgspec.Raw(msgspec.json.encode(decoded))


def _without_message(now: Now) -> Now:
    """An error may show an item."""
    if now.state != "failed" and now.problem is None:
        return now
    return msgspec.structs.replace(now, message=HIDDEN, problem=None if now.problem is None else HIDDEN)


def _without_problem(told: Told) -> Told:
    return told if told.problem is None else msgspec.structs.replace(told, problem=HIDDEN)
