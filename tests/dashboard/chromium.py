"""A real browser without a screen, spoken to over a pipe: pages are opened, used and looked at."""

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.report.browser import chromium

WITHIN_S = 60.0
KEYS = {"Tab": 9, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "End": 35}
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--mute-audio",
)
OFFLINE = ("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")


class Browser:
    """One process; every page is a tab of its own."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def as_three_and_four() -> None:
            # Two steps, or the first might overwrite the second.
            high = [os.dup2(end, number) for end, number in ((to_browser, 198), (from_browser, 199))]
            for end, number in zip(high, (3, 4), strict=True):
                os.dup2(end, number)

        self._process = subprocess.Popen(
            [chromium(), *QUIET, *OFFLINE, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            preexec_fn=as_three_and_four,
            close_fds=False,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._buffer = b""
        self.said: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer; what the browser says meanwhile is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (heard := self._heard()).get("id") != self._number:
            self.said.append(heard)
        if "error" in heard:
            raise AssertionError(f"{method}: {heard['error']}")
        result: dict[str, Any] = heard["result"]
        return result

    def _heard(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        heard: dict[str, Any] = json.loads(text)
        return heard

    def page(self, url: str, *, width: int = 1280, dark: bool = False) -> "Page":
        """A tab with that address, in a context of its own: no cookies of others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.look(width=width, dark=dark)
        page.open(url)
        return page

    def close(self) -> None:
        """End it, with all its processes."""
        self.call("Browser.close")
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:  # it has written its profile, and lingers on a busy machine
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
        os.close(self._out)
        os.close(self._in)


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask this tab."""
        return self._browser.call(method, self._session, **parameters)

    def look(self, *, width: int, dark: bool) -> None:
        """How wide it is, and whether its user likes it dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        wanted = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def open(self, url: str) -> None:
        """Go there."""
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """What an expression comes to."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"]["exception"].get("description", done))
        return done["result"].get("value")

    def until(self, script: str) -> None:
        """As soon as it comes to something."""
        deadline_s = time.monotonic() + WITHIN_S
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline_s, (
                f"never true: {script}\n{self.problems()}\n{self.text()[:3000]}"
            )
            time.sleep(0.03)

    def text(self) -> str:
        """All that is shown."""
        return str(self.run("document.body.innerText"))

    def rows(self, where: str) -> list[list[str]]:
        """The cells of a table."""
        cells = "[...row.cells].map((cell) => cell.innerText.trim())"
        found: list[list[str]] = self.run(
            f"[...document.querySelectorAll({json.dumps(where)} + ' tbody tr')].map((row) => {cells})"
        )
        return found

    def legend(self, title: str) -> dict[str, str]:
        """The figures of a chart at the chosen time."""
        return dict(self.rows(f'.legend[aria-label="{title}, at the chosen time"]'))

    def press(self, key: str) -> None:
        """A key, as of a keyboard."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=KEYS[key],
                **extra,
            )

    def type(self, text: str) -> None:
        """Into what has the focus, instead of what is there."""
        self.run("document.activeElement.select && document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def problems(self) -> list[str]:
        """Everything that the console got, errors of scripts, and what was blocked."""
        found = []
        for said in self._browser.said:
            if said.get("sessionId") != self._session:
                continue
            parameters = said.get("params", {})
            if said["method"] == "Runtime.consoleAPICalled":
                found.append(str(parameters["args"]))
            elif said["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif said["method"] == "Log.entryAdded":
                found.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return found

    def addresses(self) -> list[str]:
        """Of everything that was asked for."""
        return [
            said["params"]["request"]["url"]
            for said in self._browser.said
            if said.get("sessionId") == self._session and said["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """What it looks like."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Open while it is used."""
    opened = Browser(profile)
    try:
        yield opened
    finally:
        opened.close()
