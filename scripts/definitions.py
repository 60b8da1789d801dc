"""Write the generated tables of docs/definitions.md; with --check, say whether they are current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bundle.validity import RULES  # noqa: E402
from planner.comparison import OUTCOMES  # noqa: E402
from planner.contract import FIELDS, PARITY  # noqa: E402
from planner.evaluate import ALL_OF, ANY_OF  # noqa: E402
from planner.metrics import METRICS  # noqa: E402
from scripts.generated import table, write_or_check  # noqa: E402

STATES = (
    ("unmeasurable", "no metric, statistic or load point of the plan could ever decide it"),
    ("unmeasured", "measurable, no evidence yet"),
    ("invalid run", "evidence only from runs whose instrument or conditions cannot be trusted for this metric"),
    ("expired", "older than allowed, or a material contract field moved beyond the version tolerance"),
    ("conflicting", "two valid pieces of the same standing disagree"),
    ("undecided", "the evidence cannot decide at this sample size"),
    ("near", "decided, within the stated margin; says which side"),
    ("holds / fails", "the rest"),
)


def blocks() -> dict[str, str]:
    """The generated blocks by marker."""
    metrics = [
        (f"`{m.id}`", m.unit, m.level.value, m.direction.value, ", ".join(m.statistics), m.definition)
        for m in METRICS.values()
    ]
    fields = [(f"`{f.name}`", f.part, "material" if f.material else "context", f.between, f.meaning) for f in FIELDS]
    rules = [
        (f"`{r.id}`", f"`{r.fact}` > {r.limit:g}", ", ".join(r.spoils) or "note only",
         re.sub(r"\{[^}]*\}", "…", r.sentence))
        for r in RULES
    ]  # fmt: skip
    order = [(str(i), a, b) for i, (a, b) in enumerate(zip(ALL_OF, ANY_OF, strict=True), 1)]
    return {
        "metrics": table(("metric", "unit", "level", "better", "statistics", "definition"), metrics),
        "states": table(("state, in this order", "when"), [(f"**{s}**", w) for s, w in STATES]),
        "combine": "Of any two states the one higher in the column speaks.\n\n"
        + table(("", "all of", "any of"), order),
        "contract": table(("field", "part", "change", "between candidates", "meaning"), fields),
        "parity": table(("class", "what it takes, what it allows"), [(f"**{s}**", w) for s, w in PARITY.items()]),
        "outcomes": table(("outcome", "when"), [(f"**{o}**", w) for o, w in OUTCOMES.items()]),
        "validity": table(("rule", "fires when", "spoils", "sentence"), rules),
    }


if __name__ == "__main__":
    write_or_check(ROOT / "docs" / "definitions.md", blocks())
