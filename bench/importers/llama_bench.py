"""llama.cpp `llama-bench`: JSON (-o json, -o jsonl) or its Markdown table. One stream, the engine alone.

Prompt tests (pp) and combined ones (pg) give no figure that a server's user sees; generation tests (tg) do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bench.importers.foreign import (
    ENGINE_ALONE,
    EXPECTATION,
    NO_DETAIL,
    Doc,
    Foreign,
    Format,
    Load,
    Stated,
    Term,
    day_of,
    load_point,
    needed,
    number,
    table_rows,
    text_of,
)
from bundle.manifest import Figure
from planner.conditions import Kind
from planner.errors import InputError

TERMS = (
    Term("tg avg_ts", "user_tok_s", ENGINE_ALONE),
    Term("pp avg_ts", "", "prompt tokens per second without a server are no TTFT"),
    Term("pg avg_ts", "", "prompt and answer tokens in one figure"),
    Term("stddev_ts", "", "spread over its repetitions of one stream, not over requests"),
)


class Test(NamedTuple):
    """One row: tokens of prompt, answer and depth (context before the test), tok/s, and repetitions if known."""

    prompt: int
    answer: int
    depth: int
    tok_s: float
    runs: int | None
    at: datetime
    duration_s: float


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Its own field names, or a table with a test and a t/s column."""
    if docs:
        return {"n_prompt", "n_gen", "avg_ts"} <= docs[0].keys()
    rows = table_rows(text, "model")
    return bool(rows) and {"test", "t/s", "backend"} <= rows[0].keys()


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """The generation tests of the file; a test from an empty context counts as one prompt token."""
    tests = list(_from_json(docs, stated) if docs else _from_table(text, stated))
    generating = [t for t in tests if t.answer and not t.prompt]
    if not generating:
        raise InputError("holds no text generation test (tg), only prompt tests.", fix="Run llama-bench with -n.")
    first = docs[0] if docs else {}
    what = {
        k: str(first[k]) for k in ("model_filename", "model_type", "type_k", "gpu_info", "cpu_info") if first.get(k)
    }
    build = text_of(first, "build_commit") or ((found := re.search(r"build: (\S+)", text)) and found[1]) or ""
    return Foreign(
        tool="llama-bench", version="" if build == "unknown" else build, loads=tuple(_load(t) for t in generating),
        taken={"tg avg_ts": "user_tok_s, output_tok_s"}, refused=FORMAT.refused(),
        not_measured=dict.fromkeys(("ttft_service_ms", "ttft_ms", "e2e_ms"), ENGINE_ALONE) | {"itl_ms": NO_DETAIL},
        settings=what,
    )  # fmt: skip


def _load(t: Test) -> Load:
    point = load_point(in_flight=1, input_tokens=max(1, t.depth), output_tokens=t.answer, requests=t.runs or 1)
    made = Figure(load_point=point.name, metric="user_tok_s", statistic="mean", value=t.tok_s, n=t.runs,
                  theirs=f"tg{t.answer} t/s", remark=ENGINE_ALONE, kind=Kind.ENGINE_ALONE)  # fmt: skip
    whole = made.model_copy(update={"metric": "output_tok_s", "statistic": "value",
                                    "remark": f"{ENGINE_ALONE}, no prefill"})  # fmt: skip
    return Load(point, t.at, t.duration_s, figures=(made, whole), notes=(EXPECTATION,))


def _from_json(docs: Sequence[Doc], stated: Stated) -> Iterator[Test]:
    for d in docs:
        samples = d.get("samples_ts")
        speed = needed(d, "avg_ts")
        if speed <= 0:
            raise InputError(f"a test ran at {speed:g} tok/s, which cannot be.", fix="Run it again.")
        try:
            at = datetime.fromisoformat(text_of(d, "test_time"))
        except ValueError:
            at = day_of(stated)
        yield Test(
            round(needed(d, "n_prompt")), round(needed(d, "n_gen")), round(number(d, "n_depth") or 0), speed,
            len(samples) if isinstance(samples, list) else None, at if at.tzinfo else at.replace(tzinfo=UTC),
            (number(d, "avg_ns") or 0.0) / 1e9,
        )  # fmt: skip


def _from_table(text: str, stated: Stated) -> Iterator[Test]:
    for row in table_rows(text, "model"):
        found = re.fullmatch(r"(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?", row["test"])
        speed = re.match(r"[\d.]+", row["t/s"])
        if not found or not speed:
            raise InputError(f"row {row['test']!r} is not a test with a speed.", fix="Choose the table as written.")
        prompt, answer, depth = (int(x or 0) for x in found.groups())
        yield Test(prompt, answer, depth, float(speed[0]), None, day_of(stated), 0.0)


FORMAT = Format("llama-bench", "llama-bench (JSON, JSON lines or table)", TERMS, recognises, read)
