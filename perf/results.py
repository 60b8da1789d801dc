"""How long until the Results page of a large case stands, and until it answers? A real server, a real browser.

    python -m perf.results            200 bundles, 2,000,000 requests: made up, simulated, in a temporary workspace
    python -m perf.results --json     the same as JSON
    python -m perf.results --home DIR --bundles 20 --requests 200000      keep the workspace, or use one that is there

The server runs and another case's results were looked at, so that modules are loaded and the browser has its files; of
the large case nothing was read. First paint: from opening the address to the first animation frame that holds the first
chart's marks. An interaction: from the click to the first frame in which all that it redraws is drawn otherwise than
before; the median of five. Exit code: 0 when every limit was reached, 1 when one was missed, 2 when the page did
not answer at all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page, TimeoutError, sync_playwright

from bench.machine import cpu_model
from bench.telemetry import family_of
from perf.large_case import CASE, make
from scripts.screenshots import CHROMIUM_FLAGS, running_app, settle

BUNDLES, REQUESTS = 200, 2_000_000
FIRST_PAINT_MS, INTERACTION_MS = 2000.0, 300.0
OTHER_CASE = "two-cores"
CHROMIUM = "/usr/bin/chromium"
TRIES = 5
NO_ANSWER_MS = 20_000
HEADING = '[data-testid="stMain"] h1'


def _named(words: str) -> str:
    """The chart or table whose words for a screen reader hold these."""
    return f'[data-testid="stElementContainer"]:has([aria-label*="{words}"])'


FIRST = {"heading": [HEADING], "first paint": [_named("Speed per user against requests in flight")]}
ONE_RUN = [_named(" requests as bars over ")]
# In the page: `drawn` says when all parts of a thing first showed something else than before, in ms of its own clock.
# A chart is told apart by its first and last mark, and is nothing while it has none; anything else by its words.
# Looking costs the page time: a part is sought anew only where it has gone, in frames before which something changed.
WATCH = """
window.drawn = {}; window.waiting = {}; window.clicked = 0; window.stirred = 0; window.changed = true;
const parts = {};
const part_of = (selector) => {
  if (!parts[selector]?.isConnected || !parts[selector].matches(selector))
    parts[selector] = document.querySelector(selector);
  return parts[selector];
};
const shown = (selector) => {
  const part = part_of(selector);
  const chart = part?.querySelector('svg.marks');
  if (!chart) return part?.innerText || null;
  const marks = chart.querySelectorAll('[class*=role-mark] path');
  return marks.length ? [marks[0], marks[marks.length - 1]].map((m) => m.outerHTML).join() + marks.length : null;
};
window.await_change = (name, selectors) => { window.waiting[name] = selectors.map((s) => [s, shown(s)]); };
window.unchanged = (parts) => parts.filter(([selector, before]) => [null, before].includes(shown(selector)));
const look = () => {
  const waiting = window.changed ? Object.entries(window.waiting) : [];
  window.changed = false;
  for (const [name, parts] of waiting)
    if (!unchanged(parts).length) {
      window.drawn[name] = performance.now();
      delete window.waiting[name];
    }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
new MutationObserver(() => { window.changed = true; })
  .observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
new MutationObserver(() => { window.stirred = performance.now(); })
  .observe(document, {subtree: true, childList: true, characterData: true});
document.addEventListener('click', () => { window.clicked = performance.now(); }, true);
"""
STANDS = """() => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === 'notRunning'
  && performance.now() - window.stirred > 300"""


class NoAnswer(RuntimeError):
    """The page did not do what was waited for."""


def timed(home: Path) -> dict[str, Any]:
    """Milliseconds of one first visit and of choices on the page, and the server's peak memory in MB."""
    with running_app(home) as url, _browser() as page:
        page.goto(f"{url}/results?case={OTHER_CASE}")
        settle(page)
        page.add_init_script(WATCH + f"for (const [k, v] of Object.entries({json.dumps(FIRST)})) await_change(k, v);")
        page.goto(f"{url}/results?case={CASE}")
        visit = {name: _when_drawn(page, name) for name in FIRST}
        _stand(page)
        visit["whole page"] = float(page.evaluate("() => window.stirred"))
        choices = {name: _median(page, name, parts, choose) for name, (parts, choose) in CHOICES.items()}
        return {"visit_ms": visit, "choice_ms": choices, "server_peak_mb": _peak_mb()}


@contextmanager
def _browser() -> Iterator[Page]:
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=list(CHROMIUM_FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(NO_ANSWER_MS)
        yield page
        browser.close()


def _from_list(label: str) -> Callable[[Page, int], None]:
    """Open a list, wait until the page stands, and click an entry that is not the chosen one."""

    def choose(page: Page, i: int) -> None:
        box = page.get_by_test_id("stSelectbox").filter(has_text=re.compile(f"^{label}")).get_by_role("combobox")
        box.scroll_into_view_if_needed()
        _stand(page)  # scrolling would close the list again
        box.click()
        _stand(page)
        page.get_by_role("option").nth(i + 1).click()

    return choose


def _candidate(page: Page, i: int) -> None:
    page.get_by_test_id("stButtonGroup").first.get_by_role("radio").nth((i + 1) % 2).click()


# What is clicked, and all that it redraws.
CHOICES: dict[str, tuple[list[str], Callable[[Page, int], None]]] = {
    "another run": (ONE_RUN, _from_list("Run")),
    "another load point": (ONE_RUN, _from_list("Load point")),
    "another candidate's TTFT": ([_named("TTFT percentiles against")], _candidate),
}


def _median(page: Page, name: str, parts: list[str], choose: Callable[[Page, int], None]) -> float:
    took = []
    for i in range(TRIES):
        page.evaluate("([name, parts]) => { delete window.drawn[name]; await_change(name, parts); }", [name, parts])
        choose(page, i)
        took.append(_when_drawn(page, name) - float(page.evaluate("() => window.clicked")))
        _stand(page)
    return statistics.median(took)


def _when_drawn(page: Page, name: str) -> float:
    try:
        return float(page.wait_for_function("(name) => window.drawn[name]", arg=name).json_value())
    except TimeoutError as e:
        parts = page.evaluate("(name) => unchanged(window.waiting[name] ?? []).map(([selector]) => selector)", name)
        raise NoAnswer(f"{name}: {'; '.join(parts)} did not change within {NO_ANSWER_MS / 1000:g} s") from e


def _stand(page: Page) -> None:
    """Wait until the script has ended and the page has not changed for a moment."""
    try:
        page.wait_for_function(STANDS)
    except TimeoutError as e:
        raise NoAnswer(f"the page went on changing for {NO_ANSWER_MS / 1000:g} s") from e


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
        try:
            found = report(args.home or Path(scratch) / "home", args.bundles, args.requests)
        except NoAnswer as e:
            print(f"no answer: {e}", file=sys.stderr)
            return 2
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
