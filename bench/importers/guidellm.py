"""GuideLLM benchmarks.json, schema version 2 (read at guidellm 0.8.1): several loads a file.

Requests carry send, first-token and last-token time, but no times between: gaps cannot be read from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
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
    part,
    record,
    run_figures,
    text_of,
)
from bundle.manifest import Figure
from bundle.records import Record
from planner.errors import InputError
from planner.loads import LoadPoint

TERMS = (
    Term("time_to_first_token_ms", "ttft_service_ms", AT_DISPATCH),
    Term("inter_token_latency_ms", "tpot_ms", "(last token - first token) / (tokens - 1): what others call TPOT"),
    Term("output_token_count", "output_tok_s", f"tokens over duration, {WHOLE_RUN}"),
    Term("time_per_output_token_ms", "", "includes the first token, so TTFT is spread over the answer"),
    Term("time_to_first_output_token_ms", "", "first visible token; ours is the first on any channel"),
    Term("request_latency", "", "runs to the end of the stream, not to the last token, and starts at dispatch"),
    Term("request_scheduled_latency", "", "runs to the end of the stream, not to the last token"),
    Term("output_tokens_per_second", "", "an average of a moving rate; taken from the token count instead"),
    Term("tokens_per_second", "", "counts prompt tokens as well"),
)
NO_GAPS = "the file has no token times between the first and the last"
POISSON = "its Poisson arrivals repeat between its worker processes, so the load came in bursts"
SCHEDULED = {"constant": "constant", "poisson": "poisson"}


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """A list of benchmarks with GuideLLM's metadata or strategies."""
    if len(docs) != 1 or not isinstance(docs[0].get("benchmarks"), list):
        return False
    strategies = [b.get("config", {}).get("strategy") for b in docs[0]["benchmarks"] if isinstance(b, dict)]
    return "guidellm_version" in (docs[0].get("metadata") or {}) or any(strategies)


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """Every benchmark of the file."""
    meta = part(docs[0], "metadata")
    if number(meta, "version") != 2:
        raise InputError(f"has schema version {meta.get('version')!r}; version 2 is read.",
                         fix="Write it with GuideLLM 0.8.")  # fmt: skip
    if not docs[0]["benchmarks"]:
        raise InputError("holds no benchmark.", fix="Import a run that answered.")
    loads = tuple(_load(b) for b in docs[0]["benchmarks"])
    detailed = any(load.records for load in loads)
    scheduled = detailed and all(load.point.shape == "open" for load in loads)
    missing = {"itl_ms": NO_GAPS}
    known = ["ttft_service_ms", "tpot_ms", "user_tok_s", "output_tok_s", "request_rate", "error_share",
             "completed_share"]  # fmt: skip
    if scheduled:
        known += ["ttft_ms", "e2e_ms"]
    else:
        missing |= {"ttft_ms": NO_SCHEDULE, "e2e_ms": NO_SCHEDULE, "goodput": NO_SCHEDULE}
    model = text_of(part(docs[0]["benchmarks"][0], "config").get("backend") or {}, "model")
    return Foreign(
        tool="GuideLLM", version=text_of(meta, "guidellm_version"), loads=loads,
        taken={t.theirs: t.metric for t in TERMS if t.metric}, refused=FORMAT.refused(), not_measured=missing,
        from_records=tuple(known) if detailed else (),
        remarks={"output_tok_s": "tokens after the first count at the last one's time"} if detailed else {},
        contract={"model": model} if looks_like_model_id(model) else {},
    )  # fmt: skip


def _load(b: Any) -> Load:
    if not isinstance(b, dict):
        raise InputError("a benchmark is not an object.", fix="Choose the file as the tool wrote it.")
    metrics, strategy = part(b, "metrics"), part(part(b, "config"), "strategy")
    name = text_of(strategy, "type_")
    done = part(part(metrics, "output_token_count"), "successful")
    n = round(needed(done, "count"))
    if not n:
        raise InputError("no request of a benchmark ended well.", fix="Import a run that answered.")
    failed = round(number(_group(metrics, "output_token_count", "errored"), "count") or 0)
    in_flight = {"synchronous": 1.0, "concurrent": number(strategy, "streams"),
                 "throughput": number(strategy, "max_concurrency")}.get(name)  # fmt: skip
    rate = number(strategy, "rate") if name in SCHEDULED else None
    point = load_point(
        in_flight=in_flight, rate_per_s=rate, arrival="constant" if name == "constant" else "poisson",
        input_tokens=needed(part(part(metrics, "prompt_token_count"), "successful"), "mean"),
        output_tokens=needed(done, "mean"), requests=n + failed,
    )  # fmt: skip
    duration = needed(b, "duration")
    records = tuple(_records(b, point))
    figures: tuple[Figure, ...] = () if records else (
        *_figures(metrics, point.name, n, failed),
        *run_figures(point.name, n=n, output_tok_s=needed(done, "mean") * n / duration, request_rate=n / duration,
                     failed=failed, names=("output_token_count / duration", "request count / duration")),
    )  # fmt: skip
    return Load(point, datetime.fromtimestamp(needed(b, "end_time"), UTC), duration, records, figures,
                notes=(POISSON,) if name == "poisson" else ())  # fmt: skip


def _group(metrics: Doc, name: str, group: str) -> Doc:
    found = metrics.get(name)
    inner = found.get(group) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def _figures(metrics: Doc, point: str, n: int, failed: int) -> Iterator[Figure]:
    """Their distributions flattened to the names that flat_figures reads."""
    flat: Doc = {}
    for term in TERMS:
        found = _group(metrics, term.theirs, "successful")
        ranks = found.get("percentiles")
        ranks = ranks if isinstance(ranks, dict) else {}
        flat[f"mean_{term.theirs}"] = found.get("mean")
        for theirs, ours in (("p05", "p5"), ("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99")):
            flat[f"{ours}_{term.theirs}"] = ranks.get(theirs)
    return flat_figures({k: v for k, v in flat.items() if v is not None}, TERMS, point, n, failed)


def _records(b: Doc, point: LoadPoint) -> Iterator[Record]:
    """Requests that ended or failed by themselves; those that it cut off at the end are left undetermined."""
    groups = b.get("requests")
    groups = groups if isinstance(groups, dict) else {}
    rows = [
        (outcome, request)
        for group, outcome in (("successful", "ok"), ("errored", "failed"), ("incomplete", "undetermined"))
        for request in groups.get(group) or ()
    ]
    if not any(outcome == "ok" for outcome, _ in rows):
        return
    times = [part(part(r, "info"), "timings") for _, r in rows]
    t0 = min(v for t in times for name in ("targeted_start", "request_start") if (v := number(t, name)) is not None)

    def since(t: Doc, name: str) -> float | None:
        value = number(t, name)
        return None if value is None else value - t0

    for i, ((outcome, request), t) in enumerate(zip(rows, times, strict=True)):
        start = since(t, "request_start")
        if start is None:
            continue  # never sent
        first, last = since(t, "first_token_iteration"), since(t, "last_token_iteration")
        tokens = number(request, "output_tokens")
        ok = outcome == "ok" and first is not None and last is not None
        one_each = tokens is not None and tokens == number(t, "token_iterations")
        yield record(
            i, "ok" if ok else "undetermined" if outcome == "undetermined" else "failed", dispatched_s=start,
            scheduled_s=since(t, "targeted_start") if point.shape == "open" else None, first_s=first,
            chunks=[first, last] if first is not None and last is not None else [],
            chunk_tokens=([1, int(tokens) - 1] if one_each and tokens is not None else [0, 0]) if ok else [],
            prompt_tokens=_whole(number(request, "prompt_tokens")), output_tokens=_whole(tokens),
            end_s=since(t, "request_end"), error=text_of(part(request, "info"), "error") or "no token came",
        )  # fmt: skip


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


FORMAT = Format("guidellm", "GuideLLM benchmarks.json (version 2)", TERMS, recognises, read)
