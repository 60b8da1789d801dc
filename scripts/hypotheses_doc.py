"""Write the generated tables of docs/hypotheses.md; with --check, say whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planner.hypotheses import BAND_PARALLEL, BAND_SINGLE, TEMPLATES  # noqa: E402
from planner.hypothesis_order import DOUBT, WEIGHT  # noqa: E402
from scripts.generated import table, write_or_check  # noqa: E402


def blocks() -> dict[str, str]:
    """The generated blocks by marker."""
    rows = [
        (f"`{t.id}`", t.title, t.when, "<br>".join(f"`{line}`" for line in t.lines), t.if_rejected, t.stakes,
         ", ".join(t.depends_on) or "nothing")
        for t in TEMPLATES
    ]  # fmt: skip
    doubt = [(prior, f"{x:g}") for prior, x in DOUBT.items()]
    weight = [(stakes, f"{x:g}") for stakes, x in WEIGHT.items()]
    bands = [("1 in flight", *(f"{x:g} x" for x in BAND_SINGLE)), ("more", *(f"{x:g} x" for x in BAND_PARALLEL))]
    return {
        "templates": table(("id", "tests", "asked", "condition lines", "if rejected", "a no", "waits for"), rows),
        "doubt": table(("beforehand", "doubt"), doubt),
        "stakes": table(("a no", "stakes"), weight),
        "bands": table(("regime", "lower end", "upper end"), bands),
    }


if __name__ == "__main__":
    write_or_check(ROOT / "docs" / "hypotheses.md", blocks())
