"""The hypotheses of a case in a terminal: in order, with what each costs and leads to; the same as JSON."""

from __future__ import annotations

from typing import Any

from planner.condition_line import format_condition
from planner.hypothesis_cost import Effort
from services.hypotheses import View
from ui.terminal import say, table


def print_hypotheses(found: View) -> None:
    """A table of cost and order, then what each asks, and what can be added."""
    ranked = found.order.ranked
    rows = [
        (i, r.hypothesis.id, round(r.alone.minutes), round(r.adds.minutes), f"{r.adds.tokens:,}",
         ", ".join(r.waits_for))
        for i, r in enumerate(ranked, 1)
    ]  # fmt: skip
    columns = ("", "id", "min alone", "min added", "tokens added", "waits for")
    table("Hypotheses, what could end the plan cheapest first", columns, rows)
    for i, r in enumerate(ranked, 1):
        say(f"{i}. {r.hypothesis.id}: {r.hypothesis.statement}")
        for condition in r.hypothesis.conditions:
            say(f"     {format_condition(condition)}")
        if told := r.hypothesis.warning or r.hypothesis.expectation:
            say(f"   {'' if r.hypothesis.warning else 'Expected: '}{told}")
        if known := found.known.get(r.hypothesis.id):
            say(f"   Known: {known}")
        say(f"   {r.reason} If rejected: {r.hypothesis.if_rejected}")
    total, rest = found.order.total, found.order.unasked
    say(f"Together {total.minutes:,.0f} min and {total.tokens:,} tokens, shared runs counted once; the plan runs "
        f"{rest.minutes:,.0f} min more that no hypothesis asks for.")  # fmt: skip
    if total.unpredicted:
        say(f"Counted at the plan's limit, since no speed is predicted: {', '.join(total.unpredicted)}.")
    table("Can be added", ("id", "tests", "asked", "min added", "tokens added"), [
        (o.id, o.title, o.when, round(o.adds.minutes), f"{o.adds.tokens:,}") for o in found.offers
    ])  # fmt: skip


def hypotheses_json(found: View) -> dict[str, Any]:
    """The same as data."""
    return {
        "hypotheses": [
            {"place": i, **r.hypothesis.model_dump(mode="json"),
             "conditions": [format_condition(c) for c in r.hypothesis.conditions], "prior": r.prior,
             "known": found.known.get(r.hypothesis.id, ""), "stakes": r.stakes, "waits_for": r.waits_for,
             "needed_by": r.needed_by, "alone": _effort(r.alone), "adds": _effort(r.adds), "reason": r.reason}
            for i, r in enumerate(found.order.ranked, 1)
        ],
        "total": _effort(found.order.total),
        "unasked": _effort(found.order.unasked),
        "offers": [{"id": o.id, "title": o.title, "when": o.when, "adds": _effort(o.adds)} for o in found.offers],
    }  # fmt: skip


def _effort(e: Effort) -> dict[str, Any]:
    return {"minutes": round(e.minutes, 1), "tokens": e.tokens, "unpredicted": e.unpredicted}
