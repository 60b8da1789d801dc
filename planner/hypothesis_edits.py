"""Changing the hypotheses of a plan by hand: each change gives a whole plan again, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from planner.condition_line import EVERY_POINT, parse_condition
from planner.conditions import Condition
from planner.errors import ConflictError, InputError, UnknownName
from planner.faults import first_fault
from planner.hypothesis_case import ADDED_POINTS
from planner.loads import LoadPoint
from planner.metrics import Level
from planner.offered import run_points
from planner.poc import Hypothesis, Plan, Stage

STAGE = "C"  # where load points go that hypotheses brought
OWN = "own"  # origin of a hypothesis that a person wrote


def with_points(plan: Plan, points: Sequence[LoadPoint]) -> Plan:
    """A plan that runs these points too: a pair in the stage of its partner, the others in a stage of their own."""
    known = plan.points()
    extra = {p.name: p for p in points if p.name not in known}
    if not extra:
        return plan
    found = []
    for stage in plan.stages:
        paired = [p.name for p in extra.values() if p.pair_of in stage.points]
        found.append(stage.model_copy(update={"points": (*stage.points, *paired)}))
    alone = [name for name, p in extra.items() if p.pair_of is None]
    own = next((i for i, s in enumerate(found) if s.name == STAGE), None)
    if alone and own is not None:
        found[own] = found[own].model_copy(update={"points": (*found[own].points, *alone)})
    elif alone:
        found.append(Stage(name=STAGE, points=tuple(alone), why="What hypotheses of their own ask for."))
    run = run_points(plan)
    points = (*run, *extra.values(), *(p for p in plan.load_points if p not in run))
    return plan.model_copy(update={"load_points": points, "stages": tuple(found)})


def with_skips(plan: Plan) -> Plan:
    """The plan in which a candidate skips the points that hypotheses brought and none asks of it."""
    brought = [p.name for p in plan.load_points if p.name in ADDED_POINTS]
    asked = [c for h in plan.hypotheses for c in h.conditions]

    def skips(id: str) -> tuple[str, ...]:
        mine = {n for c in asked if c.candidate is None or id in (c.candidate, c.over) for n in c.load_points}
        return tuple(n for n in brought if n not in mine and EVERY_POINT not in mine)

    return plan.model_copy(update={"candidates": tuple(
        c.model_copy(update={"skips": (*(n for n in c.skips if n not in ADDED_POINTS), *skips(c.id))})
        for c in plan.candidates
    )})  # fmt: skip


def conditions_of(text: str, id: str = "") -> tuple[Condition, ...]:
    """Read condition lines, one a line; raises InputError with the line that was not understood."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("there is no condition.", where=f"hypothesis {id}".strip(),
                         fix="Write one line, as in 'vllm: ttft p95 <= 2 s at peak'.")  # fmt: skip
    return tuple(parse_condition(line) for line in lines)


def add(plan: Plan, hypothesis: Hypothesis, points: Sequence[LoadPoint] = ()) -> Plan:
    """The plan with one more hypothesis and the load points that it brings.

    Raises ConflictError for an id that is taken, InputError for names that the plan does not know.
    """
    if any(h.id == hypothesis.id for h in plan.hypotheses):
        raise ConflictError(f"there is a hypothesis {hypothesis.id} already.", where="plan", fix="Edit that one.")
    extended = with_points(plan, points)
    return _checked(extended, (*plan.hypotheses, hypothesis), tuple(x for x in plan.left_out if x != hypothesis.id))


def replace(plan: Plan, hypothesis: Hypothesis) -> Plan:
    """The plan with the hypothesis of that id put in place; raises UnknownName, InputError."""
    _find(plan, hypothesis.id)
    return _checked(plan, tuple(hypothesis if h.id == hypothesis.id else h for h in plan.hypotheses), plan.left_out)


def remove(plan: Plan, id: str) -> Plan:
    """The plan without a hypothesis, without the load points that only it had brought, and noted as left out.

    What depended on it waits for it no longer. Raises UnknownName.
    """
    gone = _find(plan, id)
    kept = tuple(
        h.model_copy(update={"depends_on": tuple(x for x in h.depends_on if x != id)})
        for h in plan.hypotheses if h.id != id
    )  # fmt: skip
    asked = {name for h in kept for c in h.conditions for name in c.load_points}
    brought = {n for c in gone.conditions for n in c.load_points if n in ADDED_POINTS} - asked
    left_out = plan.left_out if gone.origin in ("", OWN) else tuple(dict.fromkeys((*plan.left_out, id)))
    return _checked(_without_points(plan, brought), kept, left_out)


def _without_points(plan: Plan, names: set[str]) -> Plan:
    stages = [
        s.model_copy(update={"points": tuple(n for n in s.points if n not in names)})
        for s in plan.stages if set(s.points) - names
    ]  # fmt: skip
    points = tuple(p for p in plan.load_points if p.name not in names)
    return plan.model_copy(update={"stages": tuple(stages), "load_points": points})


def needs(plan: Plan, h: Hypothesis) -> tuple[str, ...]:
    """What must hold before a hypothesis is worth a run: what it states, and that its candidates start.

    Plans of older versions and hypotheses written by hand state no dependency; nothing is tested before "starts".
    """
    if any(c.metric == "started" for c in h.conditions):
        return h.depends_on
    mine = {name for c in h.conditions for name in (c.candidate, c.over) if name}
    measured = [c for c in h.conditions if c.of.level not in (Level.DEMAND, Level.STATIC)]
    starts = (
        other.id
        for other in plan.hypotheses
        for c in other.conditions
        if measured and c.metric == "started" and (not mine or c.candidate in mine)
    )
    return tuple(dict.fromkeys((*h.depends_on, *starts)))


def dependents(plan: Plan, id: str) -> tuple[str, ...]:
    """Hypotheses that wait for this one."""
    return tuple(h.id for h in plan.hypotheses if id in needs(plan, h))


def carried(fresh: Plan, old: Plan) -> tuple[Plan, tuple[str, ...]]:
    """What a person wrote, changed or took out, carried from a stored plan into one that was derived anew.

    The second value names hypotheses that could not come along, since the new plan lacks their candidate or point.
    """
    plan, lost = fresh, []
    for id in old.left_out:
        if any(h.id == id for h in plan.hypotheses):
            plan = remove(plan, id)
    for h in (h for h in old.hypotheses if h.author):
        brought = [old.point(n) for c in h.conditions for n in c.load_points if n in ADDED_POINTS]
        known = any(x.id == h.id for x in plan.hypotheses)
        stays = tuple(x for x in h.depends_on if any(y.id == x for y in plan.hypotheses))
        kept = h.model_copy(update={"depends_on": stays})
        try:
            plan = replace(plan, kept) if known else add(plan, kept, brought)
        except InputError:
            lost.append(h.id)
    return plan.model_copy(update={"left_out": old.left_out}), tuple(lost)


def _find(plan: Plan, id: str) -> Hypothesis:
    found = next((h for h in plan.hypotheses if h.id == id), None)
    if found is None:
        raise UnknownName.from_known("hypothesis", id, (h.id for h in plan.hypotheses), where="plan")
    return found


def _checked(plan: Plan, hypotheses: tuple[Hypothesis, ...], left_out: tuple[str, ...]) -> Plan:
    changed = with_skips(plan.model_copy(update={"hypotheses": hypotheses, "left_out": left_out}))
    try:
        return Plan.model_validate(changed.model_dump())
    except ValidationError as e:
        raise InputError(first_fault(e).removeprefix("Value error, "), where="plan") from None
