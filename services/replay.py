"""A decision replayed from the bytes it was decided on: the score and the verdicts again, and what comes out otherwise.

The facts and figures are those of then; only the code is today's. What today's facts would give is said beside it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from decisions.flips import FlipVerdict, judge_flips
from decisions.record import Adr, SnapshotKind
from decisions.view import current
from planner.catalog import Catalog
from planner.conditions import Context, Evidence, Verdict
from planner.contract import Contract
from planner.differences import Difference, differences
from planner.errors import FliplineError, InputError, NotAllowed
from planner.evaluate import combine, evaluate
from planner.known import Known
from planner.plan_file import plan_from_yaml
from planner.poc import levels_hash
from planner.requirements import Requirements
from planner.scoring import Score, score
from services.decided import of_plan
from services.usage import newest
from services.verdicts import CaseState, judge_adr, judge_hypotheses
from services.workspace import Workspace

_EVIDENCE: TypeAdapter[tuple[Evidence, ...]] = TypeAdapter(tuple[Evidence, ...])
_CONTRACTS: TypeAdapter[dict[str, Contract]] = TypeAdapter(dict[str, Contract])


class Part(NamedTuple):
    """One thing that was worked out again: what differs, or why it could not be (`lacking`)."""

    name: str
    differences: tuple[Difference, ...] = ()
    lacking: str = ""


class Replayed(NamedTuple):
    """A decision worked out again. `parts` use the facts of then; `today` is the score under today's catalogue."""

    adr: Adr
    parts: tuple[Part, ...]
    today: Part

    @property
    def same(self) -> bool:
        """Whether all that could be worked out again came out as it was."""
        return not any(p.differences for p in self.parts)


def verdicts_as_given(state: CaseState, adr: Adr) -> dict[str, Any]:
    """What was said of every hypothesis and flip condition, and when: kept with the decision, to be held against."""
    return {
        "at": state.context.now.isoformat(),
        "hypotheses": {h.hypothesis.id: _verdict(h.verdict) for h in judge_hypotheses(state)},
        "flip conditions": {v.condition: _verdict(v) for v in judge_adr(state, adr)},
    }


def replay(ws: Workspace, adr_id: str) -> Replayed:
    """Work a decision out again from its snapshots.

    Raises UnknownName, NotAllowed for a decision that was never accepted, InputError for a snapshot that is damaged.
    """
    edits = ws.store.adrs.edits(adr_id)
    at = next((i for i, e in enumerate(edits) if e.kind == "accepted"), None)
    if at is None:
        raise NotAllowed("was never accepted, so nothing was kept to replay.", where=ws.store.adrs.get(adr_id).name,
                         fix="Accept it first.")  # fmt: skip
    then, decided = current(edits[:at]), current(edits[: at + 1])
    kept = {s.kind: ws.store.snapshots.get(s.sha256) for s in decided.snapshots}
    try:
        parts = (_score(kept, _catalogue(kept)), _verdicts(ws, kept, then))
        return Replayed(
            ws.store.adrs.get(adr_id), parts, _score(kept, ws.catalog)._replace(name="score by today's facts")
        )
    except (ValidationError, ValueError) as e:
        raise InputError(f"what was kept cannot be read: {str(e).splitlines()[0]}.", where=decided.name,
                         fix="Run adr verify.") from None  # fmt: skip


def _verdict(v: Verdict | FlipVerdict) -> dict[str, object]:
    return {"state": v.state.value, "value": v.value}


def _catalogue(kept: dict[SnapshotKind, bytes]) -> Catalog | None:
    return Catalog.model_validate_json(kept["catalogue"]) if "catalogue" in kept else None


def _score(kept: dict[SnapshotKind, bytes], catalog: Catalog | None) -> Part:
    """The score of then against one worked out now, under a catalogue."""
    if "score" not in kept or "requirements" not in kept:
        return Part("score", lacking="it was decided without requirements, so nothing was scored")
    if catalog is None:
        return Part("score", lacking="the facts of then were not kept by the Flipline that it was accepted in")
    r = Requirements.model_validate_json(kept["requirements"])
    was = Score.model_validate_json(kept["score"])
    try:
        gpu = catalog.gpu(r.hardware[0].gpu)
        again = score(r, catalog.engines, compute_capability=gpu.compute_capability)
    except FliplineError as e:
        return Part("score", (Difference(("score",), was.sentence, str(e)),))
    return Part("score", differences(was, again))


def _verdicts(ws: Workspace, kept: dict[SnapshotKind, bytes], adr: Adr) -> Part:
    """Every hypothesis of the plan and every flip condition, judged again at the moment of then."""
    if "verdicts" not in kept:
        return Part("verdicts", lacking="they were not kept by the Flipline that it was accepted in")
    was = json.loads(kept["verdicts"])
    evidence = {e.id: e for e in _EVIDENCE.validate_json(kept["evidence"])}  # one counted again stands last
    plan = plan_from_yaml(kept["plan"].decode()) if "plan" in kept else None
    context = Context(
        now=datetime.fromisoformat(was["at"]), points=plan.points() if plan else None,
        contracts=_CONTRACTS.validate_json(kept["contracts"]) if "contracts" in kept else ws.store.evidence.contracts(),
        decided=of_plan(plan),
        service_levels=levels_hash(plan.service_levels) if plan else None,
    )  # fmt: skip
    known = newest(Known(evidence.values()))
    judged = {h.id: combine("all of", tuple(evaluate(c, known, context) for c in h.conditions))
              for h in (plan.hypotheses if plan else ())}  # fmt: skip
    flips = judge_flips(adr, known, context)
    again = {
        "hypotheses": {id: _verdict(v) for id, v in judged.items()},
        "flip conditions": {v.condition: _verdict(v) for v in flips},
    }
    return Part("verdicts", differences({k: v for k, v in was.items() if k != "at"}, again))
