"""Write the generated tables of docs/definitions.md; with --check, say whether they are current."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bundle.validity import RULES  # noqa: E402
from planner.contract import FIELDS  # noqa: E402
from planner.evaluate import ALL_OF, ANY_OF  # noqa: E402
from planner.metrics import METRICS  # noqa: E402

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


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


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
        "validity": table(("rule", "fires when", "spoils", "sentence"), rules),
    }


def render(text: str) -> str:
    """The document with its blocks filled in."""
    for name, body in blocks().items():
        pattern = rf"<!-- {name} -->\n.*?<!-- /{name} -->"
        text = re.sub(pattern, lambda _, n=name, b=body: f"<!-- {n} -->\n{b}\n<!-- /{n} -->", text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    path = ROOT / "docs" / "definitions.md"
    old = path.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit(0 if render(old) == old else "docs/definitions.md is not current: run python scripts/definitions.py")
    path.write_text(render(old), encoding="utf-8")
