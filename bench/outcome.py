"""What came of one request: its outcome, and its record with every time in seconds after t0."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from bench.arrivals import upper_bounds
from bench.asking import Lengths
from bench.exchange import ERROR_KINDS, Exchange
from bench.quality import is_valid_json
from bench.sse import Answer, read_answer
from bench.transport import error_message
from bundle.records import Outcome, Record

# A server may write `"error": null` into every chunk, or what else says that there was none.
_AN_ERROR = re.compile(rb'"error"\s*:\s*(?!null\b|false\b|""|\{\})\S')


class Sent(NamedTuple):
    """A request that was due, with what came of it; times on the pool's clock."""

    request: int
    cohort: str
    scheduled: float
    asked: Lengths
    exchange: Exchange | None  # None: never sent, because the server had died


def failed_at_first_sight(exchange: Exchange) -> bool:
    """Cheap test for the stop rule, of what the server did; the record decides later."""
    if exchange.error_kind == "client":
        return False
    refused = exchange.status != 200 or exchange.error_kind not in ("", "cancelled")
    return refused or any(b'"error"' in data and _AN_ERROR.search(data) for _, data in exchange.wire)


def record_of(sent: Sent, t0: float, schema: dict[str, Any] | None = None) -> tuple[Record, str]:
    """The record of one request and the text of its answer; every time is in seconds after t0."""
    exchange = sent.exchange or Exchange(dispatched=sent.scheduled, error_kind="died", error=ERROR_KINDS["died"])
    answer = read_answer(exchange.reads) if exchange.status == 200 else read_answer(())
    outcome, kind, error = judge(exchange, answer)
    chunks = answer.chunks

    def after(t: float | None) -> float | None:
        return None if t is None else t - t0

    record = Record(
        request=sent.request, cohort=sent.cohort, outcome=outcome, scheduled_s=sent.scheduled - t0,
        dispatched_s=after(exchange.dispatched) if sent.exchange else None,
        sent_s=after(exchange.sent), first_byte_s=after(exchange.first_byte),
        first_token_s=after(chunks[0].t) if chunks else None,
        first_visible_s=next((c.t - t0 for c in chunks if c.visible), None),
        last_token_s=after(chunks[-1].t) if chunks else None, end_s=after(exchange.end),
        chunk_s=[c.t - t0 for c in chunks], chunk_tokens=[c.tokens for c in chunks],
        prompt_tokens=answer.prompt_tokens, output_tokens=answer.output_tokens, cached_tokens=answer.cached_tokens,
        asked_prompt_tokens=sent.asked.input_tokens, asked_output_tokens=sent.asked.output_tokens,
        finish_reason=answer.finish_reason, http_status=exchange.status, error_kind=kind, error=error,
        reconnected=exchange.reconnected, server_timings=answer.timings,
        chunk_bound=upper_bounds([c.t for c in chunks], exchange.unsure),
        json_valid=None if schema is None or outcome != "ok" else is_valid_json(answer.text, schema),
        connected_s=after(exchange.connected),
    )  # fmt: skip
    return record, answer.text


def judge(exchange: Exchange, answer: Answer) -> tuple[Outcome, str, str]:
    """Outcome, error kind and text of one request; what we cancelled or could not send is undetermined."""
    if exchange.error_kind in ("cancelled", "client"):
        return "undetermined", exchange.error_kind, exchange.error
    if exchange.error_kind:
        return "failed", exchange.error_kind, exchange.error
    if exchange.status != 200:
        return "failed", "http", f"HTTP {exchange.status}: {error_message(exchange)}"
    if answer.error:
        return "failed", "stream_error", answer.error
    if answer.malformed:
        return "failed", "bad_stream", answer.malformed
    if not answer.whole:
        return "failed", "bad_stream", "the stream ended without a finish reason or [DONE]"
    if not answer.chunks:
        return "failed", "bad_stream", "the answer held no token"
    return "ok", "", ""
