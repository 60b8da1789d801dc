"""What a PoC can come to beforehand: whether any engine could keep the promise on one unit at all."""

from __future__ import annotations

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.metrics import quantity
from planner.requirements import Requirements
from planner.throughput import KINDS, user_tok_s

NO_CANDIDATE = "no candidate meets this on one unit; change units, model plan, promise or hardware"
_AGAINST = {
    Kind.BOUND: ("is to be expected: not even the bound allows it", "by the bound"),
    Kind.COVERAGE: ("is likely: only the bound allows it", "when experts touched are counted"),
    Kind.PLANNING: ("is possible: the planning value stands against it", "by the planning value"),
}


def outlook(sizing: Sizing, r: Requirements) -> str:
    """One sentence when an estimate excludes the promise for all peak users on one unit; empty when none does."""
    if sizing.inputs is None:
        return ""
    users = r.peak_users_max
    speeds = {kind: user_tok_s(sizing.inputs, kind, users) for kind in KINDS}
    against = next((kind for kind in KINDS if speeds[kind] < r.user_tok_s_promise), None)
    if against is None:
        return ""
    how_likely, by = _AGAINST[against]
    return (
        f'The outcome "{NO_CANDIDATE}" {how_likely}. At {users} users one unit gives each '
        f"{quantity(speeds[against], 'tok/s')} {by}, {quantity(r.user_tok_s_promise, 'tok/s')} are promised. "
        f"{sizing.sentence}"
    )
