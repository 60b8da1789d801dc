"""How long until the Results page of a large case stands, and until it answers? A real server, a real browser.

    python -m perf.results            200 bundles, 2,000,000 requests: made up, simulated, in a temporary workspace
    python -m perf.results --json     the same as JSON
    python -m perf.results --home DIR --bundles 20 --requests 200000      keep the workspace, or use one that is there

The server runs and another case's results were looked at, so that modules are loaded; of the large case nothing was
read. First paint: from opening its address to its first chart. An interaction: from the click on a choice to the last
change on the screen, the median of five. Exit code: 0 when every limit was reached, 1 when one was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench.machine import cpu_model
from bench.telemetry import family_of
from perf.large_case import CASE, make
from scripts.screenshots import CHROMIUM_FLAGS, running_app, settle

BUNDLES, REQUESTS = 200, 2_000_000
FIRST_PAINT_MS, INTERACTION_MS = 2000.0, 300.0
OTHER_CASE = "two-cores"
CHROMIUM = "/usr/bin/chromium"
TRIES = 5
QUIET_MS = 400  # nothing on the screen has changed for so long: it stands
MAIN = '[data-testid="stMain"]'
CHART = f'{MAIN} [data-testid="stVegaLiteChart"] :is(canvas, svg)'
# Notes when a visitor first sees what, when the page's content last changed and when it was last clicked, in ms.
# Marks that Streamlit sets and takes away around an element while its script ends are no content.
WATCH = """
window.seen = {}; window.changed = 0; window.clicked = 0; window.stirred = 0;
const wanted = WANTED;
const content = (m) => (m.type !== 'attributes' || m.target.tagName === 'CANVAS')
  && (m.target.parentElement ?? m.target).closest?.('[data-testid="stMain"]');
new MutationObserver((all) => {
  if (all.some(content)) window.changed = performance.now();
  window.stirred = performance.now();
  for (const [name, selector] of Object.entries(wanted))
    if (!(name in window.seen) && document.querySelector(selector)) window.seen[name] = performance.now();
}).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
document.addEventListener('click', () => { window.clicked = performance.now(); }, true);
"""
STANDS = f"""() => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === 'notRunning'
  && performance.now() - window.stirred > {QUIET_MS}"""


def timed(home: Path) -> dict[str, Any]:
    """Milliseconds of one first visit and of choices on the page, and the server's peak memory in MB."""
    with running_app(home) as url, _browser() as page:
        page.goto(f"{url}/results?case={OTHER_CASE}")
        settle(page)
        page.add_init_script(WATCH.replace("WANTED", json.dumps({"heading": f"{MAIN} h1", "first paint": CHART})))
        page.goto(f"{url}/results?case={CASE}")
        page.wait_for_selector(CHART)
        page.wait_for_function(STANDS)
        seen = page.evaluate("() => ({...window.seen, 'whole page': window.changed})")
        choices = {
            f"another {name.lower()}": _choose(page, name) for name in ("Run", "Load point")
        } | {"another candidate's TTFT": _switch(page)}  # fmt: skip
        return {"visit_ms": seen, "choice_ms": choices, "server_peak_mb": _peak_mb()}


@contextmanager
def _browser() -> Iterator[Page]:
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        yield page
        browser.close()


def _choose(page: Page, label: str) -> float:
    """Median of several choices in a list."""
    took = []
    for i in range(TRIES):
        page.get_by_test_id("stSelectbox").filter(has_text=re.compile(f"^{label}")).get_by_role("combobox").click()
        page.get_by_role("option").nth(i).wait_for()
        page.wait_for_function(STANDS)
        page.get_by_role("option").nth(i).click()
        took.append(_stands(page))
    return statistics.median(took)


def _switch(page: Page) -> float:
    """Median of several switches between the candidates of the TTFT chart."""
    buttons = page.get_by_test_id("stButtonGroup").first.get_by_role("radio")
    took = []
    for i in range(TRIES):
        buttons.nth((i + 1) % 2).click()
        took.append(_stands(page))
    return statistics.median(took)


def _stands(page: Page) -> float:
    """Milliseconds from the last click to the last change after it, once nothing changes any more."""
    page.wait_for_function("() => window.changed > window.clicked")
    page.wait_for_function(STANDS)
    return float(page.evaluate("() => window.changed - window.clicked"))


def _peak_mb() -> float:
    """The largest resident memory that the app's process has had (Linux /proc)."""
    for pid in family_of(os.getpid()):
        proc = Path(f"/proc/{pid}")
        if b"streamlit" in (proc / "cmdline").read_bytes():
            return int(re.findall(r"VmHWM:\s+(\d+)", (proc / "status").read_text())[0]) / 1024
    raise RuntimeError("the app's process was not found")


def report(home: Path, bundles: int, requests: int) -> dict[str, Any]:
    """The times with their limits, on a workspace that is made when it is not there."""
    if not (home / "flipline.db").exists():
        make(home, bundles, requests)
    before = os.getloadavg()[0]
    found = timed(home)
    reached = found["visit_ms"]["first paint"] < FIRST_PAINT_MS and all(
        ms < INTERACTION_MS for ms in found["choice_ms"].values()
    )
    return {"machine": cpu_model(), "cores": os.cpu_count(), "load_average": before,
            "bundles": bundles, "requests": requests, **found,
            "reached": reached}  # fmt: skip


def in_words(found: dict[str, Any]) -> str:
    """The report as lines."""
    case = f"{found['bundles']:,} bundles, {found['requests']:,} requests"
    lines = [f"{found['machine']}, {found['cores']} cores: {case}; load average {found['load_average']:.1f}"]
    lines += [
        f"  {what:28s} {ms:6,.0f} ms" + (f"  (limit {FIRST_PAINT_MS:,.0f})" if what == "first paint" else "")
        for what, ms in found["visit_ms"].items()
    ]
    lines += [f"  {what:28s} {ms:6,.0f} ms  (limit {INTERACTION_MS:,.0f})" for what, ms in found["choice_ms"].items()]
    lines.append(f"  {'memory of the app at most':28s} {found['server_peak_mb']:6,.0f} MB")
    return "\n".join([*lines, "every limit reached" if found["reached"] else "a limit was missed"])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m perf.results", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--bundles", type=int, default=BUNDLES)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="in all bundles together")
    parser.add_argument("--home", type=Path, help="folder of the workspace, kept afterwards")
    args = parser.parse_args()
    with TemporaryDirectory() as scratch:
        found = report(args.home or Path(scratch) / "home", args.bundles, args.requests)
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
