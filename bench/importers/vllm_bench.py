"""`vllm bench serve --save-result`: one JSON object, or several one after another with --append-result.

Times in seconds; per-request lists are there with --save-detailed only. Read at vllm 0.32 and 0.33
(vllm/benchmarks/serve.py); older files lack `failed` and `queue_times`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from statistics import fmean, median
from typing import Any

from bench.importers.foreign import (
    AT_DISPATCH,
    NO_SCHEDULE,
    WHOLE_RUN,
    Doc,
    Foreign,
    Format,
    Load,
    Stated,
    Term,
    flat_figures,
    load_point,
    looks_like_model_id,
    needed,
    number,
    record,
    run_figures,
    text_of,
)
from bundle.records import Record
from planner.errors import InputError
from planner.loads import Arrival, LoadPoint

# Up to 0.32 the chat client takes every chunk with a choice for a token, so that of the role too, which vLLM sends
# together with the first token; from 0.33 on it does not (vllm pull request 55508).
ROLE_GAP = "gap per chunk; up to vLLM 0.32 one of about zero per answer, before the first token"
EXTRA_CHUNK = "an answer has one chunk more than tokens, and the file does not say which of them holds no token"
TERMS = (
    Term("ttft_ms", "ttft_service_ms", AT_DISPATCH),
    Term("tpot_ms", "tpot_ms", "the first chunk is taken as one token"),
    Term("itl_ms", "itl_ms", ROLE_GAP),
    Term("e2el_including_client_queue_ms", "e2e_ms", "from the moment the client handed the request out"),
    Term("output_throughput", "output_tok_s", WHOLE_RUN),
    Term("request_throughput", "request_rate", WHOLE_RUN),
    Term("e2el_ms", "", AT_DISPATCH),
    Term("client_queue_time_ms", "", "the wait in the client alone is none of our metrics"),
    Term("total_token_throughput", "", "counts prompt tokens as well"),
    Term("max_output_tokens_per_s", "", "a peak of one second, and it counts chunks"),
    Term("request_goodput", "", "met the service levels given to that tool, not the plan's"),
)
LISTS = ("input_lens", "output_lens", "start_times", "ttfts", "itls", "errors")
HANDED_OUT = "scheduled time: when the client handed the request out"
ROLE_SHARE = 0.1  # of a usual gap: below it the chunk of the role came together with the first token
WAITED_SHARE = 0.1  # of the time between arrivals: above it requests waited for a slot, and the cap made the load


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Its own mix of names."""
    return bool(docs) and {"request_rate", "num_prompts", "model_id"} <= docs[0].keys()


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """All runs of the file."""
    loads = tuple(_load(doc) for doc in docs)
    detailed = any(load.records for load in loads)
    scheduled = all(_has_schedule(doc) for doc in docs)
    unclear = detailed and any(_unclear(doc) for doc in docs)
    queue_e2e = any(f.metric == "e2e_ms" for load in loads for f in load.figures)
    missing = {} if scheduled and detailed else {"ttft_ms": NO_SCHEDULE, "e2e_ms": NO_SCHEDULE, "goodput": NO_SCHEDULE}
    if queue_e2e:
        missing.pop("e2e_ms", None)
    known = ["ttft_service_ms", "itl_ms", "output_tok_s", "request_rate", "error_share", "completed_share"]
    if unclear:
        known = [m for m in known if m not in ("ttft_service_ms", "itl_ms")]
        missing |= dict.fromkeys(
            ("ttft_service_ms", "itl_ms", "tpot_ms", "user_tok_s", "ttft_ms", "goodput"), EXTRA_CHUNK
        )
    elif not any(key.startswith("spec_decode") for doc in docs for key in doc):
        known += ["tpot_ms", "user_tok_s"]
    elif detailed:
        missing |= dict.fromkeys(
            ("tpot_ms", "user_tok_s"), "speculative decoding: tokens per chunk are not in the file"
        )
    if scheduled:
        known += ["e2e_ms"] if unclear else ["ttft_ms", "e2e_ms"]
    model, tokenizer = text_of(docs[0], "model_id"), text_of(docs[0], "tokenizer_id")
    contract = {k: v for k, v in (("model", model), ("tokenizer", tokenizer)) if looks_like_model_id(v)}
    return Foreign(
        tool="vllm bench serve", version=text_of(docs[0], "version"), loads=loads,
        taken={t.theirs: t.metric for t in TERMS if t.metric}, refused=FORMAT.refused(), not_measured=missing,
        from_records=tuple(known) if detailed else (),
        remarks={"ttft_ms": HANDED_OUT, "e2e_ms": HANDED_OUT} if scheduled and detailed else {},
        contract=contract, settings={"model_id": model, "backend": text_of(docs[0], "backend")},
    )  # fmt: skip


def _has_schedule(doc: Mapping[str, Any]) -> bool:
    """Queue times count from the arrival of an open loop; with all requests due at once they are no schedule."""
    return "queue_times" in doc and number(doc, "request_rate") is not None


def _load(doc: Doc) -> Load:
    completed, prompts = round(needed(doc, "completed")), round(needed(doc, "num_prompts"))
    failed = round(number(doc, "failed") or max(0, prompts - completed))
    if not completed:
        raise InputError("no request of this run ended well.", fix="Import a run that answered.")
    point, notes = _point(doc, completed, prompts)
    detail = all(isinstance(doc.get(name), list) for name in LISTS)
    records = tuple(_records(doc)) if detail else ()
    figures = () if records else (
        *flat_figures(doc, TERMS, point.name, completed, failed),
        *run_figures(point.name, n=completed, output_tok_s=number(doc, "output_throughput"),
                     request_rate=number(doc, "request_throughput"), failed=failed),
    )  # fmt: skip
    return Load(point, _at(doc), needed(doc, "duration"), records, figures, notes=notes)


def _point(doc: Doc, completed: int, prompts: int) -> tuple[LoadPoint, tuple[str, ...]]:
    rate, cap = number(doc, "request_rate"), number(doc, "max_concurrency")
    notes: tuple[str, ...] = ()
    if rate is None:
        if doc.get("request_rate") not in ("inf", math.inf):
            raise InputError("field 'request_rate' is neither a number nor 'inf'.", fix="Choose the file as written.")
        cap = cap or prompts
    elif cap is not None:
        reached, waits = needed(doc, "request_throughput"), doc.get("queue_times")
        if waits:
            capped = fmean(waits) > WAITED_SHARE / rate
            said = f"a request waited {1000 * fmean(waits):.3g} ms for a slot on average"
        else:
            capped = reached < 0.9 * rate
            said = f"of {rate:g} req/s asked {reached:.3g} went out"
        loop = "a closed loop" if capped else "an open loop"
        notes = (f"at most {cap:.0f} in flight: {said}, so this is {loop}",)
        cap = cap if capped else None
    shape = number(doc, "burstiness")
    arrival: Arrival = "constant" if shape is None else "poisson" if shape == 1 else "gamma"
    if "burstiness" not in doc:
        arrival, shape = "poisson", 1.0
    closed = cap is not None
    return load_point(
        in_flight=cap, rate_per_s=rate, arrival="poisson" if closed else arrival,
        burstiness=1.0 if closed else shape or 1.0,
        input_tokens=needed(doc, "total_input_tokens") / completed,
        output_tokens=needed(doc, "total_output_tokens") / completed, requests=prompts,
    ), notes  # fmt: skip


def _at(doc: Doc) -> datetime:
    try:
        return datetime.strptime(text_of(doc, "date"), "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise InputError("field 'date' is missing.", fix="Choose the file as the tool wrote it.") from None


def _is_chat(doc: Doc) -> bool:
    return "chat" in text_of(doc, "backend")


def _unclear(doc: Doc) -> bool:
    """Whether some chat answer has one chunk too many that did not come together with the first token."""
    answers = zip(doc["itls"], doc["output_lens"], strict=True) if _is_chat(doc) else ()
    return any(len(gaps) == n > 1 and gaps[0] > ROLE_SHARE * median(gaps) for gaps, n in answers)


def _of_tokens(ttft: float, gaps: list[float], chat: bool) -> tuple[float, list[float]]:
    """First token and gaps in s, without the chunk that holds no token: n tokens have n - 1 gaps.

    The chat client counted the role before the first token; the completions client the finish reason after the last.
    """
    return (ttft + gaps[0], gaps[1:]) if chat else (ttft, gaps[:-1])


def _records(doc: Doc) -> list[Record]:
    columns = [doc[name] for name in LISTS]
    if len({len(c) for c in columns}) != 1:
        raise InputError("its lists per request are not of one length.", fix="Choose the file as the tool wrote it.")
    queued = doc.get("queue_times") if _has_schedule(doc) else None
    starts = [float(s) for s in doc["start_times"]]
    due = [s - q for s, q in zip(starts, queued, strict=True)] if queued else starts
    t0 = min(due, default=0.0)
    chat = _is_chat(doc)
    made = []
    for i, (prompt, output, start, ttft, gaps, error) in enumerate(zip(*columns, strict=True)):
        if gaps and len(gaps) == output:
            ttft, gaps = _of_tokens(ttft, gaps, chat)
        ok = not error and bool(output) and ttft > 0
        chunks = list(accumulate([start - t0 + ttft, *gaps])) if ok else []
        one_each = len(chunks) == output
        made.append(record(
            i, "ok" if ok else "failed", dispatched_s=start - t0, scheduled_s=due[i] - t0,
            first_s=chunks[0] if ok else None, chunks=chunks,
            chunk_tokens=[1] * len(chunks) if one_each else [1, *[0] * (len(chunks) - 1)][: len(chunks)],
            prompt_tokens=prompt, output_tokens=output if ok else None, error=str(error or "no token came"),
            end_s=None if ok else start - t0 + ttft + sum(gaps),
        ))  # fmt: skip
    return made


FORMAT = Format("vllm", "vllm bench serve (JSON)", TERMS, recognises, read)
