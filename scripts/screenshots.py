"""Start the app on a workspace and take a picture of every page, light and dark: what a review looks at.

python scripts/screenshots.py OUT [--home FOLDER] [--case SLUG] [--width 1280] [--only overview,sizing]
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ui.registry import PAGES  # noqa: E402

CHROMIUM_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def running_app(home: Path) -> Iterator[str]:
    """The app on a port of its own, stopped afterwards; yields its address."""
    port = free_port()
    app = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT, env=os.environ | {"FLIPLINE_HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, app)
        yield url
    finally:
        app.terminate()
        app.wait(timeout=20)


def wait_until_healthy(url: str, app: subprocess.Popen[bytes]) -> None:
    """Wait for the app's health answer; raises RuntimeError when it ended instead."""
    while True:
        if app.poll() is not None:
            raise RuntimeError(f"the app ended with code {app.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)


# The page has a heading, its script has ended, no part of it is awaited, and nothing was drawn for 300 ms: a click is
# answered within that time, and a chart is drawn after its script has ended.
SETTLED = """() => new Promise((done) => {
  const ready = () => document.querySelector('h1') && !document.querySelector('[data-testid="stSkeleton"]') &&
    document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]');
  let quiet;
  const wait = () => { clearTimeout(quiet); quiet = setTimeout(() => ready() ? end() : wait(), 300); };
  const drawing = new MutationObserver(wait);
  const end = () => { drawing.disconnect(); done(true); };
  drawing.observe(document, {attributes: true, characterData: true, childList: true, subtree: true});
  wait();
})"""


def settle(page: Page) -> None:
    """Wait until the script has run and charts are drawn."""
    page.wait_for_function(SETTLED, timeout=60_000)


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--case", default="nortia")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--only", default="")
    parser.add_argument("--schemes", default="light,dark")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wanted = set(given.only.split(",")) - {""}
    with (
        tempfile.TemporaryDirectory() as scratch,
        running_app(given.home or Path(scratch)) as url,
        sync_playwright() as p,
    ):
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=list(CHROMIUM_FLAGS))
        for scheme in given.schemes.split(","):
            page = browser.new_page(viewport={"width": given.width, "height": 800}, color_scheme=scheme)
            for info in PAGES:
                if wanted and info.url not in wanted:
                    continue
                address = "" if info is PAGES[0] else Path(info.file).stem  # as app.py names its pages
                page.goto(f"{url}/{address}?case={given.case}")
                settle(page)
                height = page.evaluate("() => document.querySelector('[data-testid=\"stMain\"]')?.scrollHeight ?? 800")
                page.set_viewport_size({"width": given.width, "height": min(6000, int(height) + 40)})
                page.wait_for_timeout(400)
                page.screenshot(path=given.out / f"{given.case}-{info.url}-{scheme}.png")
                page.set_viewport_size({"width": given.width, "height": 800})
        browser.close()


if __name__ == "__main__":
    main()
