"""SGLang `sglang.benchmark.serving --output-file`: JSON lines, appended; infinity stands bare.

Read at sglang 0.5.23. With --output-details there are lists per request, but no send times, so no timeline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate

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
    day_of,
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

ASKED = "its answer lengths may be those asked for, not those received"
TERMS = (
    Term("ttft_ms", "ttft_service_ms", AT_DISPATCH),
    Term("itl_ms", "itl_ms", "gap per chunk"),
    Term("output_throughput", "output_tok_s", f"{WHOLE_RUN}; {ASKED}"),
    Term("request_throughput", "request_rate", WHOLE_RUN),
    Term("tpot_ms", "", "derived from an end that is [DONE], and from lengths that may be those asked for"),
    Term("e2e_latency_ms", "", "runs to [DONE], not to the last token, and starts at dispatch"),
    Term("total_throughput", "", "counts prompt tokens as well"),
    Term("input_throughput", "", "prompt tokens per second are none of our metrics"),
    Term("max_output_tokens_per_s", "", "a peak of one second, and it counts chunks"),
    Term("request_goodput", "", "met the service levels given to that tool, not the plan's"),
)
LISTS = ("input_lens", "output_lens", "ttfts", "itls", "errors")


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Its own mix of names."""
    return (
        bool(docs)
        and {"request_rate", "backend", "completed"} <= docs[0].keys()
        and any(
            key in docs[0] for key in ("mean_e2e_latency_ms", "total_output_tokens_retokenized", "random_input_len")
        )
    )


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """All runs of the file; the day is the person's, as the file has none."""
    at = day_of(stated)
    loads = tuple(_load(doc, at) for doc in docs)
    detailed = any(load.records for load in loads)
    counted = detailed and all(
        r.output_tokens == len(r.chunk_s) for load in loads for r in load.records if r.outcome == "ok"
    )
    missing = {"ttft_ms": NO_SCHEDULE, "e2e_ms": NO_SCHEDULE, "goodput": NO_SCHEDULE}
    if not counted:
        missing |= {"tpot_ms": ASKED, "user_tok_s": ASKED}
    if not detailed:
        missing |= {"error_share": "the file does not count failures"}
    server = docs[0].get("server_info")
    server = server if isinstance(server, dict) else {}
    model = text_of(server, "model_path")
    stated_by_file = {"model": model} if looks_like_model_id(model) else {}
    known = ("ttft_service_ms", "itl_ms", "error_share", "completed_share")
    return Foreign(
        tool="SGLang bench_serving", version="", loads=loads,
        taken={t.theirs: t.metric for t in TERMS if t.metric}, refused=FORMAT.refused(), not_measured=missing,
        from_records=(*known, *(("tpot_ms", "user_tok_s") if counted else ())) if detailed else (),
        contract=stated_by_file | ({"engine_version_reported": v} if (v := text_of(server, "version")) else {}),
        settings={"backend": text_of(docs[0], "backend"), "dataset_name": text_of(docs[0], "dataset_name")},
    )  # fmt: skip


def _load(doc: Doc, at: datetime) -> Load:
    completed = round(needed(doc, "completed"))
    if not completed:
        raise InputError("no request of this run ended well.", fix="Import a run that answered.")
    detail = all(isinstance(doc.get(name), list) for name in LISTS)
    sent = len(doc["ttfts"]) if detail else completed
    rate, cap = number(doc, "request_rate"), number(doc, "max_concurrency")
    notes: tuple[str, ...] = ()
    if rate is None:
        if doc.get("request_rate") != math.inf:
            raise InputError("field 'request_rate' is neither a number nor Infinity.",
                             fix="Choose the file as the tool wrote it.")  # fmt: skip
        cap = cap or sent
    elif cap is not None and needed(doc, "request_throughput") >= 0.9 * rate:
        notes, cap = (f"at most {cap:.0f} in flight, and the rate was kept, so this is an open loop",), None
    point = load_point(
        in_flight=cap, rate_per_s=rate, input_tokens=needed(doc, "total_input_tokens") / completed,
        output_tokens=needed(doc, "total_output_tokens") / completed, requests=sent,
    )  # fmt: skip
    records = tuple(_records(doc)) if detail else ()
    figures = list(run_figures(point.name, n=completed, output_tok_s=number(doc, "output_throughput"),
                               request_rate=number(doc, "request_throughput")))  # fmt: skip
    if not records:
        figures += flat_figures(doc, TERMS, point.name, completed, 0)
    return Load(point, at, needed(doc, "duration"), records, tuple(figures), notes=notes)


def _records(doc: Doc) -> list[Record]:
    """Requests without a timeline: every time counts from the request's own dispatch."""
    columns = [doc[name] for name in LISTS]
    if len({len(c) for c in columns}) != 1:
        raise InputError("its lists per request are not of one length.", fix="Choose the file as the tool wrote it.")
    made = []
    for i, (prompt, output, ttft, gaps, error) in enumerate(zip(*columns, strict=True)):
        ok = not error and ttft > 0  # it calls a request without any token a success, with a TTFT of 0
        chunks = list(accumulate([ttft, *gaps])) if ok else []
        one_each = len(chunks) == output
        made.append(record(
            i, "ok" if ok else "failed", dispatched_s=0.0, first_s=chunks[0] if ok else None, chunks=chunks,
            chunk_tokens=[int(one_each)] * len(chunks), prompt_tokens=prompt, output_tokens=output if ok else None,
            error=str(error or "no token came"), end_s=None if ok else 0.0,
        ))  # fmt: skip
    return made


FORMAT = Format("sglang", "SGLang bench_serving (JSON lines)", TERMS, recognises, read)
