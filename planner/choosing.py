"""Which evidence counts for a condition: what fits, what is valid, what is current, what stands highest.

Everything that was looked at and not used is listed with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from planner.conditions import STANDING, Condition, Context, Evidence, Kind, PassedOver, State
from planner.contract import Contract, moved_fields
from planner.metrics import Level, quantity

OF_A_START = frozenset({"started", "startup_s", "kv_capacity_tokens", "kv_capacity_spread"})
# Every start counts for these whatever was asked of it; a failed start could not even report its version.
OF_EVERY_START = frozenset({"started", "startup_s"})
OTHER_LOAD = "was another one"
DEMAND_STALE_DAYS = 90  # without a 'within' clause: older windows say nothing about users today
# The first that is there speaks: an engine timed without a server ran on the real machine, the others are worked out.
PREDICTIONS = (Kind.ENGINE_ALONE, Kind.PLANNING, Kind.COVERAGE, Kind.BOUND, Kind.SIMULATED)


class Chosen(NamedTuple):
    """Pieces of the best standing, or the state that says why there are none."""

    pieces: tuple[Evidence, ...]
    passed_over: tuple[PassedOver, ...]
    expectation: str
    state: State | None = None
    why: str = ""


def choose(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> Chosen:
    """The pieces that decide a condition of one candidate at a load point (None: at none), or why there are none."""
    candidate, planned = condition.candidate, _planned(point, context)
    unfit: list[tuple[Evidence, str]] = []
    fitting: list[Evidence] = []
    predictions: list[Evidence] = []
    for e in pieces:
        if e.metric != (condition.of.spread_of or condition.metric) or (candidate and e.candidate != candidate):
            continue
        if e.load_point != point and not (point is None and condition.of.level is Level.SERVER):
            continue
        if e.kind in PREDICTIONS:
            if not _other_load(e, planned):
                predictions.append(e)
            continue
        reason = _unfit(condition, e, point, context, planned)
        if reason:
            unfit.append((e, reason))
        else:
            fitting.append(e)
    told = {e.source for e in fitting}  # their other statistics are no evidence that was passed over
    passed = [
        PassedOver(evidence=e.id, reason=reason)
        for e, reason in unfit
        if e.statistic == condition.statistic or e.source not in told
    ]
    expectation = _expectation(condition, predictions)

    def give(state: State, why: str, extra: Sequence[PassedOver] = ()) -> Chosen:
        return Chosen((), tuple(passed) + tuple(extra), expectation, state, why)

    if not fitting:
        return give(State.UNMEASURED, what_would_decide(condition, point))
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
    gone = {id(e) for e, _ in stale}
    current = [e for e in valid if id(e) not in gone]
    if not current:
        newest = max(stale, key=lambda pair: (pair[0].at, pair[0].id))
        return give(State.EXPIRED, newest[1])
    best = min(_standing(e) for e in current)
    top = [e for e in current if _standing(e) == best]
    newest_piece = max(top, key=lambda e: (e.at, e.id))
    used = [e for e in top if _stands_with(condition, e, newest_piece, context)]
    counted = {id(e) for e in used}
    for e in current:
        if id(e) not in counted:
            reason = "other evidence stands higher" if _standing(e) != best else "newer evidence stands"
            passed.append(PassedOver(evidence=e.id, reason=reason))
    return Chosen(tuple(used), tuple(passed), expectation)


def _standing(e: Evidence) -> int:
    return STANDING.get(e.kind, 0)


def _stands_with(condition: Condition, e: Evidence, newest: Evidence, context: Context) -> bool:
    """Whether a piece counts beside the newest: facts only the newest, demand all days, runs of the same contract."""
    if condition.of.level is Level.STATIC:
        return e.at == newest.at
    if condition.of.level is Level.DEMAND or condition.metric in OF_EVERY_START:
        return True
    return _alike(e.contract, newest.contract, context.contracts)


def _alike(one: str | None, other: str | None, contracts: Mapping[str, Contract]) -> bool:
    a, b = contracts.get(one or ""), contracts.get(other or "")
    return one == other or bool(a and b and a.candidate == b.candidate and not moved_fields(a, b, "exact"))


def of_the_newest(pieces: Sequence[Evidence], contracts: Mapping[str, Contract]) -> list[Evidence]:
    """Pieces under the newest one's contract: what an older version or other settings gave is another server's."""
    newest = max(pieces, key=lambda e: (e.at, e.id)).contract
    alike = {c for c in {e.contract for e in pieces} if _alike(c, newest, contracts)}
    return [e for e in pieces if e.contract in alike]


def _unfit(condition: Condition, e: Evidence, point: str | None, context: Context, planned: str | None) -> str:
    """Why a piece of the right metric, candidate and point cannot be used; empty when it can."""
    level = condition.of.level
    if e.at > context.now:
        return f"dated {e.at:%Y-%m-%d}, which lies ahead"
    if level is Level.DEMAND and e.kind is Kind.MEASURED:
        return "load in a benchmark is an input, not demand"
    if level is Level.DEMAND and e.kind is not Kind.OBSERVED:
        return "only observation over days decides demand"
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
    if condition.metric == "goodput" and context.service_levels and e.service_levels != context.service_levels:
        return "goodput was counted under other service levels"
    if e.definition_version != condition.of.version:
        return f"definition {e.definition_version}, now {condition.of.version}"
    return f"the load called {point!r} {OTHER_LOAD}" if _other_load(e, planned) else ""


def _planned(point: str | None, context: Context) -> str | None:
    """The hash of the load that the plan means by that name."""
    found = context.points.get(point) if context.points and point else None
    return found.load_hash() if found else None


def _other_load(e: Evidence, planned: str | None) -> bool:
    """Whether the figure was taken at another load than the plan's point of that name."""
    return bool(planned and e.load_hash and e.load_hash != planned)


def _expired(condition: Condition, e: Evidence, context: Context) -> str:
    allowed = condition.max_age_days
    if allowed is None and condition.of.level is Level.DEMAND:
        allowed = max(DEMAND_STALE_DAYS, 2 * (condition.window_days or 1))
    if allowed is not None and context.now - e.at > timedelta(days=allowed):
        return f"{(context.now - e.at).days} days old, {allowed} allowed"
    decided = context.decided.get(e.candidate or "")
    seen = context.contracts.get(e.contract or "")
    if decided and seen:
        return "; ".join(str(m) for m in moved_fields(decided, seen, condition.tolerance))
    return ""


def _expectation(condition: Condition, predictions: Sequence[Evidence]) -> str:
    for kind in PREDICTIONS:
        if found := _prediction(condition, predictions, kind):
            return _predicted(condition, found.value, kind)
    return ""


def _prediction(condition: Condition, predictions: Iterable[Evidence], kind: Kind) -> Evidence | None:
    """The newest prediction of a kind, of the statistic that is asked where there is one."""
    of_kind = (e for e in predictions if e.kind is kind)
    return max(of_kind, key=lambda e: (e.statistic == condition.statistic, e.at, e.id), default=None)


def _predicted(condition: Condition, value: float, kind: Kind) -> str:
    verb = "hold" if condition.holds_for(value) else "fail"
    return f"predicted to {verb}: {quantity(value, condition.unit)} against {limit(condition)} ({kind.value})"


def ratio_expectation(condition: Condition, point: str | None, pieces: Sequence[Evidence], context: Context) -> str:
    """What is predicted of a ratio, by the first kind that both sides have; empty where none is."""
    planned = _planned(point, context)
    here = [e for e in pieces if (e.metric, e.load_point) == (condition.metric, point) and not _other_load(e, planned)]
    for kind in PREDICTIONS:
        left, right = (
            _prediction(condition, (e for e in here if e.candidate == c), kind)
            for c in (condition.candidate, condition.over)
        )
        if left and right and right.value > 0:
            return _predicted(condition, left.value / right.value, kind)
    return ""


def limit(condition: Condition) -> str:
    """The threshold in words, both where there are two."""
    if condition.comparison == "between":
        return f"{quantity(condition.threshold, condition.unit)} to {quantity(condition.upper or 0.0, condition.unit)}"
    return quantity(condition.threshold, condition.unit)


def what_would_decide(condition: Condition, point: str | None) -> str:
    """What is missing, where nothing was seen yet."""
    level = condition.of.level
    who = condition.candidate or "the candidate"
    if level is Level.DEMAND:
        return f"request logs or monitoring over {condition.window_days or 1} days would decide it"
    if level is Level.STATIC:
        return f"a catalogue entry for {who} would decide it"
    return f"a run of {who}{f' at {point}' if point else ''} would decide it"
