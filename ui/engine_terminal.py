"""The Engines page in a terminal: gates, ranking, contributions, flips, what-if and proposals; the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.condition_line import format_condition
from planner.criterion_names import criterion_name, with_names
from planner.proposals import Proposal
from planner.rereads import rereads
from planner.scoring import Contribution, Score
from planner.what_if_engine import Strip
from services.scores import WhatIf
from ui.terminal import say, table


def print_score(scored: Score, found: WhatIf, asked: tuple[Proposal, ...]) -> None:
    """All that the page shows, as tables."""
    names = {c.engine: c.engine_name for c in scored.candidates}
    say(scored.sentence)
    rows = [
        (c.engine_name, f"{100 * c.score:.0f}" if c.ranked else "stopped", c.advice.role, f"{c.confidence:.0%}",
         f"{c.by_confidence.get('unknown', 0.0):.0%}", f"{c.unmeasured_share:.0%}")
        for c in scored.candidates
    ]  # fmt: skip
    table("Engines", ("engine", "of 100", "role", "sure of", "unknown", "not measured"), rows)
    for c in scored.candidates:
        say(f"{c.engine_name}: {with_names(c.advice.reason)}")
    _table("Gates", ("engine", "gate", "state", "reason"), [
        (c.engine_name, g.gate, g.state, g.reason) for c in scored.candidates for g in c.gates if g.state != "pass"
    ], "Every engine passes every gate.")  # fmt: skip
    _contributions(scored)
    _flips(scored, names)
    _what_if(found, names)
    _table("Proposals for the plan", ("id", "why", "asks"), [
        (p.id, p.why, "\n".join(format_condition(c) for c in p.hypothesis.conditions)) for p in asked
    ], "The score asks for no hypothesis of its own.")  # fmt: skip
    for r in rereads(scored):
        say(f"Read again: {r.sentence}")


def score_json(scored: Score, found: WhatIf, asked: tuple[Proposal, ...]) -> dict[str, Any]:
    """The same as data."""
    return {
        "sentence": scored.sentence,
        **scored.model_dump(mode="json"),
        "what_if": {
            "users": found.users.model_dump(mode="json"),
            "shared_prefix": found.shared_prefix.model_dump(mode="json"),
            "outcomes": [o.model_dump(mode="json") for o in found.outcomes],
            "enough": [
                {"sentence": e.sentence, "suffices": e.suffices, **e.model_dump(mode="json")} for e in found.enough
            ],
        },
        "proposals": [{"id": p.id, **p.model_dump(mode="json")} for p in asked],
        "read_again": [r.model_dump(mode="json") for r in rereads(scored)],
    }


def _contributions(scored: Score) -> None:
    """One row a criterion that counts: its weight, and what each engine gains of 100, with its rating."""
    parts = {c.engine: {p.criterion: p for p in c.contributions} for c in scored.candidates}
    rows = [
        (criterion_name(w.criterion), f"{w.weight:.3f}", *(_points(p[w.criterion]) for p in parts.values()))
        for w in sorted(scored.weights, key=lambda w: -w.weight) if w.weight > 0
    ]  # fmt: skip
    total = ("score of 100", "1.000", *(f"{100 * c.score:4.1f}" for c in scored.candidates))
    columns = ("criterion", "weight", *(c.engine_name for c in scored.candidates))
    table("Contributions: points of 100 (rating of 3)", columns, [*rows, total])


def _points(p: Contribution) -> str:
    return f"{100 * p.contribution:4.1f} ({'?' if p.rating is None else p.rating})"


def _flips(scored: Score, names: dict[str, str]) -> None:
    flips = [
        (criterion_name(f.criterion), f"{f.weight:.2f}",
         f"{names[f.below.to]} below {f.below.at:.2f}" if f.below else "",
         f"{names[f.above.to]} above {f.above.at:.2f}" if f.above else "")
        for f in scored.flip_weights if f.nearest
    ]  # fmt: skip
    _table("Weights that would name another winner", ("criterion", "weight", "wins instead", "or"), flips,
           "No weight from 0 to 1 names another winner.")  # fmt: skip
    _table("Ratings of which one step would", ("engine", "criterion", "rated", "if it were", "then wins"), [
        (names[f.engine], criterion_name(f.criterion), "?" if f.rating is None else f.rating, f.becomes,
         names[f.winner])
        for f in scored.rating_flips
    ], "No single step of one rating changes the winner.")  # fmt: skip


def _table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[object, ...]], none: str) -> None:
    """A table, or what its absence means."""
    if rows:
        table(title, columns, rows)
    else:
        say(none)


def _what_if(found: WhatIf, names: dict[str, str]) -> None:
    for e in found.enough[:1]:
        say(f"When is {e.engine_name}, the simplest, enough? {e.sentence}")
        for gap in e.gaps:
            say(with_names(f"  lacks {gap}"))
    say(f"First by peak users: {_strip(found.users, names)}.")
    say(f"First by shared prefix: {_strip(found.shared_prefix, names)}.")
    table("If a requirement were another", ("what if", "comes first"), [
        (o.words, (names[o.first] if o.first else "nobody") + (" (changed)" if o.changes_winner else ""))
        for o in found.outcomes
    ])  # fmt: skip


def _strip(strip: Strip, names: dict[str, str]) -> str:
    return ", ".join(f"{names[x.engine]} {x.low:g} to {x.high:g}" for x in strip.reigns) or "nobody passes the gates"
