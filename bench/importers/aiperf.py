"""AIPerf profile_export.jsonl (read at aiperf 0.13.0): a line per request, warm-up lines among them.

The load is not in the file: the person states it. Token counts are the client tokenizer's unless the server's usage
was recorded, and then speeds per token are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from bench.importers.foreign import (
    Doc,
    Foreign,
    Format,
    Load,
    Stated,
    Term,
    load_point,
    number,
    part,
    record,
    text_of,
)
from bundle.records import Record
from planner.errors import InputError

CREDIT = "scheduled time: when the tool issued the request's credit"
TERMS = (
    Term("time_to_first_token", "ttft_service_ms", "any channel, from just before the send; connecting counts"),
    Term("credit_issued_ns", "ttft_ms", CREDIT),
    Term("inter_chunk_latency", "itl_ms", "gap per chunk"),
    Term("usage_completion_tokens", "tpot_ms", "the server's count over the chunk times"),
    Term("request_latency", "", "starts at dispatch; ours is computed from credit and last chunk"),
    Term("inter_token_latency", "", "divides by the client tokenizer's count; ours is computed from the server's"),
    Term("time_to_first_output_token", "", "first visible token; ours is the first on any channel"),
    Term("time_to_second_token", "", "none of our metrics"),
    Term("output_sequence_length", "", "the client tokenizer's count, which need not be the server's"),
)
OWN_COUNT = "tokens were counted by the client's tokenizer, not by the server (use --use-server-token-count)"
NS = 1e9


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Lines with metadata and a benchmark phase."""
    return bool(docs) and isinstance(docs[0].get("metadata"), dict) and "benchmark_phase" in docs[0]["metadata"]


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """The profiling lines, as one load."""
    lines = [d for d in docs if text_of(part(d, "metadata"), "benchmark_phase") == "profiling"]
    if not lines:
        raise InputError("holds only warm-up requests.", fix="Import the file of a whole run.")
    meta = [part(d, "metadata") for d in lines]
    credit = all(number(m, "credit_issued_ns") is not None for m in meta)
    counted = all(_value(d, "usage_completion_tokens") is not None for d in lines if not d.get("error"))
    if stated.in_flight is not None and stated.rate_per_s is not None:
        raise InputError("cannot have both requests in flight and a rate.", fix="State one of the two.")
    records = list(_records(lines, credit, counted))
    good = [r for r in records if r.outcome == "ok"]
    if not good:
        raise InputError("no request of this run ended well.", fix="Import a run that answered.")
    lengths = [_value(d, "output_sequence_length") for d in lines if not d.get("error")]
    known = [x for x in (lengths if not counted else [r.output_tokens for r in good]) if x]
    prompts = [r.prompt_tokens for r in good if r.prompt_tokens]
    point = load_point(
        in_flight=stated.in_flight, rate_per_s=stated.rate_per_s, input_tokens=sum(prompts) / max(1, len(prompts)),
        output_tokens=sum(known) / max(1, len(known)), requests=len(records),
    )  # fmt: skip
    ends = [v for m in meta if (v := number(m, "request_end_ns"))]
    starts = [v for m in meta if (v := number(m, "request_start_ns"))]
    if not ends or not starts:
        raise InputError("field 'request_end_ns' is missing.", fix="Choose the file as the tool wrote it.")
    warmed = len(docs) - len(lines)
    load = Load(point, datetime.fromtimestamp(max(ends) / NS, UTC), (max(ends) - min(starts)) / NS, tuple(records),
                unstated=("shared_prefix", "arrival"),
                notes=(f"{warmed} warm-up requests are left out",) if warmed else ())  # fmt: skip
    missing = {} if credit else dict.fromkeys(("ttft_ms", "e2e_ms", "goodput"), "no credit_issued_ns in the file")
    if not counted:
        missing |= dict.fromkeys(("tpot_ms", "user_tok_s", "output_tok_s"), OWN_COUNT)
    per_token = ("tpot_ms", "user_tok_s", "output_tok_s") if counted else ()
    due = ("ttft_ms", "e2e_ms") if credit else ()
    return Foreign(
        tool="AIPerf", version="", loads=(load,), taken={t.theirs: t.metric for t in TERMS if t.metric},
        refused=FORMAT.refused(), not_measured=missing,
        from_records=("ttft_service_ms", "itl_ms", "request_rate", "error_share", "completed_share", *due, *per_token),
        remarks=dict.fromkeys(due, CREDIT),
    )  # fmt: skip


def _value(line: Doc, tag: str) -> Any:
    found = (line.get("metrics") or {}).get(tag)
    return found.get("value") if isinstance(found, dict) else None


def _seconds(line: Doc, tag: str) -> list[float]:
    """A time, or list of times, in seconds by the unit that stands beside it; empty when it is absent."""
    found = (line.get("metrics") or {}).get(tag)
    if not isinstance(found, dict) or found.get("value") is None:
        return []
    values = found["value"]
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}.get(str(found["unit"]))
    if scale is None:
        raise InputError(f"{tag} has the unit {found['unit']!r}, which is not a time.", fix="Choose another file.")
    return [float(v) * scale for v in (values if isinstance(values, list) else [values])]


def _records(lines: Sequence[Doc], credit: bool, counted: bool) -> Iterator[Record]:
    clocks = [part(d, "metadata") for d in lines]
    begins = [number(m, "credit_issued_ns" if credit else "request_start_ns") for m in clocks]
    if any(b is None for b in begins):
        raise InputError("field 'request_start_ns' is missing.", fix="Choose the file as the tool wrote it.")
    t0 = min(b for b in begins if b is not None)
    for i, (line, meta, begin) in enumerate(zip(lines, clocks, begins, strict=True)):
        start = ((number(meta, "request_start_ns") or t0) - t0) / NS
        first, gaps = _seconds(line, "time_to_first_token"), _seconds(line, "inter_chunk_latency")
        error = line.get("error")
        ok = not error and bool(first) and not meta.get("was_cancelled")
        chunks = list(accumulate([start + first[0], *gaps])) if ok else []
        tokens = _value(line, "usage_completion_tokens") if counted else None
        prompt = _value(line, "usage_prompt_tokens") or _value(line, "input_sequence_length")
        one_each = tokens == len(chunks)
        yield record(
            i, "ok" if ok else "undetermined" if meta.get("was_cancelled") else "failed", dispatched_s=start,
            scheduled_s=((begin or t0) - t0) / NS, first_s=chunks[0] if chunks else None, chunks=chunks,
            chunk_tokens=([1] * len(chunks) if one_each else [1, *[0] * (len(chunks) - 1)])[: len(chunks)],
            prompt_tokens=int(prompt) if prompt else None, output_tokens=int(tokens) if tokens and ok else None,
            end_s=((number(meta, "request_end_ns") or t0) - t0) / NS,
            error=str(error.get("message") if isinstance(error, dict) else error or "no token came"),
        )  # fmt: skip


FORMAT = Format("aiperf", "AIPerf profile_export.jsonl", TERMS, recognises, read)
