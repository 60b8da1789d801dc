"""evaluate(condition, evidence, context) -> Verdict: the one place where anything is called true or false.

Pure, total, independent of the order of evidence. The states are tried in the order of conditions.State.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from planner.choosing import OF_A_START, Chosen, choose, ratio_expectation
from planner.condition_line import EVERY_POINT, format_test
from planner.conditions import Condition, Context, Evidence, State, Verdict, weakest
from planner.deciding import AS_STATED, MIN_STARTS, OUTCOMES, Decision, decide, over_starts, side_of_range
from planner.deciding_items import decide_paired
from planner.known import Known
from planner.metrics import Direction, Level, quantity
from planner.pairing import QUALITY, Refused, agreement, kv_capacity, pair, spread
from planner.precision_claims import beside

BESIDE_A_RATIO = QUALITY | {"kv_capacity_tokens"}


def evaluate(condition: Condition, evidence: Iterable[Evidence], context: Context) -> Verdict:
    """Judge one condition. Never raises for evidence it cannot use; it says so in the verdict."""
    known = Known.of(evidence)
    points = _points(condition, known, context)
    if isinstance(points, Verdict):
        return points
    verdicts = [
        _with_lower_rates(
            _at_point(condition, point, _looked_at(condition, point, known), context), condition, point, known, context
        )
        for point in points
    ]
    if len(verdicts) == 1:
        return verdicts[0]
    return combine("all of" if condition.quantifier == "every" else "any of", verdicts)


def _figures(condition: Condition) -> str:
    """The metric whose figures decide a condition: its own, or the one that it is worked out from."""
    return condition.of.spread_of or condition.metric


def _looked_at(condition: Condition, point: str | None, known: Known) -> list[Evidence]:
    """The figures that a condition can turn on, by id: a ratio also looks at what each side holds and how well."""
    metric = _figures(condition)
    found = known.at(metric, point) if point else known.of_metric(metric)
    if condition.over:
        own = found if condition.metric not in BESIDE_A_RATIO else []
        found = own + known.of_metric(*BESIDE_A_RATIO)
    return sorted(found, key=lambda e: e.id)


def _points(condition: Condition, known: Known, context: Context) -> list[str | None] | Verdict:
    """The load points to judge at, or the verdict that there can be none."""
    level = condition.of.level
    if condition.statistic not in condition.of.statistics:
        return _unmeasurable(condition, f"{condition.of.name} has no statistic {condition.statistic!r}")
    if condition.statistic.startswith("p") and level is Level.REQUEST and condition.comparison not in ("<=", ">="):
        return _unmeasurable(condition, "a percentile is held against one limit, '<=' or '>='")
    if level in (Level.DEMAND, Level.STATIC) or condition.metric in OF_A_START:
        if level is Level.DEMAND and not context.observes_demand:
            return _unmeasurable(condition, "production is not observed; connect request logs or monitoring")
        return [None]
    seen = known.points(condition.metric)
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
    chosen = choose(here, point, pieces, context)
    if chosen.state:
        return _open_verdict(here, chosen)
    decision = decide(here, chosen.pieces)
    return _closed_verdict(here, decision, chosen, _conflict(here, chosen.pieces, decision), ())


def _with_lower_rates(
    verdict: Verdict, condition: Condition, point: str | None, known: Known, context: Context
) -> Verdict:
    """A failure in an open loop with the lowest rate at which it was seen to fail already, for what grows with load."""
    points = context.points or {}
    here = points.get(point or "")
    grows = condition.of.direction is Direction.LOWER and not condition.over
    if verdict.side != "fails" or here is None or here.shape != "open" or not grows:
        return verdict
    lower = [p for p in points.values() if p.shape == "open" and (p.rate_per_s or 0.0) < (here.rate_per_s or 0.0)]
    for p in sorted(lower, key=lambda p: (p.rate_per_s or 0.0, p.name)):
        seen = _at_point(condition, p.name, _looked_at(condition, p.name, known), context)
        if seen.side == "fails" and seen.value is not None:
            told = f"It fails already at {p.in_words()}: {quantity(seen.value, condition.unit)}."
            return verdict.model_copy(update={"sentence": f"{verdict.sentence} {told}"})
    return verdict


def _conflict(condition: Condition, pieces: Sequence[Evidence], decision: Decision) -> str:
    """Two runs, or two starts that decide alone, of the same standing that disagree.

    Days of demand are one story, and of outcomes the worst start decides: neither can conflict.
    """
    if condition.of.level is Level.DEMAND or condition.metric in OUTCOMES:
        return ""
    runs: dict[str, list[Evidence]] = {}
    for e in pieces:
        runs.setdefault(e.run or e.source, []).append(e)
    if len(runs) > 1:
        sides = {run: decide(condition, group) for run, group in sorted(runs.items())}
        if {d.side for d in sides.values()} >= {"holds", "fails"}:
            return "; ".join(
                f"{run}: {d.side}, {quantity(d.value, condition.unit)}" for run, d in sides.items() if d.side
            )
    return decision.because if decision.contradicts else ""


def _ratio(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> Verdict:
    found = pair(condition, point, pieces, context)
    expectation = ratio_expectation(condition, point, pieces, context)
    if isinstance(found, Refused):
        refused = Chosen((), (), expectation, State.INVALID_RUN, f"not comparable: {found.why}")
        return _open_verdict(condition, refused)
    left, right = found.left, found.right
    both = left._replace(
        pieces=left.pieces + right.pieces,
        passed_over=left.passed_over + right.passed_over,
        expectation=expectation,
    )
    for side, name in ((left, condition.candidate), (right, condition.over)):
        if side.state:
            return _open_verdict(condition, both._replace(pieces=(), state=side.state, why=f"{name}: {side.why}"))
    if condition.of.paired:
        items = decide_paired(condition, left.pieces, right.pieces)
        return _closed_verdict(condition, items, both, "", found.differences)
    if spread(right.pieces).low <= 0:
        why = f"{condition.over} delivered nothing"
        return _open_verdict(condition, both._replace(pieces=(), state=State.UNDECIDED, why=why))
    decision = _ratio_decision(condition, left.pieces, right.pieces)
    conflict = _ratio_conflict(condition, left, right) or _unlike(condition, decision, both, pieces, context)
    verdict = _closed_verdict(condition, decision, both, conflict, found.differences)
    return _with_quality(verdict, condition, left, right, pieces, context)


def _with_quality(
    verdict: Verdict, condition: Condition, left: Chosen, right: Chosen, pieces: Sequence[Evidence], context: Context
) -> Verdict:
    """The verdict with what is known of quality beside it, where the two sides differ in precision."""
    agreed = agreement(left.pieces, right.pieces, context)
    names = condition.candidate or "", condition.over or ""
    found = beside(*names, agreed.differences if agreed else (), pieces, context.contracts)
    if found is None or condition.metric in QUALITY:
        return verdict
    told = f"{found.sentence}."
    return verdict.model_copy(update={"sentence": f"{verdict.sentence} {told}", "warning": told if found.warns else ""})


def _ratio_decision(condition: Condition, left: Sequence[Evidence], right: Sequence[Evidence]) -> Decision:
    """Slowest start over fastest start bounds the ratio below, fastest over slowest above.

    Figures of a foreign source decide with the range that it states around them, or as they stand.
    """
    above, below = spread(left), spread(right)
    starts = min(len(above.values), len(below.values))
    lowest, highest = above.low / below.high, above.high / below.low
    middle = above.typical / below.typical
    stated = all(p.kind in AS_STATED for p in (*left, *right))
    if stated:
        side = side_of_range(condition, lowest, highest)
        why = f"as {left[0].kind.value}, {quantity(lowest, 'x')} to {quantity(highest, 'x')}"
        return Decision(side, middle, why, None, None, (lowest, highest))
    decision = over_starts(condition, [lowest, middle, highest] if starts >= MIN_STARTS else [middle] * starts)
    if starts >= MIN_STARTS:
        shown = f"{quantity(lowest, 'x')} to {quantity(highest, 'x')}"
        why = f"{shown} over {len(above.values)} and {len(below.values)} starts, slowest against fastest"
        decision = decision._replace(because=why)
    return decision._replace(n=starts, interval=(lowest, highest), value=middle)


def _unlike(
    condition: Condition, decision: Decision, both: Chosen, pieces: Sequence[Evidence], context: Context
) -> str:  # fmt: skip
    """Starts that are no repeats of one another, where they leave the ratio open: no one number stands for them."""
    if decision.side is not None:
        return ""
    point = both.pieces[0].load_point
    at = context.points.get(point) if context.points and point else None
    found = [kv_capacity(c, at, pieces, both.pieces) for c in (condition.candidate, condition.over) if c]
    return "; ".join(k.in_words() for k in found if k and k.unlike)


def _ratio_conflict(condition: Condition, left: Chosen, right: Chosen) -> str:
    """Runs that measured both sides and disagree."""
    sides = {}
    for run in sorted({e.run or e.source for e in left.pieces} & {e.run or e.source for e in right.pieces}):
        ours, theirs = (tuple(e for e in c.pieces if (e.run or e.source) == run) for c in (left, right))
        decision = _ratio_decision(condition, ours, theirs)
        if decision.side:
            sides[run] = decision
    if {d.side for d in sides.values()} == {"holds", "fails"}:
        return "; ".join(f"{run}: {d.side}, {quantity(d.value, 'x')}" for run, d in sides.items())
    return ""


def _title(condition: Condition) -> str:
    who = f"{condition.candidate} over {condition.over}: " if condition.over else ""
    who = who or (f"{condition.candidate}: " if condition.candidate else "")
    points = condition.load_points
    where = f" at {', '.join(points)}" if points and points != (EVERY_POINT,) else ""
    return f"{who}{format_test(condition)}{where}"


def _unmeasurable(condition: Condition, why: str) -> Verdict:
    return _open_verdict(condition, Chosen((), (), "", State.UNMEASURABLE, why))


def _unmeasured(condition: Condition, why: str) -> Verdict:
    return _open_verdict(condition, Chosen((), (), "", State.UNMEASURED, why))


def _open_verdict(condition: Condition, chosen: Chosen) -> Verdict:
    state = chosen.state or State.UNMEASURED
    return Verdict(
        state=state, sentence=f"{_title(condition)}: {state.value}; {chosen.why}.", threshold=condition.threshold,
        unit=condition.unit, passed_over=chosen.passed_over, expectation=chosen.expectation,
    )  # fmt: skip


def _closed_verdict(
    condition: Condition, decision: Decision, chosen: Chosen, conflict: str, differences: tuple[str, ...]
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
        more=None if conflict else decision.more,
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

    What takes every part, "all hold" or "none holds", is known by the weakest of them. Raises ValueError for an empty
    sequence.
    """
    if not verdicts:
        raise ValueError("nothing to combine")
    order = ALL_OF if kind == "all of" else ANY_OF
    lead = min(verdicts, key=lambda v: (order.index(ranked_state(v)), v.relative_distance or 0.0, v.sentence))
    if len(verdicts) == 1:
        return lead
    takes_all = lead.side == ("holds" if kind == "all of" else "fails")
    return lead.model_copy(update={
        "kind": weakest(v.kind for v in verdicts) if takes_all else lead.kind,
        "parts": tuple(verdicts),
        "used": tuple(sorted({u for v in verdicts for u in v.used})),
        "expectation": "; ".join(dict.fromkeys(v.expectation for v in verdicts if v.expectation)),
        "warning": " ".join(dict.fromkeys(v.warning for v in verdicts if v.warning)),
    })  # fmt: skip
