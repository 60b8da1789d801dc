"""The knee of a sweep: the last load at which a candidate keeps every service level, and the batch limit from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from planner.condition_line import format_test
from planner.conditions import Condition, Context, Evidence, Kind, State, Verdict, weakest
from planner.contract import Contract
from planner.evaluate import combine, evaluate
from planner.frozen import Frozen
from planner.known import Known
from planner.loads import LoadPoint
from planner.metrics import quantity

Way = Literal["closed", "open"]


class Sweep(NamedTuple):
    """Load points that differ in nothing but the amount: requests in flight (closed) or requests per second (open)."""

    way: Way
    points: tuple[LoadPoint, ...]

    @property
    def lengths(self) -> str:
        """Prompt and answer, in words."""
        return f"{self.points[0].input_tokens:,} in / {self.points[0].output_tokens:,} out"


class Step(Frozen):
    """One load of a sweep with the verdict on all levels together; `broken` says each level that fails."""

    point: str
    amount: float
    verdict: Verdict
    broken: tuple[str, ...] = ()


class Knee(Frozen):
    """Where a candidate stops to keep the levels. `at` None: no load is known to keep them.

    Steps rise. `fails_at` is the lowest step that fails, `open_` are those between the two that nothing decides.
    `levels` are the conditions asked, `kind` is how the knee is known: the weakest of its figures.
    """

    candidate: str
    way: Way
    lengths: str
    levels: tuple[str, ...]
    steps: tuple[Step, ...]
    at: Step | None = None
    fails_at: Step | None = None
    open_: tuple[Step, ...] = ()
    kind: Kind | None = None
    sentence: str

    @property
    def decided(self) -> bool:
        """Whether any load of the sweep is known to keep or to break the levels."""
        return self.at is not None or self.fails_at is not None


def amount_of(p: LoadPoint) -> float:
    """Requests in flight of a closed point, requests per second of an open one."""
    return float(p.in_flight or p.rate_per_s or 0.0)


def in_words(way: Way, amount: float) -> str:
    """An amount with its unit."""
    return f"{amount:g} in flight" if way == "closed" else f"{amount:g} req/s"


def sweeps(points: Iterable[LoadPoint]) -> tuple[Sweep, ...]:
    """Closed and open points by load, amounts rising; other shapes are no steps of a sweep."""
    groups: dict[tuple[Way, str], list[LoadPoint]] = {}
    for p in points:
        if p.shape == "closed" or p.shape == "open":
            same = {"in_flight": 1} if p.shape == "closed" else {"rate_per_s": 1.0}
            groups.setdefault((p.shape, p.model_copy(update=same).load_hash()), []).append(p)
    return tuple(
        Sweep(way, tuple(sorted(found, key=lambda p: (amount_of(p), p.name)))) for (way, _), found in groups.items()
    )


def find_knee(
    candidate: str, sweep: Sweep, levels: Sequence[Condition], evidence: Iterable[Evidence], context: Context
) -> Knee:
    """Judge every load of a sweep and say where the levels stop to hold.

    What holds above a load that fails is no knee: an operating point must be safe at every lower load too. Raises
    ValueError without levels.
    """
    known = Known.of(evidence)
    steps = tuple(_step(candidate, p, levels, known, context) for p in sweep.points)
    fails_at = next((s for s in steps if s.verdict.side == "fails"), None)
    below = [s for s in steps if fails_at is None or s.amount < fails_at.amount]
    at = next((s for s in reversed(below) if s.verdict.side == "holds"), None)
    found = Knee(
        candidate=candidate, way=sweep.way, lengths=sweep.lengths, levels=tuple(map(format_test, levels)), steps=steps,
        at=at, fails_at=fails_at, kind=_known_by(at or fails_at),
        open_=tuple(s for s in below if s.verdict.side is None and (at is None or s.amount > at.amount)), sentence="",
    )  # fmt: skip
    return found.model_copy(update={"sentence": _sentence(found)})


def _step(candidate: str, point: LoadPoint, levels: Sequence[Condition], known: Known, context: Context) -> Step:
    asked = [level.at(point.name).model_copy(update={"candidate": candidate}) for level in levels]
    found = [evaluate(c, known, context) for c in asked]
    broken = tuple(
        f"{format_test(c)} reads {quantity(v.value, v.unit)}"
        for c, v in zip(asked, found, strict=True)
        if v.side == "fails" and v.value is not None
    )
    return Step(point=point.name, amount=amount_of(point), verdict=combine("all of", found), broken=broken)


def _known_by(step: Step | None) -> Kind | None:
    """How a step is known: by the lowest standing among its figures. A step that fails stands by what fails."""
    if step is None:
        return None
    parts = step.verdict.parts or (step.verdict,)
    return weakest(v.kind for v in parts if step.verdict.side != "fails" or v.side == "fails")


def _sentence(k: Knee) -> str:
    """What keeps, what breaks and why, and what nobody measured between."""
    if not k.decided:
        return f"No load is decided: {_states(k.steps)}."
    said = [_kept(k)]
    if k.at and k.at.verdict.state is State.NEAR:
        said.append("That is near the limit.")
    if k.at and k.fails_at:
        said.append(_between(k, k.at, k.fails_at))
    elif k.open_:
        said.append(f"Not decided: {_states(k.open_)}.")
    if k.fails_at:
        again = [s for s in k.steps if s.verdict.side == "holds" and s.amount > k.fails_at.amount]
        if again:
            said.append(f"{in_words(k.way, again[0].amount)} holds again above one that fails: measure both once more.")
    return " ".join(said)


def _kept(k: Knee) -> str:
    if k.at is None and k.fails_at:
        lowest = in_words(k.way, k.fails_at.amount)
        return f"No load keeps every level: {lowest} fails already ({'; '.join(k.fails_at.broken)})."
    at = in_words(k.way, k.at.amount) if k.at else ""
    if k.fails_at is None:
        return f"{at} keeps every level; no load above it is known to fail, so the knee may lie higher."
    breaks = in_words(k.way, k.fails_at.amount)
    return f"{at} keeps every level, {breaks} does not ({'; '.join(k.fails_at.broken)})."


def _between(k: Knee, at: Step, fails_at: Step) -> str:
    gap = f"{at.amount:g} and {fails_at.amount:g}"
    if k.open_:
        return f"Between {gap} not decided: {_states(k.open_)}."
    return f"Between {gap} nothing was measured."


def _states(steps: Sequence[Step]) -> str:
    """Amounts by the state they are in."""
    found: dict[str, list[str]] = {}
    for s in steps:
        found.setdefault(s.verdict.state.value, []).append(f"{s.amount:g}")
    return "; ".join(f"{state} at {', '.join(amounts)}" for state, amounts in found.items())


class BatchLimit(Frozen):
    """The limit of requests that an engine batches at once, and why; None: no limit keeps the levels."""

    max_num_seqs: int | None
    reason: str


def batch_limit(knee: Knee, evidence: Iterable[Evidence], contracts: Mapping[str, Contract]) -> BatchLimit:
    """The recommended --max-num-seqs from a closed sweep: the knee, or the smaller limit that it was measured under."""
    if knee.at is None:
        failing = knee.fails_at
        if failing is None:
            return BatchLimit(max_num_seqs=None, reason="No load is decided: the engine's own limit stands.")
        return BatchLimit(
            max_num_seqs=None,
            reason=f"No limit helps: {in_words('closed', failing.amount)} breaks a level already.",
        )
    n = int(knee.at.amount)
    used = set(knee.at.verdict.used)
    here = [e for e in Known.of(evidence).at_point(knee.at.point) if e.id in used]
    limits = [limit for e in here if (limit := _limit_of(e, contracts))]
    if limits and max(limits) < n:
        return BatchLimit(
            max_num_seqs=max(limits),
            reason=f"{n} in flight kept every level with a limit of {max(limits)}: the others waited.",
        )
    if knee.fails_at is None:
        return BatchLimit(
            max_num_seqs=n, reason=f"{n} in flight is the most that is known to keep every level; more may do too."
        )
    return BatchLimit(
        max_num_seqs=n,
        reason=f"{n} in flight is the last that keeps every level. With the limit there, request {n + 1} waits in the "
        "queue instead of slowing the others; what it waits counts to its TTFT, so measure the peak with this limit.",
    )  # fmt: skip


def _limit_of(e: Evidence, contracts: Mapping[str, Contract]) -> int | None:
    contract = contracts.get(e.contract or "")
    stated = contract.stated().get("max_num_seqs", "") if contract else ""
    return int(stated) if stated.isdecimal() else None
