"""The pages in the order in which a team walks them: one row a page."""

from __future__ import annotations

from typing import NamedTuple


class PageInfo(NamedTuple):
    """Where a page lives, how it is called, and which page comes next."""

    file: str
    url: str
    title: str
    icon: str
    section: str
    help: str
    step: int | None = None
    next: str | None = None


PAGES: tuple[PageInfo, ...] = (
    PageInfo("pages/overview.py", "overview", "Overview", ":material/dashboard:", "",
             "State of every decision, what is near or fired, and what is missing."),
    PageInfo("pages/requirements.py", "requirements", "Requirements", ":material/checklist:", "Plan",
             "What the team needs, as versions. Contradictions are named.", 1, "sizing"),
    PageInfo("pages/sizing.py", "sizing", "Sizing", ":material/straighten:", "Plan",
             "What fits, how fast it can be, and how many units it takes.", 2, "engines"),
    PageInfo("pages/engines.py", "engines", "Engines", ":material/balance:", "Plan",
             "Gates, the explained score and the weights that would flip it.", 3, "poc-plan"),
    PageInfo("pages/poc_plan.py", "poc-plan", "PoC plan", ":material/science:", "Measure",
             "Hypotheses, contract, load points, launch commands and the plan file.", 4, "measure"),
    PageInfo("pages/measure.py", "measure", "Measure", ":material/speed:", "Measure",
             "Run the plan here, take in bundles, or fill results in by hand.", 5, "results"),
    PageInfo("pages/results.py", "results", "Results", ":material/monitoring:", "Measure",
             "Measured against required and predicted, and a verdict per hypothesis.", 6, "decision"),
    PageInfo("pages/decision.py", "decision", "Decision", ":material/gavel:", "Decide",
             "The record of the decision with the conditions that would flip it.", 7, "adr-log"),
    PageInfo("pages/adr_log.py", "adr-log", "ADR log", ":material/history_edu:", "Decide",
             "History, conditions today, integrity check and Markdown export.", 8),
    PageInfo("pages/catalogue.py", "catalogue", "Catalogue", ":material/menu_book:", "Reference",
             "Models, GPUs and engines with source and age."),
)  # fmt: skip

BY_URL: dict[str, PageInfo] = {p.url: p for p in PAGES}
