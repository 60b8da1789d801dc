"""What is wrong with an ADR's flip conditions, and what is missing before it can be accepted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from decisions.flip_condition import FlipCondition
from decisions.flips import FlipState, judge_flip
from decisions.record import Adr
from planner.condition_line import EVERY_POINT, format_test
from planner.conditions import Condition, Context, Evidence, State
from planner.errors import UnknownName
from planner.evaluate import evaluate
from planner.metrics import quantity
from planner.precision_claims import warnings_among

Severity = Literal["error", "warning"]


class Rule(NamedTuple):
    """One rule: its id stays the same for ever, the explanation says why it matters."""

    id: str
    severity: Severity
    title: str
    explanation: str


RULES: dict[str, Rule] = {r.id: r for r in (
    Rule("FL001", "error", "no flip condition", "A decision that nothing can re-open is forgotten, not decided."),
    Rule("FL002", "error", "can never fire", "No value that the metric can take meets it."),
    Rule("FL003", "error", "always fires", "Every value that the metric can take meets it."),
    Rule("FL004", "error", "unmeasurable", "No measurement could ever decide it."),
    Rule("FL005", "error", "no load point of the plan measures it", "The plan runs no load at which it is judged."),
    Rule("FL006", "error", "already fired", "The decision would re-open in the moment in which it is accepted."),
    Rule("FL007", "error", "contradicts another", "Whatever is measured, one of the two fires."),
    Rule("FL008", "warning", "two consequences", "Both fire at the same value and ask for different things."),
    Rule("FL009", "error", "no owner", "Nobody would notice."),
    Rule("FL010", "error", "re-check date is past", "Somebody promised to look and the day is over."),
    Rule("FL011", "error", "by hand without a date", "What no metric decides is only seen by somebody who looks."),
    Rule("FL012", "warning", "no re-check date", "Evidence may never arrive by itself."),
    Rule("FL013", "error", "unknown candidate", "Nothing that is measured will ever carry that name."),
    Rule("FL014", "warning", "speed across precisions", "Quantization changes answers: the faster may be the worse."),
)}  # fmt: skip


class Finding(NamedTuple):
    """A rule that an ADR breaks; `condition` is None when it concerns the whole."""

    rule: str
    severity: Severity
    condition: str | None
    sentence: str


class Check(NamedTuple):
    """One line of the definition of done."""

    id: str
    done: bool
    sentence: str


def lint(adr: Adr, evidence: Iterable[Evidence], context: Context) -> tuple[Finding, ...]:
    """All findings, the ADR's own first, then by condition in its order, then pairs."""
    pieces = tuple(evidence)
    active = adr.active_conditions
    found = [] if active else [_finding("FL001", None, "The decision has no flip condition.")]
    for flip in active:
        found += _duties(flip, context)
        found += _of_one(flip, adr, pieces, context)
    for left, right in combinations(active, 2):
        found += _of_two(left, right)
    return (*found, *(_finding("FL014", None, w) for w in speed_warnings(adr, pieces, context)))


def speed_warnings(adr: Adr, evidence: Iterable[Evidence], context: Context) -> tuple[str, ...]:
    """A warning for each two candidates whose speeds the ADR rests on in different precisions, without a result."""
    pieces, cited = tuple(evidence), {e.id for e in adr.evidence}
    return warnings_among((e for e in pieces if e.id in cited), pieces, context.contracts, context.decided)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that block acceptance."""
    return tuple(f for f in findings if f.severity == "error")


def definition_of_done(adr: Adr, evidence: Iterable[Evidence], context: Context) -> tuple[Check, ...]:
    """The checklist before acceptance; every check must be done."""
    broken = errors(lint(adr, evidence, context))
    titles = [o.title for o in adr.options]
    today = context.now.date()
    people = adr.people.decided
    unanswered = [o.author for o in adr.opinions if o.stands_in_the_way]
    figures = f"{len(adr.evidence)} figure{'s' if len(adr.evidence) != 1 else ''} attached"
    return (
        Check("options", len(titles) >= 2, f"At least two options were compared ({len(titles)} listed)."),
        Check("outcome", adr.chosen in titles and bool(adr.outcome.strip()),
              "The chosen option is one of those listed, with the reason."),
        Check("headline", bool(adr.headline.strip()), "One sentence says the outcome to people."),
        Check("evidence", bool(adr.evidence) or bool(adr.evidence_absent.strip()),
              f"Evidence is attached, or its absence is stated ({figures})."),
        Check("people", bool(people), f"Those who decide are named ({', '.join(people) or 'nobody yet'})."),
        Check("conditions", not broken,
              "Flip conditions are there and free of errors" + (f": {broken[0].sentence}" if broken else ".")),
        Check("objections", not unanswered,
              f"Every objection is answered{f' (not yet that of {unanswered[0]})' if unanswered else ''}."),
        Check("review", adr.review_on is not None and adr.review_on > today,
              "A review date lies ahead" + (f" ({adr.review_on:%Y-%m-%d})." if adr.review_on else ".")),
    )  # fmt: skip


def _finding(rule: str, condition: str | None, sentence: str) -> Finding:
    return Finding(rule, RULES[rule].severity, condition, sentence)


def _duties(flip: FlipCondition, context: Context) -> Iterator[Finding]:
    if not flip.owner.strip():
        yield _finding("FL009", flip.id, f"{flip.id} has no owner.")
    if flip.recheck_on is None:
        rule, way = ("FL011", "judged by hand") if flip.manual else ("FL012", "waiting for evidence")
        yield _finding(rule, flip.id, f"{flip.id} is {way} and has no re-check date.")
    elif flip.recheck_on < context.now.date():
        yield _finding("FL010", flip.id, f"{flip.id} was to be re-checked by {flip.recheck_on:%Y-%m-%d}.")


def _of_one(flip: FlipCondition, adr: Adr, evidence: Sequence[Evidence], context: Context) -> Iterator[Finding]:
    if flip.forgotten:
        yield _finding("FL004", flip.id, f"{flip.id} can never be decided: {flip.forgotten.why}.")
    condition = flip.condition
    if condition is None:
        return
    fires = [_fires(flip)(v) for v in _telling_values([condition])]
    if not any(fires):
        yield _finding("FL002", flip.id, f"{flip.id} can never fire: no value {_fires_at(flip)}.")
        return
    if all(fires):
        yield _finding("FL003", flip.id, f"{flip.id} always fires: every value {_fires_at(flip)}.")
        return
    stranger = _stranger(condition, adr, evidence, context)
    if stranger:
        yield _finding("FL013", flip.id, f"{flip.id}: {stranger}")
        return
    missing = [
        p for p in condition.load_points if p != EVERY_POINT and context.points is not None and p not in context.points
    ]
    if missing:
        yield _finding("FL005", flip.id, f"{flip.id}: the plan has no load point {missing[0]!r}.")
        return
    bare = evaluate(condition, (), context)
    if bare.state == State.UNMEASURABLE:
        yield _finding("FL004", flip.id, f"{flip.id} can never be decided. {bare.sentence}")
        return
    judged = judge_flip(flip, adr, evidence, context)
    if judged.verdict and judged.verdict.warning:
        yield _finding("FL014", flip.id, f"{flip.id}: {judged.verdict.warning}")
    if judged.state == FlipState.FIRED:
        yield _finding("FL006", flip.id, f"{flip.id} has fired already. {judged.sentence.removeprefix('Fired. ')}")


def _stranger(condition: Condition, adr: Adr, evidence: Sequence[Evidence], context: Context) -> str:
    """A candidate that neither the plan, nor an option, nor any evidence knows, in words; empty when all are known."""
    known = {*context.decided, *(o.candidate for o in adr.options), *(e.candidate for e in evidence)} - {None}
    for name in (condition.candidate, condition.over):
        if name is not None and known and name not in known:
            return str(UnknownName.from_known("candidate", name, (k for k in known if k)))
    return ""


def _of_two(left: FlipCondition, right: FlipCondition) -> Iterator[Finding]:
    a, b = left.condition, right.condition
    if a is None or b is None or _subject(a) != _subject(b):
        return
    values = _telling_values([a, b])
    both = [(_fires(left)(v), _fires(right)(v)) for v in values]
    alone = [all(x for x, _ in both), all(y for _, y in both)]
    if all(x or y for x, y in both) and not any(alone):
        sentence = f"{left.id} and {right.id}: whatever {a.of.name} is, one of them fires."
        yield _finding("FL007", left.id, sentence)
    elif left.action != right.action and any(x and y for x, y in both):
        at = next(v for v, (x, y) in zip(values, both, strict=True) if x and y)
        where = quantity(at, a.unit)
        yield _finding("FL008", left.id, f"{left.id} and {right.id} both fire at {where} and ask for different things.")


def _subject(c: Condition) -> tuple[object, ...]:
    return (c.metric, c.statistic, c.candidate, c.over, frozenset(c.load_points), c.quantifier, c.window_days)


def _fires(flip: FlipCondition) -> Callable[[float], bool]:
    condition = flip.condition
    assert condition is not None
    return lambda value: condition.holds_for(value) == (flip.fires_when == "holds")


def _fires_at(flip: FlipCondition) -> str:
    assert flip.condition is not None
    verb = "meets" if flip.fires_when == "holds" else "misses"
    return f"{verb} {format_test(flip.condition)}"


def _telling_values(conditions: Sequence[Condition]) -> list[float]:
    """One value in each range in which the conditions do not change: thresholds, between them, and the far ends.

    Metrics are never negative; shares end at 1, outcomes are 0 or 1, daily maxima and counts are whole.
    """
    first = conditions[0]
    if first.unit == "bool":
        return [0.0, 1.0]
    end = 1.0 if first.unit == "share" else math.inf
    marks = {0.0} | {x for c in conditions for x in (c.threshold, c.upper) if x is not None}
    if first.unit in ("count", "tokens") and first.statistic in ("value", "max"):
        candidates = {float(math.floor(m) + d) for m in marks for d in (0, 1)}
    else:
        ordered = sorted(marks | ({end} if end < math.inf else {max(marks) * 2 + 1}))
        candidates = set(ordered) | {(x + y) / 2 for x, y in pairwise(ordered)}
    return sorted(v for v in candidates if 0.0 <= v <= end)
