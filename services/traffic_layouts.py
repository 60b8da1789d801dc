"""Layouts of request logs that are recognised by their columns, and how a clock column counts.

Column names as the publishers have them: github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023.md and
2024.md), github.com/kvcache-ai/Mooncake (FAST25-release), github.com/HPMLL/BurstGPT (README; BurstGPT_3.csv has two
more columns). ShareGPT's conversations have no columns; services/sharegpt.py reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from planner.errors import InputError, UnknownName
from planner.traffic import EPOCH_FROM_S

Role = Literal["time", "input", "output", "end", "took", "session", "prefix", "prefix_tokens", "cached", "blocks"]
Unit = Literal["s", "ms", "us", "ns", "auto"]
# What each role holds, in words; the first three must be there.
ROLES: dict[Role, str] = {
    "time": "when the request came",
    "input": "prompt tokens",
    "output": "answer tokens",
    "end": "when the answer was complete",
    "took": "how long it took, in the unit of its name (_s or _ms), else of the time",
    "session": "id of the conversation",
    "prefix": "id of the shared prefix",
    "prefix_tokens": "tokens of the shared prefix",
    "cached": "prompt tokens that came from the cache",
    "blocks": "hashes of the prompt's blocks",
}
NEEDED: tuple[Role, ...] = ("time", "input", "output")
PER_SECOND: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# Clock units by how large a number since 1970 is; a year beyond 2100 is none.
LATEST_EPOCH_S = 4.1e9
MOONCAKE_BLOCK_TOKENS = 512


class Layout(NamedTuple):
    """Which column plays which role, and in which unit numbers of the clock are."""

    id: str
    title: str
    columns: Mapping[Role, str]
    unit: Unit = "auto"
    block_tokens: int = MOONCAKE_BLOCK_TOKENS


_TOKENS: Mapping[Role, str] = {"input": "input_tokens", "output": "output_tokens"}
_MORE: Mapping[Role, str] = {
    "end": "end", "took": "latency_s", "session": "session_id", "prefix": "prefix_id",
    "prefix_tokens": "prefix_tokens", "cached": "cached_tokens",
}  # fmt: skip
_IN_MS: Mapping[str, str] = {"latency_s": "latency_ms"}  # the same in another unit, which the name tells
_OPENAI: Mapping[Role, str] = {"input": "prompt_tokens", "output": "completion_tokens"}
LAYOUTS: tuple[Layout, ...] = (
    Layout("azure", "Azure LLM inference trace",
           {"time": "TIMESTAMP", "input": "ContextTokens", "output": "GeneratedTokens"}),
    Layout("mooncake", "Mooncake trace",
           {"time": "timestamp", "input": "input_length", "output": "output_length", "blocks": "hash_ids"}, "ms"),
    Layout("burstgpt", "BurstGPT trace",
           {"time": "Timestamp", "input": "Request tokens", "output": "Response tokens", "session": "Session ID",
            "took": "Elapsed time"}, "s"),
    Layout("replay", "replay trace", {"time": "t_s", **_TOKENS, **_MORE, "session": "session"}, "s"),
    Layout("own", "request log", {"time": "timestamp", **_TOKENS, **_MORE}),
    Layout("openai", "request log with OpenAI's usage fields", {"time": "timestamp", **_OPENAI, **_MORE}),
)  # fmt: skip


def recognised(columns: Iterable[str]) -> Layout | None:
    """The first layout whose needed columns are all there, with those of its other columns that are."""
    there = set(columns)
    for layout in LAYOUTS:
        if {layout.columns[role] for role in NEEDED} <= there:
            named = ((role, n) for role, name in layout.columns.items() for n in (_IN_MS.get(name), name))
            return layout._replace(columns={role: n for role, n in named if n in there})
    return None


def by_hand(columns: Mapping[Role, str], unit: Unit, there: Iterable[str]) -> Layout:
    """A layout that a person states; raises InputError when a needed role is missing or a role is none of ours."""
    known = tuple(there)
    for role, name in columns.items():
        if role not in ROLES:
            raise UnknownName.from_known("role", role, ROLES, where="columns")
        if name not in known:
            raise UnknownName.from_known("column", name, known, where=f"columns, {role}")
    missing = [role for role in NEEDED if role not in columns]
    if missing:
        raise InputError(f"no column is named for {', '.join(missing)}.", where="columns",
                         fix=f"Name one for each of {', '.join(NEEDED)}.")  # fmt: skip
    return Layout("by hand", "columns named by hand", dict(columns), unit)


def unit_of(layout: Layout, role: Role, first: float, where: str) -> float:
    """Units per second of a number column: as stated, by how large a date is, or by the end of the column's name.

    Raises InputError when nothing tells seconds from milliseconds.
    """
    name = layout.columns[role]
    by_name = next((u for u in ("ms", "us", "ns", "s") if name.lower().endswith(f"_{u}")), None)
    if role == "took" and by_name:
        return PER_SECOND[by_name]
    if layout.unit != "auto":
        return PER_SECOND[layout.unit]
    for unit in ("s", "ms", "us", "ns"):
        if role != "took" and EPOCH_FROM_S <= first / PER_SECOND[unit] < LATEST_EPOCH_S:
            return PER_SECOND[unit]
    if by_name is None or not math.isfinite(first):
        raise InputError(f"column {name} counts from a zero of its own: nothing tells seconds from milliseconds.",
                         where=where, fix="State the unit, s or ms.")  # fmt: skip
    return PER_SECOND[by_name]
