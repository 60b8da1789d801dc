"""The whole walk by clicks in Chromium, over the app as `make run` starts it: requirements to a decision that re-opens.

Pictures of every step land in screenshots/ (ignored by git): look at them before calling a change done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from scripts.screenshots import CHROMIUM_FLAGS, ROOT, running_app, settle

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
PICTURES = ROOT / "screenshots" / "walk"
WAIT_MS = 30_000
LAST_DAY = date.today() - timedelta(days=1)


def usage(days: int, peak: int, last: date = LAST_DAY) -> bytes:
    """A monitoring export: one row a day."""
    rows = [f"{last - timedelta(days=i)},{peak - i % 2},{400 + i}" for i in range(days)]
    return "\n".join(["date,peak_in_flight,requests", *rows]).encode()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM.exists(), "Chromium is missing: install Debian's package chromium."
    PICTURES.mkdir(parents=True, exist_ok=True)
    with running_app(tmp_path_factory.mktemp("home")) as url, sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 900}, base_url=url)
        page.set_default_timeout(WAIT_MS)
        expect.set_options(timeout=WAIT_MS)
        yield page
        browser.close()


def picture(page: Page, name: str) -> None:
    settle(page)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def heading(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", name=name, exact=True, level=1)).to_be_visible()
    settle(page)


def go(page: Page, name: str) -> None:
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
    heading(page, name)


def bring_in(page: Page, content: bytes) -> None:
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(
        {"name": "usage.csv", "mimeType": "text/csv", "buffer": content}
    )
    settle(page)
    page.get_by_role("button", name="Bring in").click()
    settle(page)


def test_a_deep_link_opens_the_app_at_that_page_for_the_first_visitor(page: Page):
    page.goto("/sizing?case=nortia")
    heading(page, "Sizing")
    expect(page.get_by_test_id("stSidebarNav").get_by_role("link", name="ADR log")).to_be_visible()


def test_a_link_opens_the_case_that_it_names_with_its_measurements(page: Page):
    page.goto("/results?case=two-cores")
    heading(page, "Results")
    # total output of the middle starts of three at four in flight: 807.7 over 1,189.6 tok/s
    expect(page.get_by_text(re.compile(r"fails at 0\.679 x")).first).to_be_visible()
    picture(page, "0-two-cores")
    go(page, "Overview")
    assert "case=two-cores" in page.url


def test_a_click_on_a_rating_opens_its_evidence(page: Page):
    page.goto("/engines?case=nortia")
    heading(page, "Engines")
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    settle(page)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 54)  # the last column, the first row below the head
    expect(page.get_by_text("Hugging Face TGI · Batching")).to_be_visible()
    picture(page, "0-evidence")


def test_the_walk_begins_at_the_overview_of_the_shipped_case(page: Page):
    page.goto("/")
    heading(page, "Overview")
    expect(
        page.get_by_text("3 units by the bound, 13 when experts touched are counted, 17 by the planning value")
    ).to_be_visible()
    picture(page, "1-overview")


def test_requirements_name_a_contradiction_and_keep_versions(page: Page):
    go(page, "Requirements")
    page.get_by_label("Signing as", exact=True).fill("Aiko")
    page.get_by_label("Signing as", exact=True).press("Enter")
    settle(page)
    answer = page.get_by_label("… for answers of this many tokens", exact=True)
    answer.fill("500")
    page.get_by_role("button", name="Save as a new version").click()
    # 500 tokens within 5 s need 500 / (5 - 2) = 167 tok/s after a first token at 2 s, 100 without the wait.
    expect(page.get_by_text("need 167 tok/s after a first token at 2 s (100 without the wait)")).to_be_visible()
    picture(page, "2-contradiction")
    page.get_by_label("… for answers of this many tokens", exact=True).fill("75")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("Saved as version 3.")).to_be_visible()
    expect(page.get_by_text("need 167 tok/s")).to_have_count(0)


def test_a_value_out_of_range_is_one_sentence_and_nothing_is_lost(page: Page):
    page.get_by_label("Peak users at once, to", exact=True).fill("10")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("the upper end 10 is below the lower end 20")).to_be_visible()
    expect(page.get_by_label("Peak users at once, to", exact=True)).to_have_value("10")
    picture(page, "3-bad-value")
    page.get_by_label("Peak users at once, to", exact=True).fill("50")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_text("Nothing changed: version 3 stands.")).to_be_visible()


def test_sizing_engines_and_plan_follow_by_their_primary_action(page: Page):
    page.get_by_role("button", name="Next: Sizing").click()
    heading(page, "Sizing")
    for seed_figure in ("5 min 12 s", "42.4 s"):
        expect(page.get_by_text(seed_figure)).to_be_visible()
    picture(page, "4-sizing")
    page.get_by_role("button", name="Next: Engines").click()
    heading(page, "Engines")
    expect(page.get_by_text(re.compile("vLLM comes first")).first).to_be_visible()
    picture(page, "5-engines")
    page.get_by_role("button", name="Next: PoC plan").click()
    heading(page, "PoC plan")
    expect(page.get_by_text(re.compile("Already doubtful: predicted to fail")).first).to_be_visible()
    picture(page, "6-plan")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the plan file").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("schema_version: 1")


def test_results_read_unmeasured_where_nobody_measured(page: Page):
    go(page, "Results")
    expect(page.get_by_text("Nothing was measured on this machine yet.")).to_be_visible()
    expect(page.get_by_text(re.compile("fails at 8.13 s; as imported")).first).to_be_visible()
    picture(page, "7-results")


def test_a_named_person_accepts_the_decision(page: Page):
    go(page, "Decision")
    page.get_by_label("Decide", exact=True).fill("Aiko, Ben")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_text("Saved.", exact=True)).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_text("Proposed.")).to_be_visible()
    settle(page)
    page.get_by_role("tab", name="Checklist").click()
    picture(page, "8-checklist")
    page.get_by_role("button", name="Accept as Aiko").click()
    expect(page.get_by_text("ADR-0001 is accepted by Aiko.")).to_be_visible()
    picture(page, "9-accepted")


@pytest.mark.parametrize(
    ("days", "peak", "last"),
    [(28, 6, LAST_DAY - timedelta(days=56)), (14, 5, LAST_DAY - timedelta(days=39))],
    ids=["a peak of 6", "14 days"],
)
def test_negative_twins_leave_the_decision_closed(page: Page, days: int, peak: int, last: date):
    go(page, "Measure")
    page.get_by_text("Observed usage", exact=True).click()
    settle(page)
    bring_in(page, usage(days, peak, last))
    expect(page.get_by_text("A condition fired")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_28_days_of_five_users_reopen_it_and_offer_the_draft(page: Page):
    go(page, "Measure")
    page.get_by_text("Observed usage", exact=True).click()
    settle(page)
    bring_in(page, usage(28, 5))
    picture(page, "10-fired")
    go(page, "Overview")
    expect(page.get_by_text("A condition fired and waits for an answer.")).to_be_visible()
    picture(page, "11-overview-fired")
    go(page, "ADR log")
    picture(page, "12-log-fired")
    page.get_by_role("button", name="Re-open: begin the superseding draft").click()
    expect(page.get_by_text("The superseding draft is begun.")).to_be_visible()
    go(page, "Decision")
    expect(page.get_by_text("Once accepted, this supersedes")).to_be_visible()
    picture(page, "13-superseding")


def test_the_log_is_whole_and_leaves_as_markdown(page: Page):
    go(page, "ADR log")
    page.get_by_role("tab", name="Integrity and export").click()
    settle(page)
    page.get_by_role("button", name="Check all records").click()
    expect(page.get_by_text("Every record is whole.")).to_be_visible()
    picture(page, "14-whole")
