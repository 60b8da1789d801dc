"""What the results of a case come to, in a terminal: knee, capacity, units, ratios; the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.knee import Knee
from planner.measured_capacity import UnitsMeasured, capacity_words
from planner.theory import Ratio, Theory
from services.results import CandidateResult, RateCapacity
from ui.terminal import Argument, say, table

RESULTS_EXAMPLE = "results --case nortia --ttft 5"
RESULTS_ARGUMENTS = (
    Argument("--ttft", {"type": float, "metavar": "SECONDS", "help": "also: the rate kept at this first token"}),
    Argument("--utilisation", {"type": float, "metavar": "SHARE", "help": "load a unit to at most (default: 0.7)"}),
)  # fmt: skip


def print_results(
    found: Sequence[CandidateResult], asked: Sequence[RateCapacity], theory: Theory, warnings: Sequence[str]
) -> None:
    """A paragraph a candidate, the warnings, the knees at the asked first-token limit, and a table of ratios."""
    for one in found:
        _print_candidate(one)
    for warning in warnings:
        say(warning)
    for at in asked:
        say(f"{at.knee.candidate}, by {' and '.join(at.knee.levels)} alone ({_known(at.knee)}): {at.knee.sentence}")
        for u in at.units if at.knee.at else ():
            say(f"  {u.sentence}")
    if not theory.regimes:
        say("Measured over theory: no run of this case can be held against it.")
        return
    rows = [
        (r.setting.engine, r.setting.quantization, r.batches, r.setting.context, r.setting.mix,
         f"{r.measured_tok_s:.3g}", _ratio(r.over_bound), _ratio(r.over_planning), r.n,
         "used" if r.calibrates else "shown only")
        for r in theory.regimes
    ]  # fmt: skip
    table("Measured over theory, speed per user",
          ("engine", "quantization", "in flight", "context", "load", "tok/s", "over bound", "over planning", "points",
           "sizing"),
          rows)  # fmt: skip


def _print_candidate(one: CandidateResult) -> None:
    if not one.knees:
        say(f"{one.candidate}: no load is decided.")
        return
    say(f"{one.candidate}: one unit keeps {' and '.join(capacity_words(one.unit)) or 'the levels at no load'}.")
    for knee in one.knees:
        say(f"  {knee.way} loop, {knee.lengths} ({_known(knee)}): {knee.sentence}")
    if one.limit:
        say(f"  max_num_seqs {one.limit.max_num_seqs or 'none'}: {one.limit.reason}")
    for u in one.units:
        say(f"  {u.sentence}")
    if one.cost and one.cost.total_per_million_tokens is not None:
        say(f"  {one.cost.total_per_million_tokens:.2f} {one.cost.currency} per million tokens")


def _known(knee: Knee) -> str:
    return knee.kind.value if knee.kind else "not known"


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def results_json(
    found: Sequence[CandidateResult], asked: Sequence[RateCapacity], theory: Theory, warnings: Sequence[str]
) -> dict[str, Any]:
    """The same as data; the steps of a knee with the state of each."""
    return {
        "warnings": list(warnings),
        "candidates": [
            {
                "candidate": one.candidate,
                "knees": [_knee(k) for k in one.knees],
                "limit": one.limit.model_dump(mode="json") if one.limit else None,
                "unit": one.unit.model_dump(mode="json"),
                "units": [_units(u) for u in one.units],
                "cost": one.cost.model_dump(mode="json") if one.cost else None,
            }
            for one in found
        ],
        "at_ttft": [_knee(at.knee) | {"units": [_units(u) for u in at.units]} for at in asked],
        "regimes": [
            {
                "setting": r.setting.model_dump(mode="json"), "in_flight": r.batches, "kind": r.kind.value,
                "measured_tok_s": r.measured_tok_s, "points": r.n, "starts": r.starts, "calibrates": r.calibrates,
                "over_bound": r.over_bound._asdict(), "over_coverage": r.over_coverage._asdict(),
                "over_planning": r.over_planning._asdict(),
            }
            for r in theory.regimes
        ],
        "left_out": [x.model_dump(mode="json") for x in theory.left_out],
    }  # fmt: skip


def _units(u: UnitsMeasured) -> dict[str, Any]:
    return u.model_dump(mode="json") | {"units": u.units, "with_spare": u.units_with_spare, "decides": u.decides}


def _knee(k: Knee) -> dict[str, Any]:
    return {
        "candidate": k.candidate, "way": k.way, "lengths": k.lengths, "kind": k.kind.value if k.kind else None,
        "at": k.at.amount if k.at else None, "fails_at": k.fails_at.amount if k.fails_at else None,
        "sentence": k.sentence, "levels": list(k.levels),
        "steps": [{"point": s.point, "amount": s.amount, "state": s.verdict.state.value} for s in k.steps],
    }  # fmt: skip
