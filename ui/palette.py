"""Colours and dashes: one meaning each, in every chart."""

from __future__ import annotations

from collections.abc import Sequence

ENGINE_COLOURS = {
    "vllm": "#2563eb", "ollama": "#d97706", "llama-server": "#d97706", "sglang": "#059669",
    "tensorrt_llm": "#9333ea", "tgi": "#64748b",
}  # fmt: skip
KIND_COLOURS = {
    "bound": "#94a3b8", "coverage": "#5eead4", "planning": "#14b8a6", "simulated": "#a78bfa", "imported": "#d97706",
    "engine-alone": "#0891b2",
    "entered": "#ca8a04", "measured": "#059669", "observed": "#0d9488",
}  # fmt: skip
STATISTIC_COLOURS = {"p50": "#22c55e", "p95": "#3b82f6", "p99": "#f59e0b"}
OTHER_COLOURS = ("#059669", "#0891b2", "#be185d", "#65a30d", "#7c3aed", "#d97706", "#64748b", "#2563eb")
SIMULATED_COLOURS = ("#a78bfa", "#7c3aed", "#c084fc")
# Of a flip condition; each is also said in words beside it.
STATE_COLOURS = {
    "armed": "#22a06b", "near": "#f59e0b", "fired": "#e5484d", "undecided": "#3b82f6", "unmeasured": "#94a3b8",
    "unmeasurable": "#64748b", "expired": "#a16207", "conflicting": "#be185d", "invalid run": "#d97706",
}  # fmt: skip
# What a server answered is solid; what came from elsewhere is dashed; the emulator is dotted and hollow.
DASHES = {
    "measured": [1, 0], "observed": [1, 0], "imported": [9, 3], "entered": [9, 3], "planning": [5, 4],
    "coverage": [5, 4], "bound": [5, 4], "simulated": [2, 3], "engine-alone": [5, 4],
}  # fmt: skip
REQUIRED_COLOUR = "#e5484d"
KNEE_COLOUR = "#728097"


def colours(series: Sequence[str]) -> list[str]:
    """A colour each: of the kind, of the statistic, or of the engine whose name a series begins with."""
    found, simulated = [], 0
    for i, name in enumerate(series):
        candidate, _, kind = name.rpartition(" ")
        fixed = (KIND_COLOURS | STATISTIC_COLOURS | ENGINE_COLOURS).get(name)
        if fixed is None and kind == "simulated":
            fixed, simulated = SIMULATED_COLOURS[simulated % len(SIMULATED_COLOURS)], simulated + 1
        found.append(fixed or ENGINE_COLOURS.get(candidate) or OTHER_COLOURS[i % len(OTHER_COLOURS)])
    return found
