"""The Sizing page in a terminal: the same figures, batch table, swings and explanations, and the same as JSON."""

from __future__ import annotations

from typing import Any

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.errors import UnknownName
from planner.throughput import KINDS
from planner.tornado import Tornado
from services.what_if import Answer
from ui.sizing_figures import batch_lines, figures, swing_words
from ui.terminal import Argument, say, table

EXPLAIN_ALL = "all"
SIZE_EXAMPLE = "size --model Qwen/Qwen3-30B-A3B --gpu GX-10 --context 4096 --users 50 --quantization fp8"
ASKED = (
    Argument("--model", {"metavar": "ID", "help": "model of the catalogue, without a case"}),
    Argument("--gpu", {"metavar": "ID", "help": "GPU of the catalogue: id, name or alias"}),
    Argument("--context", {"metavar": "TOKENS", "help": "prompt plus answer, as in 4096 or 8k"}),
    Argument("--users", {"metavar": "N", "help": "users at once"}),
    Argument("--quantization", {"metavar": "NAME", "help": "weight format (default: bf16)"}),
    Argument("--kv-dtype", {"metavar": "NAME", "help": "KV cache format (default: fp16)"}),
    Argument("--tp", {"metavar": "N", "help": "devices that share every layer (default: 1)"}),
    Argument("--pp", {"metavar": "N", "help": "stages that share the layers (default: 1)"}),
    Argument("--output", {"metavar": "TOKENS", "help": "answer length (default: 500)"}),
    Argument("--target", {"metavar": "TOK/S", "help": "tok/s per user (default: 25)"}),
    Argument("--engine", {"metavar": "ID", "help": "engine whose measured ratios count (default: none)"}),
    Argument("--tenants", {"metavar": "GB", "help": "memory of other programs on the GPU"}),
    Argument("--bandwidth", {"metavar": "GB/S", "help": "state it where the catalogue does not know it"}),
    Argument("--tflops", {"metavar": "TFLOPS", "help": "dense matrix rate, stated"}),
    Argument("--device-total", {"metavar": "GIB", "help": "total as the driver reports it, stated"}),
    Argument("--power", {"metavar": "W", "help": "board power, stated"}),
)
EXPLAIN = Argument("--explain", {"metavar": "KEY", "help": f"formula, inputs, error of one figure, or '{EXPLAIN_ALL}'"})


def print_answer(answer: Answer, explain: str | None = None) -> None:
    """A sizing as the page shows it, or only how one figure (or all) came about. Raises UnknownName."""
    if answer.sizing is None:
        say(f"{answer.plan.id}: {answer.problem}")
    elif explain:
        _explained(answer.sizing, explain)
    else:
        _shown(answer.sizing, f"{answer.plan.id} {answer.plan.label}", answer.swings)


def answer_json(answer: Answer) -> dict[str, Any]:
    """The same as data: figures with their explanations, the batch table, swings, and the whole sizing."""
    found = {"plan": answer.plan.id, "problem": answer.problem}
    return found | (_sizing_json(answer.sizing, answer.swings) if answer.sizing else {})


def _shown(s: Sizing, name: str, found: Tornado | None) -> None:
    say(f"{name}: {s.sentence}")
    for warning in s.warnings:
        say(f"  ! {warning}")
    shown = figures(s)
    table(f"{name}: nothing of this is measured", ("part", "figure", "value", "explain"),
          [(f.section, f.label, f.value, f.derivation.key) for f in shown])  # fmt: skip
    missing = [f.title for f in s.gaps if getattr(s.settings.stated, f.field) is None]
    if missing:
        say(f"Not known, state it to count it: {', '.join(missing)}.")
    lines = batch_lines(s)
    if lines:
        table(
            f"{name}: tok/s per user (in total)", ("in flight", *(k.value for k in KINDS), "promise"),
            [[b.batch, *(f"{b.user[k]} ({b.total[k].removesuffix(' tok/s')})" for k in KINDS), b.verdict]
             for b in lines],
        )  # fmt: skip
    if found and found.swings:
        table(f"{name}: what moves the answer most, planning value", ("input", "at one end", "at the other"),
              [swing_words(found, swing) for swing in found.swings])  # fmt: skip


def _explained(s: Sizing, key: str) -> None:
    keys = [f.derivation.key for f in figures(s)] if key == EXPLAIN_ALL else [key]
    if key != EXPLAIN_ALL and key not in s.derivations:
        raise UnknownName.from_known("figure", key, s.derivations, where="--explain")
    for one in keys:
        first, *rest = s.derivation(one).lines()
        say(first)
        for line in rest:
            say(f"  {line}")


def _sizing_json(s: Sizing, found: Tornado | None) -> dict[str, Any]:
    units = [{"kind": u.kind.value, "users": u.users, "units": u.units, "with_spare": u.units_with_spare}
             for u in s.units]  # fmt: skip
    return {
        "sentence": s.sentence,
        "units": units,
        "figures": [
            {"section": f.section, "label": f.label, "value": f.value, "key": f.derivation.key,
             "explained": f.derivation.model_dump(mode="json")}
            for f in figures(s)
        ],
        "batches": [
            {"in_flight": row.batch, **{k.value: _speeds(s, k, row.batch) for k in KINDS}}
            for row in s.tables.get(Kind.BOUND, ())
        ],
        "swings": [swing.model_dump(mode="json") for swing in found.swings] if found else [],
        "gaps": [f._asdict() for f in s.gaps],
        "warnings": list(s.warnings),
        "sizing": s.model_dump(mode="json", exclude={"derivations", "tables"}),
    }  # fmt: skip


def _speeds(s: Sizing, kind: Kind, batch: int) -> dict[str, float | bool]:
    row = s.row(kind, batch)
    return {} if row is None else {
        "total_tok_s": row.total_tok_s, "user_tok_s": row.user_tok_s, "fits": row.fits,
        "meets_promise": row.meets_promise,
    }  # fmt: skip
