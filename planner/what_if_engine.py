"""What another requirement would do to the ranking, and up to how many users the simplest engine is enough.

Two boundaries in peak concurrency stand side by side: the one of the rules, at which another engine comes first, and
the one of the sizing, up to which an engine's memory and planning value keep the promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from planner.engine_schema import Engine
from planner.frozen import Frozen
from planner.gates import gates
from planner.ratings import engine_ratings
from planner.requirements import Requirements
from planner.roles import EASE, failed
from planner.scoring import Score, ScoredCandidate
from planner.sensitivity import Ratings, level, winner
from planner.weighting import shares

SCANNED_USERS = 64


class Reign(Frozen):
    """From `low` to `high`, both included, `engine` comes first."""

    engine: str
    low: float
    high: float


class Strip(Frozen):
    """Who comes first along one requirement; `stated` is the range that the case asks for, None when it is open."""

    field: str
    reigns: tuple[Reign, ...]
    stated: tuple[float, float] | None

    def of(self, engine: str) -> tuple[Reign, ...]:
        """The ranges in which one engine comes first."""
        return tuple(x for x in self.reigns if x.engine == engine)


def by_users(r: Requirements, scored: Score, adjust: Mapping[str, float] | None = None) -> Strip:
    """Who comes first at every peak from 1 user to twice the case's, by scanning the rules."""
    most = max(SCANNED_USERS, 2 * r.peak_users_max)

    def at(users: float) -> Requirements:
        return r.model_copy(update={"peak_users_min": int(users), "peak_users_max": int(users)})

    found = _reigns(_ranked(scored), range(1, most + 1), at, adjust)
    return Strip(field="peak_users_max", reigns=found, stated=(r.peak_users_min, r.peak_users_max))


def by_shared_prefix(r: Requirements, scored: Score, adjust: Mapping[str, float] | None = None) -> Strip:
    """Who comes first at every share of the prompt in common, in steps of one percent."""

    def at(share: float) -> Requirements:
        return r.model_copy(update={"shared_prefix_share": share})

    found = _reigns(_ranked(scored), (i / 100 for i in range(101)), at, adjust)
    stated = r.shared_prefix_share
    return Strip(field="shared_prefix_share", reigns=found, stated=None if stated is None else (stated, stated))


def _ranked(scored: Score) -> Ratings:
    return {c.engine: {p.criterion: p.rating for p in c.contributions} for c in scored.ranking}


def _reigns(
    ratings: Ratings, values: Iterable[float], at: Callable[[float], Requirements], adjust: Mapping[str, float] | None
) -> tuple[Reign, ...]:
    """Neighbouring values with the same winner, joined; the weights change only where a rule begins to apply."""
    found: list[Reign] = []
    known: dict[tuple[float, ...], str | None] = {}
    for value in values:
        share = shares(at(value), adjust)
        key = tuple(share.values())
        if key not in known:
            known[key] = winner(ratings, share)
        first = known[key]
        if first is None:
            return ()
        if found and found[-1].engine == first:
            found[-1] = found[-1].model_copy(update={"high": value})
        else:
            found.append(Reign(engine=first, low=value, high=value))
    return tuple(found)


class Change(NamedTuple):
    """One requirement that could be otherwise, in words and as fields."""

    words: str
    made: Callable[[Requirements], dict[str, object]]


CHANGES: tuple[Change, ...] = (
    Change("metrics from the server are not needed", lambda r: {"metrics_needed": False}),
    Change("metrics from the server are needed", lambda r: {"metrics_needed": True}),
    Change("structured output is required", lambda r: {"structured_output": True}),
    Change("adapters (LoRA) are required", lambda r: {"lora": True}),
    Change("images or audio are required", lambda r: {"multimodal": True}),
    Change("several GPUs are to come", lambda r: {"multi_gpu_later": True}),
    Change("there is no network", lambda r: {"air_gap": True}),
    Change("one part-time operator is all", lambda r: {"operators_full_time": 0.0, "operators_part_time": 1.0}),
    Change("there is little time for upgrades", lambda r: {"upgrade_effort": "low"}),
    Change("most of the prompt is shared", lambda r: {"shared_prefix_share": 0.9}),
    Change("a handful of users is the peak", lambda r: {"peak_users_min": 1, "peak_users_max": 3}),
    Change("the host runs Windows",
           lambda r: {"hardware": tuple(h.model_copy(update={"os": "windows"}) for h in r.hardware)}),
)  # fmt: skip


class Outcome(Frozen):
    """Who would come first after one change; None when no engine passes the gates then."""

    words: str
    first: str | None
    changes_winner: bool


def outcomes(
    r: Requirements,
    engines: Mapping[str, Engine],
    scored: Score,
    compute_capability: str | None,
    adjust: Mapping[str, float] | None = None,
) -> tuple[Outcome, ...]:
    """Each change of CHANGES by itself, without those that the requirements state already."""
    found = []
    for change in CHANGES:
        changed = r.model_copy(update=change.made(r))
        if changed == r:
            continue
        first = _first(changed, engines, compute_capability, adjust)
        found.append(Outcome(words=change.words, first=first, changes_winner=first != scored.favourite))
    return tuple(found)


def _first(
    r: Requirements, engines: Mapping[str, Engine], compute_capability: str | None, adjust: Mapping[str, float] | None
) -> str | None:
    plan, hardware = r.favourite_plan, r.hardware[0]
    passed = {id: e for id, e in engines.items() if not failed(gates(e, r, plan, hardware, compute_capability))}
    return winner(engine_ratings(passed), shares(r, adjust))


class Room(NamedTuple):
    """Users at once that one unit holds in the form an engine loads: by memory, and by the planning value's promise."""

    by_memory: int
    by_speed: int


class Enough(Frozen):
    """Up to how many users at once an engine keeps the promise on one unit, as predicted; `gaps` is what it lacks."""

    engine: str
    engine_name: str
    up_to: int
    by_memory: int
    by_speed: int
    asked: int
    gaps: tuple[str, ...]
    promise_tok_s: float
    form: str

    @property
    def suffices(self) -> bool:
        """Whether the case's peak lies within it."""
        return self.asked <= self.up_to

    @property
    def sentence(self) -> str:
        """When this engine is enough, in one sentence."""
        name, promise = self.engine_name, f"{self.promise_tok_s:g} tok/s"
        if not self.by_memory:
            return f"{name} is never enough on one unit: not one request of that length fits its memory ({self.form})."
        if not self.up_to:
            return f"{name} is never enough on one unit: by the planning value no user gets {promise} ({self.form})."
        limit = f"the planning value keeps {promise} each" if self.by_speed <= self.by_memory else "its KV memory lasts"
        words = f"up to {self.up_to} user{'s' if self.up_to > 1 else ''} at once, as far as {limit}"
        if self.suffices:
            return f"{name} suffices for a peak of {self.asked}: it is enough {words} on one unit ({self.form})."
        return f"{name} would be enough {words} on one unit ({self.form}); the peak is {self.asked}."


def enough(r: Requirements, scored: Score, room: Mapping[str, Room]) -> tuple[Enough, ...]:
    """Ranked engines, simplest to install first, with the peak up to which each is enough.

    `room` is by engine; one without a known speed is left out. The planning value knows no engine: it holds for the
    format that the engine would load, so an engine that shares its steps badly falls below it first.
    """
    order = sorted(scored.ranking, key=lambda c: (-_ease(c), -c.score))
    return tuple(
        Enough(
            engine=c.engine, engine_name=c.engine_name, up_to=min(found.by_memory, found.by_speed),
            by_memory=found.by_memory, by_speed=found.by_speed, asked=r.peak_users_max,
            gaps=tuple(f"{p.criterion}: {p.reason}" for p in c.contributions if p.weight > 0 and p.rating == 0),
            promise_tok_s=r.user_tok_s_promise, form=f"{c.form.quantization} {c.form.weight_format}" if c.form else "",
        )
        for c in order
        if (found := room.get(c.engine))
    )  # fmt: skip


def simplest_that_suffices(found: Iterable[Enough]) -> Enough | None:
    """The first of `enough` whose range covers the peak, or None: the ranking and more units decide then."""
    return next((e for e in found if e.suffices), None)


def _ease(c: ScoredCandidate) -> float:
    return next((level(p.rating) for p in c.contributions if p.criterion == EASE), level(None))
