"""Which requirements a log of requests speaks about, and what it says: a proposal, beside what stands now."""

from __future__ import annotations

import math
from typing import NamedTuple

from planner.requirements import Requirements
from planner.traffic import MINUTE_S, TrafficSummary

CONTEXT_STEP = 256


class Proposed(NamedTuple):
    """One field of the requirements: what stands, what the log says, and how it was taken from the log."""

    field: str
    now: object
    proposed: object
    why: str


def propose(r: Requirements, s: TrafficSummary) -> tuple[Proposed, ...]:
    """Every field of the requirements that the log contradicts; what the log does not hold stays as it is.

    The prompt is the percentile for which the first token is promised; the answer is the mean, since the load in
    tokens follows it. Requests a minute are those of the busiest minute for each user in flight at the peak, so that
    users times requests is the rate that was seen.
    """
    found: list[tuple[str, object, str]] = []
    percentile = min((90, 95, 99), key=lambda p: abs(p - r.ttft_percentile))
    prompt = max(1, round(getattr(s.input_tokens, f"p{percentile}")))
    found.append(("input_tokens", prompt, f"p{percentile} of the prompts of {s.n:,} requests"))
    answer = r.output_tokens
    if s.output_tokens:
        answer = max(1, math.ceil(s.output_tokens.mean))
        found.append(("output_tokens", answer, f"mean of {s.n - s.unanswered:,} answers"))
    context = _up(max(s.whole_tokens.p99, prompt + answer))
    found.append(
        (
            "context_tokens",
            context,
            f"holds 99 % of the requests with their answers; the longest has {s.whole_tokens.longest:,}",
        )
    )
    if s.in_flight:
        peak, usual = max(1, s.in_flight.peak), max(1, s.in_flight.usual_peak)
        seen = "in the log" if s.in_flight.known == s.n else "by the assumed latency"
        found.append(("peak_users_min", usual, f"median of {len(s.in_flight.daily)} daily peaks, {seen}"))
        found.append(("peak_users_max", peak, f"most requests in flight at once, {seen}"))
        if s.rates:
            per_user = float(f"{s.rates.busiest_minute / peak:.3g}")
            found.append(
                (
                    "requests_per_user_per_min",
                    min(600.0, max(0.01, per_user)),
                    f"{s.rates.busiest_minute:,} requests in the busiest {MINUTE_S:.0f} s, over {peak} in flight",
                )
            )
    if s.rates and s.rates.arrival:
        found.append(
            (
                "arrival",
                s.rates.arrival,
                f"the gaps of the busiest hour vary by {s.rates.busiest_hour_gap_cv:.2f} of their mean",
            )
        )
    if s.prefixes and s.prefixes.token_share is not None:
        found.append(
            (
                "shared_prefix_share",
                round(s.prefixes.token_share, 3),
                "share of prompt tokens that an earlier request had brought",
            )
        )
    return tuple(Proposed(f, getattr(r, f), new, why) for f, new, why in found if getattr(r, f) != new)


def _up(tokens: float) -> int:
    return max(CONTEXT_STEP, math.ceil(tokens / CONTEXT_STEP) * CONTEXT_STEP)
