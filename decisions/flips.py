"""Flip conditions of an ADR against evidence: armed, fired or near, how far away, and which ones became fired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple

from decisions.edits import ConditionFired
from decisions.flip_condition import Action, FiresWhen, FlipCondition
from decisions.record import Adr, Fire
from planner.conditions import Context, Evidence, State, Verdict
from planner.errors import InputError, UnknownName
from planner.evaluate import evaluate
from planner.frozen import Frozen
from planner.known import Known

EVENT_AUTHOR = "Flipline"


class FlipState(StrEnum):
    """How a flip condition stands; states that decide nothing keep their names from conditions.State."""

    FIRED = "fired"
    NEAR = "near"
    ARMED = "armed"
    UNMEASURABLE = "unmeasurable"
    UNMEASURED = "unmeasured"
    INVALID_RUN = "invalid run"
    EXPIRED = "expired"
    CONFLICTING = "conflicting"
    UNDECIDED = "undecided"


class FlipVerdict(Frozen):
    """A flip condition today. `distance` (in `unit`) is the room left before it fires: above 0 while armed.

    `relative_distance` is the same as a share of the threshold. `verdict` is None for a statement judged by hand.
    """

    condition: str
    state: FlipState
    sentence: str
    value: float | None = None
    distance: float | None = None
    relative_distance: float | None = None
    unit: str = ""
    used: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    overdue: bool = False
    verdict: Verdict | None = None


def judge_flips(adr: Adr, evidence: Iterable[Evidence], context: Context) -> tuple[FlipVerdict, ...]:
    """Judge every flip condition that is not retired, in the order in which the ADR lists them."""
    known = Known.of(evidence)
    return tuple(judge_flip(c, adr, known, context) for c in adr.active_conditions)


def judge_flip(flip: FlipCondition, adr: Adr, evidence: Iterable[Evidence], context: Context) -> FlipVerdict:
    """Judge one flip condition.

    A decided condition fires on the side that `fires_when` names, exactly at the threshold too; within the margin on
    the other side it is near.
    """
    overdue = flip.recheck_on is not None and flip.recheck_on < context.now.date()
    if flip.forgotten:
        return FlipVerdict(
            condition=flip.id, state=FlipState.UNMEASURABLE, overdue=overdue,
            sentence=f"Unmeasurable: {flip.forgotten.why}. It was stored as '{flip.in_words()}'.",
        )  # fmt: skip
    if flip.condition is None:
        return _by_hand(flip, adr, overdue)
    known = Known.of(evidence)
    verdict = evaluate(flip.condition, known, context)
    state = _state(verdict, flip.fires_when)
    towards = -1.0 if flip.fires_when == "holds" else 1.0
    measured_out = flip.condition.comparison != "is"  # a yes or no has no distance

    def room(distance: float | None) -> float | None:
        return towards * distance + 0.0 if distance is not None and measured_out else None  # + 0.0: no minus zero

    runs = sorted({e.run for e in known.by_id(verdict.used).values() if e.run})
    return FlipVerdict(
        condition=flip.id, state=state, sentence=f"{state.value.capitalize()}. {verdict.sentence}",
        value=verdict.value, distance=room(verdict.distance), relative_distance=room(verdict.relative_distance),
        unit=verdict.unit, used=verdict.used, runs=tuple(runs), overdue=overdue, verdict=verdict,
    )  # fmt: skip


def _state(verdict: Verdict, fires_when: FiresWhen) -> FlipState:
    if verdict.side is None:
        return FlipState(verdict.state.value)
    if verdict.side == fires_when:
        return FlipState.FIRED
    return FlipState.NEAR if verdict.state == State.NEAR else FlipState.ARMED


def _by_hand(flip: FlipCondition, adr: Adr, overdue: bool) -> FlipVerdict:
    fire = next((f for f in adr.fires if f.condition == flip.id), None)
    if fire is not None:
        return FlipVerdict(
            condition=flip.id, state=FlipState.FIRED, sentence=f"Fired. {fire.sentence}", used=fire.evidence,
            runs=fire.runs, overdue=overdue,
        )  # fmt: skip
    who = flip.owner or "nobody"
    when = f" by {flip.recheck_on:%Y-%m-%d}" if flip.recheck_on else ""
    return FlipVerdict(
        condition=flip.id, state=FlipState.UNMEASURABLE, overdue=overdue,
        sentence=f"Unmeasurable. {flip.statement}: no metric decides it; {who} judges it by hand{when}.",
    )  # fmt: skip


def states(verdicts: Iterable[FlipVerdict]) -> dict[str, FlipState]:
    """State by condition id: what `new_events` compares with next time."""
    return {v.condition: v.state for v in verdicts}


def new_events(previous: Mapping[str, str], now: Iterable[FlipVerdict]) -> tuple[FlipVerdict, ...]:
    """The conditions that are fired now and were not at the last judgement (or had none)."""
    return tuple(v for v in now if v.state == FlipState.FIRED and previous.get(v.condition) != FlipState.FIRED)


def fired_edit(verdict: FlipVerdict, *, at: datetime) -> ConditionFired:
    """The event for the log."""
    fire = Fire(
        condition=verdict.condition, at=at, sentence=verdict.sentence.removeprefix("Fired. "), value=verdict.value,
        distance=verdict.distance, unit=verdict.unit, evidence=verdict.used, runs=verdict.runs,
    )  # fmt: skip
    return ConditionFired(at=at, author=EVENT_AUTHOR, fire=fire)


class Template(NamedTuple):
    """A flip condition to start from; `line` may ask for {candidate} and {point}, or is a statement judged by hand."""

    id: str
    title: str
    line: str
    fires_when: FiresWhen
    action: Action
    consequence: str
    by_hand: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """Names that must be filled in."""
        return tuple(n for n in ("candidate", "point") if f"{{{n}}}" in self.line)


TEMPLATES: tuple[Template, ...] = (
    Template(
        "engine-does-not-start", "The engine does not start on this GPU",
        "{candidate}: started is true", "fails", Action.BACK_TO_HARDWARE,
        "keep llama.cpp for the baseline only and go back to the choice of hardware",
    ),
    Template(
        "few-users", "Real concurrency stays around five",
        "peak_in_flight max <= 5 over 28 days", "holds", Action.SIMPLIFY,
        "move to a simpler set-up",
    ),
    Template(
        "shared-prefix-dominates", "A shared prefix dominates the prompts",
        "shared_prefix_share mean >= 0.5 over 28 days", "holds", Action.COMPARE_ENGINE,
        "bring the SGLang comparison forward",
    ),
    Template(
        "format-not-supported", "The model's quantization is not supported",
        "{candidate}: format_supported is true", "fails", Action.CHANGE_MODEL_PLAN,
        "change the model plan, not the engine",
    ),
    Template(
        "kv-cache-full", "The KV cache stays above 85 %",
        "{candidate}: kv_use mean <= 85 % at {point} near 10 %", "fails", Action.REOPEN,
        "size the memory again, or shorten the context",
    ),
    Template(
        "queue-does-not-drain", "The queue does not drain",
        "{candidate}: waiting mean <= 1 at {point}", "fails", Action.REOPEN,
        "add a unit, or raise the batch limit",
    ),
    Template(
        "errors", "Too many requests fail",
        "{candidate}: error_share <= 1 % at {point}", "fails", Action.REOPEN,
        "find the cause before more users are let in",
    ),
    Template(
        "slow-start", "Starting takes longer than scaling allows",
        "{candidate}: startup_s <= 300 s near 20 %", "fails", Action.REOPEN,
        "keep a warm spare, or choose an engine that starts faster",
    ),
    Template(
        "not-maintained", "The engine is no longer maintained",
        "{candidate}: maintained is true", "fails", Action.COMPARE_ENGINE,
        "compare the engines again",
    ),
    Template(
        "price", "The price of a unit changes",
        "a quote for a unit is a fifth above or below the price in the requirements", "holds", Action.REOPEN,
        "work out the cost again, and compare with renting", by_hand=True,
    ),
)  # fmt: skip


def template(id: str) -> Template:
    """The template of that id; raises UnknownName."""
    for t in TEMPLATES:
        if t.id == id:
            return t
    raise UnknownName.from_known("template of a flip condition", id, (t.id for t in TEMPLATES))


def from_template(
    id: str, *, candidate: str | None = None, point: str | None = None, owner: str = "",
    recheck_on: date | None = None,
) -> FlipCondition:  # fmt: skip
    """A flip condition from a template.

    Raises UnknownName for the template, InputError when a name that its line needs is missing.
    """
    t = template(id)
    given = {"candidate": candidate, "point": point}
    missing = [n for n in t.needs if not given[n]]
    if missing:
        raise InputError(f"needs a {missing[0]}.", where=f"template {id}", fix=f"Choose the {missing[0]} it is about.")
    line = t.line.format(**given)
    if t.by_hand:
        return FlipCondition(id=t.id, statement=line, owner=owner, recheck_on=recheck_on, action=t.action,
                             consequence=t.consequence)  # fmt: skip
    return FlipCondition.from_line(
        t.id, f"{line} -> {t.consequence}", fires_when=t.fires_when, owner=owner, recheck_on=recheck_on, action=t.action
    )
