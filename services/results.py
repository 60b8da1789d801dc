"""What the results of a case come to: knees, batch limit, capacity and units from evidence, cost, theory beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from planner.calibration import Calibration
from planner.conditions import STANDING, Condition, Evidence
from planner.cost import Cost, cost
from planner.errors import InputError
from planner.hypothesis_case import ADDED_POINTS
from planner.knee import BatchLimit, Knee, Sweep, batch_limit, find_knee, sweeps
from planner.known import Known
from planner.loads import LoadPoint
from planner.measured_capacity import UnitCapacity, UnitsMeasured, unit_capacity, units_measured
from planner.poc import levels_hash
from planner.request_rate import DEFAULT_UTILISATION
from planner.requirements import Requirements
from planner.theory import Theory, theory
from services.evidence import manifest_of
from services.recounts import counted_for
from services.verdicts import CaseState
from services.workspace import Workspace

LADDER = (1.0, 2.5, 5.0)  # what a looser promise would buy, as multiples of the required time


class CandidateResult(NamedTuple):
    """What is known of one candidate: its decided knees, the first of each way being what capacity rests on.

    `cost` is per million output tokens at the knee; None where no total speed is known there.
    """

    candidate: str
    knees: tuple[Knee, ...]
    limit: BatchLimit | None
    unit: UnitCapacity
    units: tuple[UnitsMeasured, ...]
    cost: Cost | None


class RateCapacity(NamedTuple):
    """A rate that one unit keeps by one level alone, and the units that the peak would need of it."""

    knee: Knee
    units: tuple[UnitsMeasured, ...]


def results_of(
    ws: Workspace, state: CaseState, utilisation: float = DEFAULT_UTILISATION
) -> tuple[CandidateResult, ...]:
    """Every candidate of the plan under its service levels; raises InputError for a utilisation outside (0, 1]."""
    _must_be_share(utilisation)
    if state.plan is None or state.requirements is None or not state.plan.service_levels:
        return ()
    levels = state.plan.service_levels
    return tuple(_candidate(ws, state, state.requirements, c.id, levels, utilisation) for c in state.plan.candidates)


def rate_knees(state: CaseState, ttft_s: float) -> tuple[Knee, ...]:
    """The knee of every open sweep by the first token alone, within so many seconds at the asked percentile.

    Raises InputError for a time that is not above 0.
    """
    if state.plan is None or state.requirements is None:
        return ()
    level = _first_token_level(state.requirements, ttft_s)
    return tuple(
        knee
        for c in state.plan.candidates
        for knee in _knees(state, c.id, (level,))
        if knee.way == "open" and knee.decided
    )


def with_ttft_counted(ws: Workspace, state: CaseState, ttft_s: float) -> CaseState:
    """The case with its first-token figures at open loads alone, the requests beyond so many seconds counted.

    Whether a percentile keeps a limit is decided by that count, and bundles count at import what is asked then. They
    are read again once for a limit. Raises InputError for a time that is not above 0.
    """
    if state.requirements is None:
        return state
    level = _first_token_level(state.requirements, ttft_s)
    open_points = {name for name, p in known_points(state).items() if p.shape == "open"}
    ttft = Known(e for e in state.evidence.of_metric(level.metric) if e.load_point in open_points)
    sources = {e.source for e in ttft}
    runs = [run for run in state.runs if run.sha256[:12] in sources]
    return state._replace(evidence=counted_for(ws, runs, ttft, (level,)).evidence)


def _first_token_level(r: Requirements, ttft_s: float) -> Condition:
    if not 0 < ttft_s < 86_400:
        raise InputError(f"{ttft_s:g} s cannot be a limit.", where="TTFT level", fix="Write seconds above 0.")
    return Condition(metric="ttft_ms", statistic=f"p{r.ttft_percentile}", comparison="<=", threshold=ttft_s * 1000)


def ttft_ladder(r: Requirements, asked_s: float) -> tuple[float, ...]:
    """First-token limits to tell capacity at: the required one, looser ones, and the one that a person asks for."""
    return tuple(sorted({asked_s, *(round(step * r.ttft_s, 3) for step in LADDER)}))


def rate_capacity(
    state: CaseState, ttft_s: float, utilisation: float = DEFAULT_UTILISATION
) -> tuple[RateCapacity, ...]:  # fmt: skip
    """The same with the units for both ends of the peak; raises InputError for a utilisation outside (0, 1]."""
    _must_be_share(utilisation)
    r = state.requirements
    if r is None:
        return ()
    found = []
    for knee in rate_knees(state, ttft_s):
        unit = unit_capacity(knee.candidate, None, knee, ())
        found.append(RateCapacity(knee, tuple(units_measured(r, unit, users, utilisation) for users in _peak(r))))
    return tuple(found)


def taken_elsewhere(figures: Iterable[Evidence]) -> frozenset[str]:
    """Ids of figures that stand in for a load that they were not taken at: others of their source state their load."""
    silent, stating = [], set()
    for e in figures:
        if e.load_hash:
            stating.add(e.source)
        elif e.load_point and e.kind in STANDING:
            silent.append(e)
    return frozenset(e.id for e in silent if e.source in stating)


def known_points(state: CaseState) -> dict[str, LoadPoint]:
    """Load points by name: the plan's, and what the bundles of the case say of names that the plan lacks."""
    found: dict[str, LoadPoint] = {}
    for run in state.runs:
        found.update({p.name: p for p in manifest_of(run).points})
    return found | (state.plan.points() if state.plan else {})


def theory_of(known: Calibration, state: CaseState) -> Theory:
    """Measured over bound and over the planning value, per regime that the runs of the case fall into."""
    return theory(known, {run.sha256[:12] for run in state.runs})


def _candidate(
    ws: Workspace, state: CaseState, r: Requirements, candidate: str, levels: Sequence[Condition], utilisation: float
) -> CandidateResult:  # fmt: skip
    knees = [k for k in _knees(state, candidate, levels) if k.decided]
    closed, open_ = (next((k for k in knees if k.way == way), None) for way in ("closed", "open"))
    unit = unit_capacity(candidate, closed, open_, state.evidence, levels_hash(levels))
    units = tuple(units_measured(r, unit, users, utilisation) for users in _peak(r))
    return CandidateResult(
        candidate=candidate, knees=tuple(knees), unit=unit, units=units,
        limit=batch_limit(closed, state.evidence, state.context.contracts) if closed else None,
        cost=_cost(ws, state, r, unit, units[-1], utilisation) if unit.output_tok_s else None,
    )  # fmt: skip


def _knees(state: CaseState, candidate: str, levels: Sequence[Condition]) -> list[Knee]:
    """One knee a sweep: the sweep with the most loads decided first, of two alike the one with the case's lengths."""
    known = known_points(state)
    context = state.context.model_copy(update={"points": known})
    rungs = [p for p in known.values() if p.name not in ADDED_POINTS | _stood_in(state, candidate, levels)]
    own_first = sorted(sweeps(rungs), key=lambda s: not _of_this_case(s, state))
    knees = [find_knee(candidate, sweep, levels, state.evidence, context) for sweep in own_first]
    return sorted(knees, key=lambda k: -sum(step.verdict.decided for step in k.steps))


def _stood_in(state: CaseState, candidate: str, levels: Sequence[Condition]) -> set[str]:
    """Load points at which all that is seen of a candidate was taken at another load."""
    asked = state.evidence.of_metric(*dict.fromkeys(level.metric for level in levels))
    elsewhere = taken_elsewhere(asked)
    if not elsewhere:
        return set()
    own = [e for e in asked if e.candidate == candidate and e.kind in STANDING and e.load_point]
    return {e.load_point or "" for e in own if e.id in elsewhere} - {e.load_point for e in own if e.id not in elsewhere}


def _of_this_case(sweep: Sweep, state: CaseState) -> bool:
    r, p = state.requirements, sweep.points[0]
    return r is not None and (p.input_tokens, p.output_tokens) == (r.input_tokens, r.output_tokens)


def _must_be_share(utilisation: float) -> None:
    if not 0 < utilisation <= 1:
        raise InputError(f"{utilisation:g} is no share of what a unit can do.", where="utilisation",
                         fix="Write more than 0 and at most 1, as in 0.7.")  # fmt: skip


def _peak(r: Requirements) -> tuple[int, ...]:
    return tuple(sorted({r.peak_users_min, r.peak_users_max}))


def _cost(
    ws: Workspace, state: CaseState, r: Requirements, unit: UnitCapacity, needed: UnitsMeasured, utilisation: float
) -> Cost:  # fmt: skip
    """On the machine of the requirements, with the devices that one unit of the sizing takes."""
    settings = state.sizing.settings if state.sizing else None
    return cost(
        ws.catalog.gpu(r.hardware[0].gpu), settings.devices if settings else 1, r.budget, units=needed.units,
        unit_tok_s=unit.output_tok_s, unit_price=settings.stated.unit_price if settings else None,
        utilisation=utilisation,
    )  # fmt: skip
