"""llama-benchy (read at 0.4.0): its Markdown table, or its JSON report with every value.

A closed loop of c streams against a server. The table gives means alone; the report gives values, so percentiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bench.importers.foreign import (
    AT_DISPATCH,
    NO_DETAIL,
    NO_SCHEDULE,
    Doc,
    Foreign,
    Format,
    Load,
    Stated,
    Term,
    day_of,
    load_point,
    looks_like_model_id,
    needed,
    number,
    table_rows,
    text_of,
)
from bundle.manifest import Figure
from planner.errors import InputError
from planner.statistics import percentile

TERMS = (
    Term("tg t/s (req)", "user_tok_s", "until the end of the stream, not the last token"),
    Term("e2e_ttft", "ttft_service_ms", AT_DISPATCH),
    Term("tg t/s (total)", "", "decode phase of a batch alone: the prefill before it is left out"),
    Term("pp t/s", "", "computed from a TTFT less an estimated latency"),
    Term("ttfr", "", "first answer of any kind, also without a token"),
    Term("est_ppt", "", "an estimate: a latency is taken off"),
    Term("peak t/s", "", "a peak of one second"),
)
TEST = re.compile(r"(pp|tg)(\d+)(?: @ d(\d+))?(?: \(c(\d+)\))?")


class Row(NamedTuple):
    """Values of one test: speed per user in tok/s and TTFT in ms, each as mean and, in the report, all values."""

    concurrency: int
    prompt: int
    answer: int
    speed: tuple[float, ...]
    ttft_ms: tuple[float, ...]
    whole: bool


def recognises(text: str, docs: Sequence[Doc]) -> bool:
    """Its report's or its table's own names."""
    if docs:
        return "latency_mode" in docs[0] and isinstance(docs[0].get("benchmarks"), list)
    rows = table_rows(text, "model")
    return bool(rows) and {"test", "ttfr (ms)", "e2e_ttft (ms)"} <= rows[0].keys()


def read(text: str, docs: Sequence[Doc], stated: Stated) -> Foreign:
    """Every concurrency and length of the file as a load."""
    version, stamp, model = _head(text, docs)
    at = _time(stamp) if stamp else day_of(stated)
    rows = list(_from_report(docs[0]) if docs else _from_table(text))
    if not rows:
        raise InputError("holds no test with prompt and answer (pp and tg).", fix="Import the whole output.")
    runs = 0 if docs else int(found[1]) if (found := re.search(r"--runs (\d+)", text)) else 0
    return Foreign(
        tool="llama-benchy", version=version, loads=tuple(_load(r, at, runs) for r in rows),
        taken={t.theirs: t.metric for t in TERMS if t.metric}, refused=FORMAT.refused(),
        not_measured={
            "ttft_ms": NO_SCHEDULE, "e2e_ms": NO_SCHEDULE, "goodput": NO_SCHEDULE, "itl_ms": NO_DETAIL,
            "output_tok_s": "its total leaves the prefill out",
        },
        contract={"model": model} if looks_like_model_id(model) else {}, settings={"model": model} if model else {},
    )  # fmt: skip


def _head(text: str, docs: Sequence[Doc]) -> tuple[str, str, str]:
    if docs:
        return text_of(docs[0], "version"), text_of(docs[0], "timestamp"), text_of(docs[0], "model")
    version = re.search(r"^llama-benchy \(([^)]+)\)", text, re.MULTILINE)
    stamp = re.search(r"^date: (\S+ \S+)", text, re.MULTILINE)
    return version[1] if version else "", stamp[1] if stamp else "", table_rows(text, "model")[0]["model"]


def _time(stamp: str) -> datetime:
    try:
        at = datetime.fromisoformat(stamp.removesuffix("Z").strip())
    except ValueError:
        raise InputError(f"its date {stamp!r} cannot be read.", fix="Choose the file as the tool wrote it.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _load(r: Row, at: datetime, runs: int) -> Load:
    n = len(r.speed) if r.whole else r.concurrency * runs or None
    point = load_point(in_flight=r.concurrency, input_tokens=r.prompt, output_tokens=r.answer,
                       requests=n or r.concurrency)  # fmt: skip
    figures = []
    for metric, values, term in (("user_tok_s", r.speed, TERMS[0]), ("ttft_service_ms", r.ttft_ms, TERMS[1])):
        if not values:
            continue
        found = {"mean": sum(values) / len(values)}
        if r.whole:
            found |= {f"p{q}": percentile(values, q) for q in (5, 50, 90, 95, 99)}
        figures += [
            Figure(load_point=point.name, metric=metric, statistic=s, value=v, n=len(values) if r.whole else n,
                   theirs=term.theirs, remark=term.why)
            for s, v in found.items()
        ]  # fmt: skip
    return Load(point, at, 0.0, figures=tuple(figures))


def _from_report(doc: Doc) -> Iterator[Row]:
    for b in doc["benchmarks"]:
        if not isinstance(b, dict) or b.get("is_context_prefill_phase"):
            continue
        yield Row(
            round(needed(b, "concurrency")), round(needed(b, "prompt_size") + (number(b, "context_size") or 0)),
            round(needed(b, "response_size")), _values(b, "tg_req_throughput", "tg_throughput"),
            _values(b, "e2e_ttft"), True,
        )  # fmt: skip


def _values(b: Doc, *names: str) -> tuple[float, ...]:
    """Values of the first name that is there; with one stream a tool may give the total alone."""
    for name in names if b.get("concurrency") == 1 else names[:1]:
        found = b.get(name)
        if isinstance(found, dict) and isinstance(found.get("values"), list):
            return tuple(float(v) for v in found["values"] if v > 0)
    return ()


def _from_table(text: str) -> Iterator[Row]:
    """Pair each prompt row with the answer row of the same depth and concurrency that follows it."""
    prompt: tuple[int, int, int, tuple[float, ...]] | None = None
    for row in table_rows(text, "model"):
        found = TEST.fullmatch(row["test"])
        if not found:
            continue  # the context tests (ctx_pp) prepare a depth; they are no load of their own
        sort, size, depth, streams = found[1], int(found[2]), int(found[3] or 0), found[4]
        if streams is None and "t/s (total)" in row:
            raise InputError("does not say the concurrency of its tests, and a speed without it means nothing.",
                             fix="Import the output of a run of its own per concurrency.")  # fmt: skip
        c = int(streams or 1)
        if sort == "pp":
            prompt = c, size, depth, _mean(row["e2e_ttft (ms)"])
        elif prompt and prompt[0] == c and prompt[2] == depth:
            speed = _mean(row.get("t/s (req)") or row.get("t/s") or "")
            yield Row(c, prompt[1] + depth, size, speed, prompt[3], False)


def _mean(cell: str) -> tuple[float, ...]:
    found = re.match(r"[\d.]+", cell)
    return (float(found[0]),) if found and float(found[0]) > 0 else ()


FORMAT = Format("llama-benchy", "llama-benchy (table or JSON report)", TERMS, recognises, read)
