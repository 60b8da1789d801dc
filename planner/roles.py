"""From totals and gates to a role for each engine: what to measure first, against what, and what to look at later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from planner.engine_schema import Engine
from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.gates import Gate
from planner.ratings import SPEED_CRITERIA, engine_ratings, rated
from planner.requirements import Requirements
from planner.sensitivity import level, near_tie_margin, total, winner
from planner.weighting import Weight, open_requirements, shares, weights

Role = Literal["favourite", "baseline", "challenger", "re-examine", "later", "stopped"]
REASONS_NAMED = 5
EASE = "ease_of_install"
# Closer than this many average rating steps, only a measurement tells candidates apart.
CHALLENGER_STEPS = 3


class Advice(Frozen):
    """What to do with one engine, why, and from which sources; `when` says what would bring it back."""

    engine: str
    role: Role
    reason: str
    sources: tuple[str, ...] = ()
    when: str = ""


def failed(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """The gates that stop a candidate."""
    return tuple(g for g in gates if g.state == "fail")


def baseline_engine(
    requirements: Requirements,
    engines: Mapping[str, Engine],
    gates: Mapping[str, tuple[Gate, ...]],
    favourite: str | None,
    share: Mapping[str, float],
) -> str | None:
    """What a gain is stated against: what runs today, else the simplest engine that passes its gates.

    Of equally simple ones the one that scores higher. Raises UnknownName when the current engine is not in the
    catalogue.
    """
    today = _today(requirements, engines)
    if today and today != favourite:
        return today
    open_to = {id: e for id, e in sorted(engines.items()) if id != favourite and not failed(gates[id])}
    ratings = engine_ratings(open_to)
    return max(open_to, key=lambda id: (level(rated(engines[id], EASE).rating), round(total(ratings[id], share), 12)),
               default=None)  # fmt: skip


def _today(requirements: Requirements, engines: Mapping[str, Engine]) -> str | None:
    """The engine that runs today, by its own name or that of its llama-server."""
    today = requirements.current_engine
    if not today:
        return None
    by_name = {id: id for id in engines} | {e.llama_server.id: e.id for e in engines.values() if e.llama_server}
    if today.lower() not in by_name:
        raise UnknownName.from_known("engine", today, by_name, where="current engine")
    return by_name[today.lower()]


def advise(
    requirements: Requirements,
    engines: Mapping[str, Engine],
    gates: Mapping[str, tuple[Gate, ...]],
    adjust: Mapping[str, float] | None = None,
    weighted: tuple[Weight, ...] | None = None,
) -> tuple[Advice, ...]:
    """One role for every engine, in the order of `engines`; `weighted` are the weights, where they are known."""
    ws = weighted or weights(requirements, adjust)
    ranked = engine_ratings({id: e for id, e in engines.items() if not failed(gates[id])})
    share = {w.criterion: w.weight for w in ws}
    best = winner(ranked, share)
    baseline, today = baseline_engine(requirements, engines, gates, best, share), _today(requirements, engines)
    found = []
    for id, engine in engines.items():
        stops = failed(gates[id])
        if id == baseline:
            found.append(_baseline(engine, stops, runs_today=id == today))
        elif stops:
            found.append(Advice(
                engine=id, role="stopped", reason=" ".join(f"{g.gate}: {g.reason}" for g in stops),
                sources=tuple(s for g in stops for s in g.sources), when="the gate's fact changes",
            ))  # fmt: skip
        elif id == best:
            found.append(_favourite(engine, ws))
        else:
            assert best is not None
            found.append(_other(requirements, engine, engines[best], ws, adjust))
    return tuple(found)


def _favourite(engine: Engine, ws: tuple[Weight, ...]) -> Advice:
    strongest = sorted(ws, key=lambda w: -w.weight * level(rated(engine, w.criterion).rating))[:REASONS_NAMED]
    carried = [(w, rated(engine, w.criterion)) for w in strongest]
    return Advice(
        engine=engine.id, role="favourite",
        reason="highest score of those that pass the gates. " + _named([(w.criterion, a.reason) for w, a in carried]),
        sources=_unique(s for _, a in carried for s in a.source),
    )  # fmt: skip


def _baseline(engine: Engine, stops: tuple[Gate, ...], *, runs_today: bool) -> Advice:
    today = "it runs today" if runs_today else "of the others none is simpler to set up"
    not_adopted = "".join(f" Not to be adopted: {g.gate}: {g.reason}" for g in stops)
    ease = rated(engine, EASE)
    return Advice(
        engine=engine.id, role="baseline",
        reason=f"{today}, and without it no gain can be stated. {ease.reason}{not_adopted}",
        sources=_unique((*ease.source, *(s for g in stops for s in g.sources))),
    )  # fmt: skip


def _other(
    requirements: Requirements, engine: Engine, best: Engine, ws: tuple[Weight, ...], adjust: Mapping[str, float] | None
) -> Advice:
    moved = _moved_by_unknown(requirements, engine, best, adjust)
    if moved:
        criterion, words = moved
        return Advice(
            engine=engine.id, role="re-examine", reason=f"{words} {criterion}: {rated(engine, criterion).reason}",
            sources=rated(engine, criterion).source, when=words,
        )  # fmt: skip
    share = {w.criterion: w.weight for w in ws}
    behind = _lead(engine, best, share)
    margin = near_tie_margin(share)
    points = f"{-100 * behind:.1f} points of 100"
    if -behind < CHALLENGER_STEPS * margin:
        words = "a near tie" if -behind < margin else "close enough to be worth measuring"
        return Advice(
            engine=engine.id,
            role="challenger",
            reason=f"{points} behind {best.name}: {words}.",
        )
    if _speed_decides(requirements) and _at_par(engine, best):
        return Advice(
            engine=engine.id, role="challenger",
            reason=(
                f"{points} behind {best.name} on paper, but level with it in {', '.join(SPEED_CRITERIA)}: with "
                "one model, a machine in house and time for upgrades, speed for the money decides, and no document "
                "proves it."
            ),
            sources=_unique(s for c in SPEED_CRITERIA for s in rated(engine, c).source),
        )  # fmt: skip
    losses = {
        w.criterion: w.weight * (level(rated(best, w.criterion).rating) - level(rated(engine, w.criterion).rating))
        for w in ws
    }
    worst = [c for c in sorted(losses, key=lambda c: -round(losses[c], 12)) if losses[c] > 0][:REASONS_NAMED]
    return Advice(
        engine=engine.id, role="later",
        reason=f"{points} behind {best.name}. " + _named([(c, rated(engine, c).reason) for c in worst]),
        sources=_unique(s for c in worst for s in rated(engine, c).source),
        when=f"its ratings change: {', '.join(worst)}",
    )  # fmt: skip


def _speed_decides(r: Requirements) -> bool:
    """Whether what is left to win is speed for the money: one model, own machines, and hands to tune them."""
    return len(r.model_plans) == 1 and all(h.in_house for h in r.hardware) and r.upgrade_effort == "high"


def _at_par(engine: Engine, best: Engine) -> bool:
    return all(level(rated(engine, c).rating) >= level(rated(best, c).rating) for c in SPEED_CRITERIA)


def _moved_by_unknown(
    requirements: Requirements, engine: Engine, best: Engine, adjust: Mapping[str, float] | None
) -> tuple[str, str] | None:
    """The criterion, and in words the first value of an open requirement at which the engine overtakes the winner."""
    for unknown in open_requirements(requirements):
        for value in unknown.values:
            stated = requirements.model_copy(update={unknown.field: value})
            if _lead(engine, best, shares(stated, adjust)) > 0:
                words = f"overtakes {best.name} once the {unknown.words} (not known yet) reaches {value:g}."
                return unknown.criterion, words
    return None


def _lead(engine: Engine, best: Engine, share: Mapping[str, float]) -> float:
    ratings = engine_ratings({"engine": engine, "best": best})
    return total(ratings["engine"], share) - total(ratings["best"], share)


def _named(parts: list[tuple[str, str]]) -> str:
    return " ".join(f"{criterion}: {reason}" for criterion, reason in parts)


def _unique(sources: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sources))
