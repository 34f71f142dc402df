"""A page in headless Chromium, and what it says on its console."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CONSOLE = re.compile(r':CONSOLE:\d+\] "(.*)", source:')
# Pictures that cannot be shown are no error by themselves; this makes them one.
SAY_WHAT_IS_BROKEN = """<script>addEventListener("load", () => {
  for (const image of document.images) if (!image.naturalWidth) console.error("broken picture: " + image.alt);
});</script>"""


def chromium() -> str:
    """The program; skips the test where there is none."""
    found = [path for name in NAMES if (path := shutil.which(name)) is not None]
    if not found:
        pytest.skip(f"no Chromium: none of {', '.join(NAMES)} is installed (scripts/install_chromium.sh)")
    return found[0]


def console_messages(page: Path, scratch: Path) -> tuple[str, list[str]]:
    """The page as the browser understood it, and every message on its console."""
    watched = scratch / "watched.html"
    watched.write_text(page.read_text().replace("</body>", f"{SAY_WHAT_IS_BROKEN}</body>"))
    done = subprocess.run(
        [
            chromium(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=5000",
            f"--user-data-dir={scratch / 'profile'}",
            "--dump-dom",
            watched.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    return done.stdout, CONSOLE.findall(done.stderr)
