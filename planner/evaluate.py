"""evaluate(condition, evidence, context) -> Verdict: the one place where anything is called true or false.

Pure, total, independent of the order of evidence. The states are tried in the order of conditions.State.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from planner.condition_line import EVERY_POINT, format_test
from planner.conditions import (
    STANDING,
    Condition,
    Context,
    Evidence,
    Kind,
    PassedOver,
    State,
    Verdict,
)
from planner.contract import Contract, moved_fields, parity
from planner.deciding import Decision, decide, over_starts, per_start
from planner.metrics import Level, quantity

OF_A_START = frozenset({"started", "startup_s", "kv_capacity_tokens"})
PER_TOKEN = frozenset({"output_tok_s", "user_tok_s", "tpot_ms", "itl_ms"})
PREDICTIONS = (Kind.PLANNING, Kind.COVERAGE, Kind.BOUND, Kind.SIMULATED)


def evaluate(condition: Condition, evidence: Iterable[Evidence], context: Context) -> Verdict:
    """Judge one condition. Never raises for evidence it cannot use; it says so in the verdict."""
    pieces = sorted(evidence, key=lambda e: e.id)
    points = _points(condition, pieces, context)
    if isinstance(points, Verdict):
        return points
    verdicts = [_at_point(condition, point, pieces, context) for point in points]
    if len(verdicts) == 1:
        return verdicts[0]
    return combine("all of" if condition.quantifier == "every" else "any of", verdicts)


def _points(condition: Condition, pieces: Sequence[Evidence], context: Context) -> list[str | None] | Verdict:
    """The load points to judge at, or the verdict that there can be none."""
    level = condition.of.level
    if level in (Level.DEMAND, Level.STATIC) or condition.metric in OF_A_START:
        if level is Level.DEMAND and not context.observes_demand:
            return _unmeasurable(condition, "production is not observed; connect request logs or monitoring")
        return [None]
    if condition.statistic not in condition.of.statistics:
        return _unmeasurable(condition, f"{condition.of.name} has no statistic {condition.statistic!r}")
    seen = {e.load_point for e in pieces if e.metric == condition.metric and e.load_point}
    planned = set(context.points) if context.points is not None else seen
    if not condition.load_points:
        return _unmeasurable(condition, f"{condition.of.name} needs a load point; add 'at ...'")
    if condition.load_points == (EVERY_POINT,):
        if not planned:
            return _unmeasured(condition, "no load point is planned yet")
        return list[str | None](sorted(planned))
    unknown = [p for p in condition.load_points if context.points is not None and p not in planned | seen]
    if unknown:
        return _unmeasurable(condition, f"no load point {unknown[0]!r} in the plan; add it there")
    return list(condition.load_points)


def _at_point(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> Verdict:
    here = condition.at(point) if point else condition
    if here.over:
        return _ratio(here, point, pieces, context)
    chosen = _choose(here, here.candidate, point, pieces, context)
    if chosen.state:
        return _open_verdict(here, chosen)
    decision = decide(here, chosen.pieces)
    return _closed_verdict(here, decision, chosen, _conflict(here, chosen.pieces, decision), ())


class _Chosen(NamedTuple):
    """Pieces of the best standing, or the state that says why there are none."""

    pieces: tuple[Evidence, ...]
    passed_over: tuple[PassedOver, ...]
    expectation: str
    state: State | None = None
    why: str = ""


def _choose(
    condition: Condition, candidate: str | None, point: str | None, pieces: Sequence[Evidence], context: Context
) -> _Chosen:
    passed: list[PassedOver] = []
    fitting: list[Evidence] = []
    predictions: list[Evidence] = []
    for e in pieces:
        if e.metric != condition.metric or (candidate and e.candidate != candidate):
            continue
        if e.load_point != point and not (point is None and condition.of.level is Level.SERVER):
            continue
        if e.kind in PREDICTIONS:
            if not _other_load(e, point, context):
                predictions.append(e)
            continue
        reason = _unfit(condition, e, point, context)
        if reason:
            passed.append(PassedOver(evidence=e.id, reason=reason))
        else:
            fitting.append(e)
    expectation = _expectation(condition, predictions)

    def give(state: State, why: str, extra: Sequence[PassedOver] = ()) -> _Chosen:
        return _Chosen((), tuple(passed) + tuple(extra), expectation, state, why)

    if not fitting:
        return give(State.UNMEASURED, _what_would_decide(condition, point))
    several = sorted({e.candidate or "" for e in fitting})
    if len(several) > 1:
        return give(State.UNMEASURABLE, f"it names no candidate, and there are {', '.join(several)}")
    invalid = [
        PassedOver(evidence=e.id, reason=f"invalid run: {', '.join(e.spoiled_by)}") for e in fitting if not e.valid
    ]
    valid = [e for e in fitting if e.valid]
    if not valid:
        return give(State.INVALID_RUN, "; ".join(sorted({p.reason for p in invalid})), invalid)
    passed += invalid
    stale = [(e, why) for e in valid if (why := _expired(condition, e, context))]
    passed += [PassedOver(evidence=e.id, reason=f"expired: {why}") for e, why in stale]
    current = [e for e in valid if not any(e is s for s, _ in stale)]
    if not current:
        newest = max(stale, key=lambda pair: (pair[0].at, pair[0].id))
        return give(State.EXPIRED, newest[1])
    best = min(_standing(e) for e in current)
    top = [e for e in current if _standing(e) == best]
    newest_piece = max(top, key=lambda e: (e.at, e.id))
    demand = condition.of.level in (Level.DEMAND, Level.STATIC)
    used = [e for e in top if (e.at == newest_piece.at if demand else e.contract == newest_piece.contract)]
    for e in current:
        if not any(e is u for u in used):
            reason = "other evidence stands higher" if _standing(e) != best else "newer evidence stands"
            passed.append(PassedOver(evidence=e.id, reason=reason))
    return _Chosen(tuple(used), tuple(passed), expectation)


def _standing(e: Evidence) -> int:
    return STANDING.get(e.kind, 0)


def _unfit(condition: Condition, e: Evidence, point: str | None, context: Context) -> str:
    """Why a piece of the right metric, candidate and point cannot be used; empty when it can."""
    level = condition.of.level
    if level is Level.DEMAND and e.kind is Kind.MEASURED:
        return "load in a benchmark is an input, not demand"
    if (e.kind is Kind.DOCUMENTED) != (level is Level.STATIC) and (
        e.kind is Kind.DOCUMENTED or e.kind is Kind.MEASURED
    ):
        return (
            "a document is no evidence of speed"
            if e.kind is Kind.DOCUMENTED
            else "a measurement does not decide a fact"
        )
    if e.statistic != condition.statistic:
        return f"statistic is {e.statistic}, not {condition.statistic}"
    if e.definition_version != condition.of.version:
        return f"definition {e.definition_version}, now {condition.of.version}"
    return f"the load called {point!r} was another one" if _other_load(e, point, context) else ""


def _other_load(e: Evidence, point: str | None, context: Context) -> bool:
    """Whether the figure was taken at another load than the plan's point of that name."""
    planned = context.points.get(point) if context.points and point else None
    return bool(planned and e.load_hash and e.load_hash != planned.load_hash())


def _expired(condition: Condition, e: Evidence, context: Context) -> str:
    if condition.max_age_days is not None and context.now - e.at > timedelta(days=condition.max_age_days):
        return f"{(context.now - e.at).days} days old, {condition.max_age_days} allowed"
    decided = context.decided.get(e.candidate or "")
    seen = context.contracts.get(e.contract or "")
    if decided and seen:
        return "; ".join(str(m) for m in moved_fields(decided, seen, condition.tolerance))
    return ""


def _conflict(condition: Condition, pieces: Sequence[Evidence], decision: Decision) -> str:
    """Two runs, or two starts that decide alone, of the same standing that disagree."""
    runs: dict[str, list[Evidence]] = {}
    for e in pieces:
        runs.setdefault(e.run or e.source, []).append(e)
    if len(runs) > 1:
        sides = {run: decide(condition, group) for run, group in sorted(runs.items())}
        if {d.side for d in sides.values()} >= {"holds", "fails"}:
            return "; ".join(
                f"{run}: {d.side}, {quantity(d.value, condition.unit)}" for run, d in sides.items() if d.side
            )
    return decision.because if decision.because.startswith("starts contradict") else ""


def _ratio(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> Verdict:
    left = _choose(condition, condition.candidate, point, pieces, context)
    right = _choose(condition, condition.over, point, pieces, context)
    merged = left._replace(
        passed_over=left.passed_over + right.passed_over,
        expectation=_ratio_expectation(condition, point, pieces),
    )
    for side, name in ((left, condition.candidate), (right, condition.over)):
        if side.state:
            return _open_verdict(condition, merged._replace(state=side.state, why=f"{name}: {side.why}"))
    a, b = (_contract(side.pieces, context) for side in (left, right))
    differing_load = {e.load_hash for e in left.pieces} != {e.load_hash for e in right.pieces}
    agreed = parity(a, b) if a and b else None
    refused = (
        "a side states no contract" if agreed is None
        else "the load differs" if differing_load
        else "; ".join(str(m) for m in agreed.differences) if agreed.state == "refused"
        else f"with {agreed.differences[0].field} declared different, only figures per token compare"
        if agreed.differences and condition.metric not in PER_TOKEN
        else ""
    )  # fmt: skip
    if refused:
        return _open_verdict(condition, merged._replace(state=State.INVALID_RUN, why=f"not comparable: {refused}"))
    above, below = list(per_start(left.pieces).values()), list(per_start(right.pieces).values())
    if min(below) <= 0:
        return _open_verdict(
            condition, merged._replace(state=State.UNDECIDED, why=f"{condition.over} delivered nothing")
        )
    starts = min(len(above), len(below))
    lowest, highest = min(above) / max(below), max(above) / min(below)
    middle = (sum(above) / len(above)) / (sum(below) / len(below))
    decision = over_starts(condition, [lowest, middle, highest] if starts >= 3 else [middle] * starts)
    decision = decision._replace(n=starts, interval=(lowest, highest), value=middle)
    if starts >= 3:
        shown = f"{quantity(lowest, 'x')} to {quantity(highest, 'x')}"
        decision = decision._replace(
            because=f"{shown} over {len(above)} and {len(below)} starts, slowest against fastest"
        )
    both = merged._replace(pieces=left.pieces + right.pieces)
    names = tuple(str(m) for m in agreed.differences) if agreed else ()
    return _closed_verdict(condition, decision, both, "", names)


def _contract(pieces: Sequence[Evidence], context: Context) -> Contract | None:
    return context.contracts.get(pieces[0].contract or "")


def _expectation(condition: Condition, predictions: Sequence[Evidence]) -> str:
    for kind in PREDICTIONS:
        of_kind = [e for e in predictions if e.kind is kind]
        if of_kind:
            value = max(of_kind, key=lambda e: (e.at, e.id)).value
            return _predicted(condition, value, kind)
    return ""


def _predicted(condition: Condition, value: float, kind: Kind) -> str:
    verb = "hold" if condition.holds_for(value) else "fail"
    return f"predicted to {verb}: {quantity(value, condition.unit)} against {_limit(condition)} ({kind.value})"


def _ratio_expectation(condition: Condition, point: str | None, pieces: Sequence[Evidence]) -> str:
    for kind in PREDICTIONS:
        sides = [
            [
                e
                for e in pieces
                if e.kind is kind and e.metric == condition.metric and e.candidate == c and e.load_point == point
            ]
            for c in (condition.candidate, condition.over)
        ]
        if sides[0] and sides[1] and sides[1][-1].value > 0:
            return _predicted(condition, sides[0][-1].value / sides[1][-1].value, kind)
    return ""


def _limit(condition: Condition) -> str:
    if condition.comparison == "between":
        return f"{quantity(condition.threshold, condition.unit)} to {quantity(condition.upper or 0.0, condition.unit)}"
    return quantity(condition.threshold, condition.unit)


def _what_would_decide(condition: Condition, point: str | None) -> str:
    level = condition.of.level
    who = condition.candidate or "the candidate"
    if level is Level.DEMAND:
        return f"request logs or monitoring over {condition.window_days or 1} days would decide it"
    if level is Level.STATIC:
        return f"a catalogue entry for {who} would decide it"
    return f"a run of {who}{f' at {point}' if point else ''} would decide it"


def _title(condition: Condition) -> str:
    who = f"{condition.candidate} over {condition.over}: " if condition.over else ""
    who = who or (f"{condition.candidate}: " if condition.candidate else "")
    points = condition.load_points
    where = f" at {', '.join(points)}" if points and points != (EVERY_POINT,) else ""
    return f"{who}{format_test(condition)}{where}"


def _unmeasurable(condition: Condition, why: str) -> Verdict:
    return _open_verdict(condition, _Chosen((), (), "", State.UNMEASURABLE, why))


def _unmeasured(condition: Condition, why: str) -> Verdict:
    return _open_verdict(condition, _Chosen((), (), "", State.UNMEASURED, why))


def _open_verdict(condition: Condition, chosen: _Chosen) -> Verdict:
    state = chosen.state or State.UNMEASURED
    return Verdict(
        state=state, sentence=f"{_title(condition)}: {state.value}; {chosen.why}.", threshold=condition.threshold,
        unit=condition.unit, passed_over=chosen.passed_over, expectation=chosen.expectation,
    )  # fmt: skip


def _closed_verdict(
    condition: Condition, decision: Decision, chosen: _Chosen, conflict: str, differences: tuple[str, ...]
) -> Verdict:
    distance = condition.distance(decision.value)
    relative = distance / abs(condition.threshold) if condition.threshold else None
    side = None if conflict else decision.side
    if conflict:
        state = State.CONFLICTING
    elif side is None:
        state = State.UNDECIDED
    elif relative is not None and condition.near and abs(relative) <= condition.near:
        state = State.NEAR
    else:
        state = State.HOLDS if side == "holds" else State.FAILS
    words = {State.NEAR: f"{side}, near"}.get(state, state.value)
    value = quantity(decision.value, condition.unit)
    named = f"; differs by declaration: {', '.join(differences)}" if differences else ""
    return Verdict(
        state=state, side=side, value=decision.value, threshold=condition.threshold, unit=condition.unit,
        sentence=f"{_title(condition)}: {words} at {value}; {conflict or decision.because}{named}.",
        distance=distance, relative_distance=relative, n=decision.n, effective_n=decision.effective_n,
        interval=decision.interval, kind=chosen.pieces[0].kind, used=tuple(sorted(e.id for e in chosen.pieces)),
        passed_over=chosen.passed_over, expectation=chosen.expectation, differences=differences,
    )  # fmt: skip


# Which state a set of verdicts takes, most telling first; sides are told apart for near.
ALL_OF = ("fails", "near fails", "conflicting", "invalid run", "expired", "undecided", "unmeasured", "unmeasurable",
          "near holds", "holds")  # fmt: skip
ANY_OF = ("holds", "near holds", "conflicting", "invalid run", "expired", "undecided", "unmeasured", "unmeasurable",
          "near fails", "fails")  # fmt: skip
Combination = Literal["all of", "any of"]


def ranked_state(verdict: Verdict) -> str:
    """The state as named in ALL_OF and ANY_OF."""
    return f"near {verdict.side}" if verdict.state is State.NEAR else verdict.state.value


def combine(kind: Combination, verdicts: Sequence[Verdict]) -> Verdict:
    """All-of or any-of over verdicts: the most telling one speaks for the set, the rest are its parts.

    Raises ValueError for an empty sequence.
    """
    if not verdicts:
        raise ValueError("nothing to combine")
    order = ALL_OF if kind == "all of" else ANY_OF
    lead = min(verdicts, key=lambda v: (order.index(ranked_state(v)), v.relative_distance or 0.0, v.sentence))
    if len(verdicts) == 1:
        return lead
    return lead.model_copy(update={
        "parts": tuple(verdicts),
        "used": tuple(sorted({u for v in verdicts for u in v.used})),
        "expectation": "; ".join(dict.fromkeys(v.expectation for v in verdicts if v.expectation)),
    })  # fmt: skip
