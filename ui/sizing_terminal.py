"""The Sizing page in a terminal: the same figures, batch table, swings and explanations, and the same as JSON."""

from __future__ import annotations

from typing import Any

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.errors import UnknownName
from planner.throughput import KINDS
from services.what_if import Answer
from ui.sizing_figures import batch_lines, figures, more_figures, swing_words
from ui.terminal import Argument, say, table

EXPLAIN_ALL = "all"
SIZE_EXAMPLE = "size --model Qwen/Qwen3-30B-A3B --gpu GX-10 --context 4096 --users 50 --quantization fp8"
_OPTIONS = (
    ("--model", "ID", "model of the catalogue, without a case"),
    ("--gpu", "ID", "GPU of the catalogue: id, name or alias"),
    ("--context", "TOKENS", "prompt plus answer, as in 4096 or 8k"),
    ("--users", "N", "users at once"),
    ("--quantization", "NAME", "weight format (default: bf16)"),
    ("--kv-dtype", "NAME", "KV cache format (default: fp16)"),
    ("--tp", "N", "devices that share every layer (default: 1)"),
    ("--pp", "N", "stages that share the layers (default: 1)"),
    ("--output", "TOKENS", "answer length (default: 500)"),
    ("--target", "TOK/S", "tok/s per user (default: 25)"),
    ("--rate", "PER_S", "requests per second at the peak (default: one a minute and user)"),
    ("--utilisation", "SHARE", "how far a unit is loaded at most (default: 0.7)"),
    ("--engine", "ID", "engine whose measured ratios count (default: none)"),
    ("--slots", "N", "the engine's limit of requests at once (default: the users)"),
    ("--chunk", "TOKENS", "prompt tokens that one step takes at most (default: 8192)"),
    ("--fraction", "SHARE", "of the device's total that the engine takes, as vLLM means it (default: all but others)"),
    ("--tenants", "GB", "memory of other programs on the GPU: embedding model, reranker"),
    ("--tenant-bandwidth", "SHARE", "of the bandwidth that they use (default: 0)"),
    ("--draft", "TOKENS", "speculative decoding: tokens guessed ahead (default: none)"),
    ("--acceptance", "SHARE", "of the guesses that are right, as measured"),
    ("--draft-cost", "SHARE", "one guess, of a step of the model (default: 0.05)"),
    ("--draft-gb", "GB", "a draft model of its own (default: the model's draft layers)"),
    ("--bandwidth", "GB/S", "state it where the catalogue does not know it"),
    ("--tflops", "TFLOPS", "dense matrix rate, stated"),
    ("--device-total", "GIB", "total as the driver reports it, stated"),
    ("--power", "W", "board power, stated"),
    ("--price", "MONEY", "price of one unit, stated"),
    ("--years", "N", "years in use, stated"),
    ("--electricity", "MONEY", "price of one kWh, stated"),
)
ASKED = tuple(Argument(name, {"metavar": metavar, "help": words}) for name, metavar, words in _OPTIONS)
EXPLAIN = Argument("--explain", {"metavar": "KEY", "help": f"formula, inputs, error of one figure, or '{EXPLAIN_ALL}'"})


def print_answer(answer: Answer, explain: str | None = None) -> None:
    """A sizing as the page shows it, or only how one figure (or all) came about. Raises UnknownName."""
    if answer.sizing is None:
        say(f"{answer.plan.id}: {answer.problem}")
    elif explain:
        _explained(answer, answer.sizing, explain)
    else:
        _shown(answer, answer.sizing)


def answer_json(answer: Answer) -> dict[str, Any]:
    """The same as data: figures with their explanations, the batch table, swings, and the whole sizing."""
    found = {"plan": answer.plan.id, "problem": answer.problem}
    return found | (_sizing_json(answer, answer.sizing) if answer.sizing else {})


def _shown(answer: Answer, s: Sizing) -> None:
    name, found = f"{answer.plan.id} {answer.plan.label}", answer.swings
    say(f"{name}: {s.sentence}")
    for warning in s.warnings:
        say(f"  ! {warning}")
    shown = (*figures(s), *more_figures(answer))
    what = "measured where it says so" if answer.ratios else "nothing of this is measured"
    table(f"{name}: {what}", ("part", "figure", "value", "explain"),
          [(f.section, f.label, f.value, f.derivation.key) for f in shown])  # fmt: skip
    missing = [f.title for f in s.gaps if getattr(s.settings.stated, f.field) is None]
    if answer.not_simulated:
        say(f"Waiting is not simulated: {answer.not_simulated}")
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


def _explained(answer: Answer, s: Sizing, key: str) -> None:
    more = more_figures(answer)
    known = {**s.derivations, **{f.derivation.key: f.derivation for f in more}}
    keys = [f.derivation.key for f in (*figures(s), *more)] if key == EXPLAIN_ALL else [key]
    if key != EXPLAIN_ALL and key not in known:
        raise UnknownName.from_known("figure", key, known, where="--explain")
    for one in keys:
        first, *rest = known[one].lines()
        say(first)
        for line in rest:
            say(f"  {line}")


def _sizing_json(answer: Answer, s: Sizing) -> dict[str, Any]:
    found = answer.swings
    units = [{"kind": u.kind.value, "users": u.users, "units": u.units, "with_spare": u.units_with_spare}
             for u in s.units]  # fmt: skip
    return {
        "sentence": s.sentence,
        "units": units,
        "figures": [
            {"section": f.section, "label": f.label, "value": f.value, "key": f.derivation.key,
             "explained": f.derivation.model_dump(mode="json")}
            for f in (*figures(s), *more_figures(answer))
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
