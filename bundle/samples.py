"""Definitions on records: the latency of each request, the steady window, and the blocks that move together.

These are the definitions of docs/definitions.md; everything that prints a latency takes it from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from bundle.records import Record
from planner.loads import LoadPoint


class Window(NamedTuple):
    """The steady part of a repeat in seconds after t0; `steady` is False when there was none and all is used."""

    begin_s: float
    end_s: float
    steady: bool

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.begin_s


def steady_window(records: Sequence[Record], point: LoadPoint) -> Window:
    """From every slot's second request (closed), the first arrival (open) or the ramp's end to the last dispatch.

    There is none with too few requests, or where all were sent before the first token came.
    """
    load = [r for r in records if r.dispatched_s is not None and r.is_load]
    sent = sorted(r.dispatched_s for r in load if r.dispatched_s is not None)
    if not sent:
        return Window(0.0, 0.0, False)
    ends = [r.end_s for r in records if r.end_s is not None and r.is_load]
    whole = Window(sent[0], max([*ends, sent[-1]]), False)
    due = sorted(r.scheduled_s for r in load)
    before = 2 * point.in_flight - 1 if point.in_flight else sum(t < (point.ramp_s or 0.0) for t in due)
    first_token = min((r.first_token_s for r in load if r.first_token_s is not None), default=-math.inf)
    if len(sent) <= before + 1 or sent[-1] <= max(first_token, sent[before]):
        return whole
    return Window(point.ramp_s or due[before], sent[-1], True)


def counted(records: Sequence[Record], window: Window) -> list[Record]:
    """Requests scheduled in the window that ended by themselves: those we cancelled are undetermined."""
    inside = [r for r in records if r.is_load and r.outcome != "undetermined"]
    if not window.steady:
        return inside
    return [r for r in inside if window.begin_s <= r.scheduled_s <= window.end_s]


def cut_off(records: Sequence[Record], window: Window) -> list[Record]:
    """Requests scheduled in the window that we ended ourselves, at a stop rule or a cancel."""
    cut = [r for r in records if r.is_load and r.outcome == "undetermined"]
    return [r for r in cut if not window.steady or window.begin_s <= r.scheduled_s <= window.end_s]


def missed(
    records: Sequence[Record], window: Window, *, by_a_rule: bool, lost: Callable[[Record], bool] = lambda r: False
) -> int:
    """How many of the requests that were cut off count as misses.

    All where a stop rule did it, for it ends what goes badly. A person, the run's budget or a foreign tool's own end
    come at any time: then only those that had been under way for longer than any that ended well, or that were `lost`
    already.
    """
    cut = cut_off(records, window)
    if by_a_rule:
        return len(cut)
    longest = max((_age_s(r) for r in records if r.is_load and r.outcome == "ok"), default=math.inf)
    return sum(_age_s(r) > longest or lost(r) for r in cut)


def so_far(r: Record) -> Record:
    """A request that was cut off, as if all that it still waited for had come then: no latency can be less."""
    first = r.end_s if r.first_token_s is None else r.first_token_s
    return r._replace(first_token_s=first, last_token_s=r.end_s)


def _age_s(r: Record) -> float:
    return (r.scheduled_s if r.end_s is None else r.end_s) - r.scheduled_s


def chunk_weights(r: Record) -> list[float]:
    """Output tokens per chunk; where chunks do not tell, the usage count spread evenly over them."""
    if r.output_tokens is None or sum(r.chunk_tokens) == r.output_tokens:
        return [float(t) for t in r.chunk_tokens]
    return [r.output_tokens / len(r.chunk_s)] * len(r.chunk_s) if r.chunk_s else []


def first_chunk_tokens(r: Record) -> int | None:
    """Tokens in the first chunk, when that is known."""
    if r.chunk_tokens and r.chunk_tokens[0] > 0:
        return r.chunk_tokens[0]
    return 1 if r.output_tokens is not None and r.output_tokens == len(r.chunk_s) else None


def ttft_ms(r: Record) -> float | None:
    """First token on any channel minus the scheduled time, in ms."""
    return None if r.first_token_s is None else (r.first_token_s - r.scheduled_s) * 1000


def ttft_service_ms(r: Record) -> float | None:
    """First token on any channel minus dispatch, in ms."""
    if r.first_token_s is None or r.dispatched_s is None:
        return None
    return (r.first_token_s - r.dispatched_s) * 1000


def tpot_ms(r: Record) -> float | None:
    """(last token - first token) / (output tokens - tokens in the first chunk), in ms; None when that is not > 0.

    A stop token that was counted but not sent came after the last token, so it is not one of the output tokens here.
    """
    first = first_chunk_tokens(r)
    if r.output_tokens is None or first is None or r.first_token_s is None or r.last_token_s is None:
        return None
    later = (sum(r.chunk_tokens) if all(r.chunk_tokens) else r.output_tokens) - first
    return (r.last_token_s - r.first_token_s) * 1000 / later if later > 0 else None


def user_tok_s(r: Record) -> float | None:
    """1000 / tpot_ms: the speed one user sees, in tok/s."""
    tpot = tpot_ms(r)
    return 1000 / tpot if tpot else None


def e2e_ms(r: Record) -> float | None:
    """Last token minus the scheduled time, in ms."""
    return None if r.last_token_s is None else (r.last_token_s - r.scheduled_s) * 1000


def merged(r: Record) -> list[bool]:
    """Which chunks belong to a group that the kernel merged: those marked as upper bounds, and the one after them."""
    bound = [*r.chunk_bound, *[False] * (len(r.chunk_s) - len(r.chunk_bound))]
    return [b or before for b, before in zip(bound, [False, *bound], strict=False)]


class Gap(NamedTuple):
    """The time between two consecutive chunks: when it ended, and its length."""

    end_s: float
    ms: float


def gaps(r: Record) -> list[Gap]:
    """Gaps between consecutive chunks after the first, without those that touch a merged group."""
    chunks = list(zip(r.chunk_s, merged(r), strict=True))
    return [Gap(b, (b - a) * 1000) for (a, unsure_a), (b, unsure_b) in pairwise(chunks) if not (unsure_a or unsure_b)]


def itl_ms(r: Record) -> list[float]:
    """The lengths of a request's gaps, in ms."""
    return [g.ms for g in gaps(r)]


def ttft_is_bound(r: Record) -> bool:
    """The first token was merged with the next, so that its time is an upper bound."""
    return bool(r.chunk_bound) and r.chunk_bound[0]


PER_REQUEST: dict[str, Callable[[Record], float | None]] = {
    "ttft_ms": ttft_ms,
    "ttft_service_ms": ttft_service_ms,
    "tpot_ms": tpot_ms,
    "user_tok_s": user_tok_s,
    "e2e_ms": e2e_ms,
}
WAITS = ("ttft_ms", "ttft_service_ms", "e2e_ms")  # they only grow while nothing comes


def tokens_in(records: Sequence[Record], begin_s: float, end_s: float) -> float:
    """Output tokens that arrived in (begin_s, end_s], from all requests, whenever they were scheduled."""
    return sum(
        weight
        for r in records
        for at, weight in zip(r.chunk_s, chunk_weights(r), strict=False)
        if begin_s < at <= end_s
    )


def mean_in_flight(records: Sequence[Record]) -> float:
    """Requests in flight on average while any was: total time in flight over the span."""
    spans = [(r.dispatched_s, r.end_s) for r in records if r.dispatched_s is not None and r.end_s is not None]
    if not spans:
        return 0.0
    length = max(e for _, e in spans) - min(b for b, _ in spans)
    return sum(e - b for b, e in spans) / length if length > 0 else float(len(spans))


def waves(records: Sequence[Record], in_flight: float | None = None) -> dict[int, int]:
    """Block number per request: requests that were in flight together share their steps, so they move together."""
    size = max(1, round(mean_in_flight(records) if in_flight is None else in_flight))
    order = sorted(records, key=lambda r: (r.scheduled_s, r.request))
    return {r.request: i // size for i, r in enumerate(order)}
