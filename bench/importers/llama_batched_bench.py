"""llama.cpp `llama-batched-bench`: its Markdown table or --output-format jsonl. A static batch, the engine alone.

All B sequences are prefilled, then decoded in lockstep: every sequence runs at S_TG / B.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    table_rows,
)
from bundle.manifest import Figure
from planner.conditions import Kind
from planner.errors import InputError

TERMS = (
    Term("S_TG t/s", "user_tok_s", f"speed of the batch over its size; {ENGINE_ALONE}"),
    Term("T s", "output_tok_s", f"B x TG / T, prefill included; {ENGINE_ALONE}"),
    Term("T_PP s", "", "prefill of the whole batch without a server is no TTFT"),
    Term("S_PP t/s", "", "prompt tokens per second are none of our metrics"),
    Term("S t/s", "", "prompt and answer tokens in one figure"),
)
# Table columns and the field of the JSON lines that means the same.
COLUMNS = {"PP": "pp", "TG": "tg", "B": "pl", "S_TG t/s": "speed_tg", "T s": "t"}


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Its own field names or table head."""
    if docs:
        return {"pp", "tg", "pl", "speed_tg"} <= docs[0].keys()
    rows = table_rows(text, "PP")
    return bool(rows) and COLUMNS.keys() <= rows[0].keys()


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """Every row as a load; the day is the person's, as the output has none."""
    at = day_of(stated)
    if "is_tg_separate = 1" in text:
        raise InputError("decodes one sequence after another (-tgs), which is no batch.", fix="Run it without -tgs.")
    rows = docs or [_numbers(row) for row in table_rows(text, "PP")]
    loads = []
    for row in rows:
        batch, prompt, answer = (round(needed(row, name)) for name in ("pl", "pp", "tg"))
        speed, whole_s = needed(row, "speed_tg"), needed(row, "t")
        if speed <= 0 or whole_s <= 0:
            raise InputError(f"a row ran at {speed:g} tok/s, which cannot be.", fix="Run it again.")
        point = load_point(in_flight=batch, input_tokens=prompt, output_tokens=answer, requests=batch)
        shared = {"shared_prefix": 1.0} if row.get("is_pp_shared") else {}
        lockstep = Figure(load_point=point.name, metric="user_tok_s", value=speed / batch, n=batch, theirs="S_TG t/s",
                          remark=TERMS[0].why, kind=Kind.ENGINE_ALONE)  # fmt: skip
        figures = [lockstep.model_copy(update={"statistic": s}) for s in ("p5", "p50", "mean")]
        figures.append(Figure(load_point=point.name, metric="output_tok_s", value=batch * answer / whole_s, n=batch,
                              theirs="T s", remark=TERMS[1].why, kind=Kind.ENGINE_ALONE))  # fmt: skip
        unstated = () if docs and "is_pp_shared" in row else ("shared_prefix",)
        loads.append(Load(point.model_copy(update=shared), at, whole_s, figures=tuple(figures), unstated=unstated,
                          notes=(EXPECTATION,)))  # fmt: skip
    return Foreign(
        tool="llama-batched-bench", version="", loads=tuple(loads),
        taken={t.theirs: t.metric for t in TERMS if t.metric}, refused=FORMAT.refused(),
        not_measured=dict.fromkeys(("ttft_service_ms", "ttft_ms", "e2e_ms"), ENGINE_ALONE) | {"itl_ms": NO_DETAIL},
    )  # fmt: skip


def _numbers(row: dict[str, str]) -> Doc:
    try:
        return {field: float(row[column]) for column, field in COLUMNS.items()}
    except ValueError as e:
        raise InputError(f"a cell is not a number: {e}.", fix="Choose the table as the tool wrote it.") from None


FORMAT = Format("llama-batched-bench", "llama-batched-bench (table or JSON lines)", TERMS, recognises, read)
