"""Files that a plan names beside itself and that Flipline ships: they come along wherever the plan goes."""

from __future__ import annotations

import hashlib

from planner.poc import Plan
from services.quality_set import SHIPPED_SET


def shipped_beside(plan: Plan) -> dict[str, bytes]:
    """Contents by name; a file of that name with other contents is the team's own and is not ours to give."""
    data = SHIPPED_SET.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return {p.file: data for p in plan.load_points if p.file == SHIPPED_SET.name and p.file_sha256 == digest}
