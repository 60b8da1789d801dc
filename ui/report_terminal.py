"""The report of a PoC from a terminal, into a file whose name says in which form."""

from __future__ import annotations

from pathlib import Path

from planner.errors import InputError
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.terminal import Argument, say

REPORT_EXAMPLE = "report --case nortia --out report.html"
REPORT_ARGUMENTS = (
    Argument("--out", {"type": Path, "required": True, "metavar": "FILE", "help": "report.html or report.md"}),
)  # fmt: skip
FORMS = (".html", ".md")


def write_report(ws: Workspace, state: CaseState, path: Path) -> None:
    """Write the report; raises InputError for a name that says no form and for a place that cannot be written."""
    form = path.suffix.lower()
    if form not in FORMS:
        raise InputError(f"{path.suffix or 'a name without ending'} is no form of a report.", where=str(path),
                         fix=f"End the name in {' or '.join(FORMS)}.")  # fmt: skip
    text = _drawn(ws, state, form)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(path), fix="Check the path.") from e
    say(str(path))


def _drawn(ws: Workspace, state: CaseState, form: str) -> str:
    # The pages' modules are loaded here alone: no other command waits for them, and their caches would say on stderr at
    # every start that no page is being served.
    from streamlit.logger import set_log_level

    set_log_level("ERROR")
    from ui.report import report_of
    from ui.report_html import as_html
    from ui.report_markdown import as_markdown

    return {".html": as_html, ".md": as_markdown}[form](report_of(ws, state))
