"""Explanations of the simulated waiting: what the range spans, and what the policies were given."""

from __future__ import annotations

from collections.abc import Sequence

from planner.bands import band
from planner.capacity import Sizing
from planner.conditions import Kind
from planner.derivation import REQUIREMENTS, Derivation, DerivedInput, given
from planner.queue_ranges import WaitingRange, server, share
from planner.queue_result import Summary
from planner.requirements import Requirements
from planner.units import format_duration

LEAST_PREDICTED_S = 0.001
ASSUMED = (
    "no prompt is found in a cache",
    "prompts and decoding of one step add up",
    "users wait and do not ask again",
)


def predicted_s(seconds: float) -> str:
    """A simulated time; nothing that is simulated is known to a fraction of a millisecond."""
    return "under 1 ms" if seconds < LEAST_PREDICTED_S else format_duration(seconds)


def waiting_derivations(found: WaitingRange, sizing: Sizing, r: Requirements) -> tuple[Derivation, Derivation]:
    """TTFT at the median and at the 95th percentile, from the kindest to the harshest case. Raises InputError."""
    span = f"{len(found.cases)} simulated cases: {'; '.join(dict.fromkeys(c.load for c in found.cases))}"
    return tuple(
        Derivation(
            key=f"waiting_ttft_{name}", title=f"TTFT {name}", value=f"{predicted_s(low)} – {predicted_s(high)}",
            formula=f"lowest and highest TTFT {name} of continuous batching in virtual time, each load by the bound "
                    "and by the planning value",
            inputs=(given("cases", span, "arrivals and pauses are assumed"), *_unit(sizing, r, found.units),
                    given("seed", f"{found.seed}", "setting: the same seed gives the same figures")),
            assumptions=ASSUMED, band=band("waiting"),
        )
        for name, (low, high) in (("p50", found.ttft_p50_s), ("p95", found.ttft_p95_s))
    )  # type: ignore[return-value]  # fmt: skip


def policies_derivation(
    summaries: Sequence[Summary], sizing: Sizing, r: Requirements, units: int, arrivals: str
) -> Derivation:  # fmt: skip
    """The table of policies: the same arrivals, another way to batch. Raises InputError."""
    said = ", ".join(f"{s.policy} {predicted_s(s.ttft_s.p95)}" for s in summaries if s.ttft_s)
    return Derivation(
        key="waiting_policies", title="TTFT p95 by policy", value=said or "nobody was served",
        formula="one simulated window for each policy with the same arrivals; goodput is the share of requests that "
                "keep TTFT and speed",
        inputs=(given("arrivals", arrivals, "choice on this page"), *_unit(sizing, r, units),
                given("promise", f"first token in {r.ttft_s:g} s, {r.user_tok_s_promise:g} tok/s", REQUIREMENTS)),
        assumptions=("slots and static batches compute whole prompts", *ASSUMED), band=band("waiting"),
    )  # fmt: skip


def _unit(sizing: Sizing, r: Requirements, units: int) -> tuple[DerivedInput, ...]:
    """What one unit is given, and what it is made of."""
    one = server(sizing, r, Kind.PLANNING)
    limits, users = one.limits, share(r.peak_users_max, units)
    full = min(users, limits.max_num_seqs)
    return (
        given("users on one unit", f"{share(r.peak_users_min, units):,} to {users:,}",
              f"{REQUIREMENTS}, shared by {units:,}"),
        given("a user asks", f"{r.requests_per_user_per_min:.3g} times a minute, {r.input_tokens:,} in / "
              f"{r.output_tokens:,} out", REQUIREMENTS),
        given("places and cache", f"{limits.max_num_seqs:,} requests, {limits.kv_blocks:,} blocks of "
              f"{limits.block_size} tokens", "this sizing"),
        given("step", f"{format_duration(one.step.seconds(1))} alone, {format_duration(one.step.seconds(full))} with "
              f"{full:,}", "planning value; the bound is the other end"),
        given("prompt", f"{format_duration(r.input_tokens * one.step.prefill_s_per_token)} of computing",
              "planning value, in chunks of max_num_batched_tokens"),
    )  # fmt: skip
