"""The contract that verdicts are held against: what is planned, what was decided on, what runs in production."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache

from pydantic import ValidationError

from decisions.record import Adr, Deployment
from planner.contract import Contract
from planner.errors import FliplineError
from planner.plan_file import plan_from_yaml
from planner.poc import Plan
from planner.requirements import Requirements
from services.workspace import Workspace


def of_plan(plan: Plan | None) -> dict[str, Contract]:
    """The contract asked for, per candidate, without what a stage's rule sets later.

    The version that was asked for is demanded of the server too: what it reports has to be within the tolerance of it.
    """
    if plan is None:
        return {}
    return {name: _demanding(asked) for name, asked in asked_for(plan).items()}


def asked_for(plan: Plan) -> dict[str, Contract]:
    """The shared part and each candidate's own, without what a stage's rule sets later."""
    later = {s.rule.setting for s in plan.stages if s.rule}
    return {
        c.id: Contract(shared=plan.shared_contract, candidate={k: v for k, v in c.contract.items() if k not in later})
        for c in plan.candidates
    }


def _demanding(contract: Contract) -> Contract:
    version = contract.candidate.get("engine_version", "")
    reported = {"engine_version_reported": version} if version else {}
    return contract.model_copy(update={"observed": {**contract.observed, **reported}})


def accepted_plan(ws: Workspace, adr: Adr) -> Plan | None:
    """The plan that an ADR was accepted on; None where it was accepted without one."""
    sha256 = adr.snapshot("plan")
    try:
        return _read_plan(ws.store.snapshots.get(sha256)) if sha256 else None
    except FliplineError:  # a plan that this Flipline no longer reads: the plan of today stands in
        return None


def accepted_requirements(ws: Workspace, adr: Adr) -> Requirements | None:
    """The requirements that an ADR was accepted on; None where it was accepted without any."""
    sha256 = adr.snapshot("requirements")
    try:
        return Requirements.model_validate_json(ws.store.snapshots.get(sha256)) if sha256 else None
    except (FliplineError, ValidationError):  # those that this Flipline no longer reads: today's stand in
        return None


@lru_cache(maxsize=64)
def _read_plan(body: bytes) -> Plan:
    return plan_from_yaml(body.decode())


def in_production(
    decided: Mapping[str, Contract], deployments: Iterable[Deployment], at: datetime
) -> dict[str, Contract]:
    """The same contracts with what runs in production by `at`: the newest deployment of each candidate."""
    found = dict(decided)
    for d in deployments:  # oldest first, so that the newest is the last to speak
        if d.since <= at:
            found[d.candidate] = _deployed(decided.get(d.candidate, Contract()), d)
    return found


def _deployed(decided: Contract, d: Deployment) -> Contract:
    shared = {"model": d.model, "model_revision": d.model_revision}
    candidate = {"engine": d.engine, "engine_version": d.engine_version, "image": d.image}
    return _demanding(decided.model_copy(update={
        "shared": {**decided.shared, **{k: v for k, v in shared.items() if v}},
        "candidate": {**decided.candidate, **{k: v for k, v in candidate.items() if v}},
    }))  # fmt: skip
