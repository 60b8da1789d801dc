"""The example quality set of the catalogue, as a plan names it."""

from __future__ import annotations

import hashlib

from planner.hypothesis_case import QualitySet
from services.workspace import ROOT

SHIPPED_SET = ROOT / "catalog" / "quality" / "example.jsonl"


def shipped_quality_set() -> QualitySet:
    """Name, SHA-256 and number of items of the set; the file has to lie beside the plan."""
    data = SHIPPED_SET.read_bytes()
    return QualitySet(SHIPPED_SET.name, hashlib.sha256(data).hexdigest(), len(data.splitlines()))
