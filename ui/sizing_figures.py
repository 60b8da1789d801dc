"""The figures of a sizing in the order in which people read them: one table for the page, the terminal and JSON.

Every value is that of its derivation, so nothing is shown that cannot explain itself.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.derivation import Derivation
from planner.throughput import KINDS
from planner.tornado import Leg, Swing, Tornado
from planner.units import format_tok_s
from services.what_if import Answer
from ui.text import t


class Figure(NamedTuple):
    """One figure: where it stands, what it is called, its value with unit, and its explanation."""

    section: str
    label: str
    derivation: Derivation

    @property
    def value(self) -> str:
        """The value as it is shown."""
        return self.derivation.value


# Servers that have a memory knob, by the names that they go by everywhere.
ENGINES = (
    ("vllm", "vLLM"), ("sglang", "SGLang"), ("tensorrt_llm", "TensorRT-LLM"), ("tgi", "TGI"),
    ("llama-server", "llama-server"), ("ollama", "Ollama"),
)  # fmt: skip
# Section, key of the derivation, label.
FIGURES: tuple[tuple[str, str, str], ...] = (
    ("Units", "units_bound", "By the bound"),
    ("Units", "units_coverage", "When experts touched are counted"),
    ("Units", "units_planning", "By the planning value"),
    ("Units", "request_rate", "By requests per second"),
    ("Memory", "weights", "Weights"),
    ("Memory", "kv_per_token", "KV per token"),
    ("Memory", "kv_per_request", "KV per request"),
    ("Memory", "kv_pool", "KV cache"),
    ("Memory", "requests_that_fit", "Requests that fit"),
    ("Memory", "largest_context", "Largest context"),
    ("Memory", "reserve", "Engine reserve"),
    *(("Engine settings", f"knob_{engine}", name) for engine, name in ENGINES),
    ("Speed", "completion_sequential", "Last user, one after the other"),
    ("Speed", "completion_batched", "Last user, all at once"),
    ("Speed", "pipeline", "Pipeline stages"),
    ("Speed", "speculation", "Speculative decoding"),
    ("First token", "first_token_floor", "At least"),
    ("First token", "first_token", "Planning value"),
    ("First token", "interference", "Others' prompts take"),
    ("First token", "prompt_gap", "Longest token gap"),
    ("Cost", "energy", "Energy per million output tokens"),
    ("Cost", "cost", "Cost per million output tokens"),
)


def more_figures(answer: Answer) -> tuple[Figure, ...]:
    """What stands beside a sizing: simulated waiting, and the team's measured ratios on this GPU."""
    return (
        *(Figure("Waiting", d.title, d) for d in answer.waiting),
        *(Figure("Measured", d.title, d) for d in answer.ratios),
    )


def figures(s: Sizing, section: str = "") -> tuple[Figure, ...]:
    """The figures that this sizing knows, of one section or of all."""
    return tuple(
        Figure(where, label, s.derivations[key])
        for where, key, label in FIGURES
        if key in s.derivations and section in ("", where)
    )


class BatchLine(NamedTuple):
    """One batch by all three kinds: total and per user, in words, and whether the planning value keeps the promise."""

    batch: int
    total: dict[Kind, str]
    user: dict[Kind, str]
    verdict: str


def batch_lines(s: Sizing) -> tuple[BatchLine, ...]:
    """The batch table."""
    kinds = [k for k in KINDS if k in s.tables]
    lines = []
    for rows in zip(*(s.tables[k] for k in kinds), strict=True):
        by_kind = dict(zip(kinds, rows, strict=True))
        planned, bound = by_kind[Kind.PLANNING], by_kind[Kind.BOUND]
        verdict = "does not fit"
        if planned.fits:
            verdict = "keeps the promise" if planned.meets_promise else "bound only"
            if not bound.meets_promise:
                verdict = "too slow per user"
        lines.append(BatchLine(
            batch=planned.batch, total={k: format_tok_s(r.total_tok_s) for k, r in by_kind.items()},
            user={k: format_tok_s(r.user_tok_s) for k, r in by_kind.items()}, verdict=verdict,
        ))  # fmt: skip
    return tuple(lines)


def leg_words(leg: Leg) -> str:
    """One end of a range in words: what it is, and the answer there."""
    if leg.problem:
        return f"{leg.label}: {leg.problem}"
    units = t("out of reach") if leg.units is None else t("{n} units", n=leg.units)
    return f"{leg.label}: {units}, {format_tok_s(leg.user_tok_s or 0.0)}"


def swing_words(found: Tornado, swing: Swing) -> tuple[str, str, str]:
    """An input, its two ends with the answer there."""
    return swing.title, leg_words(swing.low), leg_words(swing.high)
