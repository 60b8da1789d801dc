"""Validity rules as data: when the instrument or the conditions, not the server, spoil a figure.

A server that crashes, refuses or runs out of memory has given a result; none of these rules is about that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bundle.manifest import Manifest, Repeat
from bundle.records import Record, Sample
from bundle.samples import Window, counted, itl_ms, tokens_in, ttft_is_bound, ttft_service_ms
from bundle.shapes import disturbance
from planner.loads import LoadPoint
from planner.statistics import percentile

ALL = ("all",)
NOTE: tuple[str, ...] = ()
OF_THE_SERVER = frozenset({"started", "startup_s", "oom", "restarts"})
LATENCY = ("ttft_ms", "ttft_service_ms", "itl_ms", "tpot_ms", "user_tok_s", "e2e_ms", "goodput", "itl_quiet_ms",
           "itl_disturbed_ms", "structured_cost")  # fmt: skip
FROM_PREFILL = ("ttft_ms", "ttft_service_ms", "e2e_ms", "output_tok_s", "goodput", "measured_over_bound")
SPEED = (*LATENCY, "output_tok_s", "request_rate", "measured_over_bound", "kv_use", "waiting", "preemptions")
TOKENS = ("output_tok_s", "tpot_ms", "user_tok_s", "goodput", "measured_over_bound", "structured_cost")


class Rule(NamedTuple):
    """`fact` above `limit` spoils the named metrics; an empty list is a note only. The sentence takes the value."""

    id: str
    fact: str
    limit: float
    spoils: tuple[str, ...]
    sentence: str


RULES: tuple[Rule, ...] = (
    Rule("dispatch-lag", "dispatch_lag_share_of_ttft", 0.1, ("ttft_ms", "e2e_ms", "goodput"),
         "the client sent late: p95 of the dispatch lag is {:.0%} of the median TTFT"),
    Rule("loop-lag", "loop_lag_p99_ms", 50.0, LATENCY, "the client's event loop lagged by {:.0f} ms at p99"),
    Rule("loop-stalled", "loop_stalled_share", 0.02, ALL, "the client stood still for {:.0%} of the time"),
    Rule("coalesced", "coalesced_share", 0.02, LATENCY,
         "the client read too late: {:.0%} of the chunks were merged before they were read"),
    Rule("receive-buffer", "receive_buffer_full", 0.0, ALL,
         "the client held the server back: {:.0f} reads found a full receive buffer"),
    Rule("client-limit", "client_error_share", 0.0, ALL,
         "{:.0%} of the requests could not be sent: this machine gave no more connections"),
    Rule("shard-lost", "shards_lost", 0.0, ALL,
         "the client lost {:.0f} of the processes that offered the load"),
    Rule("client-cpu", "client_cpu_share", 0.9, ALL, "the client used {:.0%} of its core"),
    Rule("usage-missing", "usage_missing_share", 0.0, TOKENS, "{:.0%} of the answers came without a token count"),
    Rule("usage-below-chunks", "usage_below_chunks_share", 0.0, TOKENS,
         "{:.0%} of the answers brought more chunks than the tokens that usage counts"),
    Rule("usage-counter", "usage_counter_off_share", 0.05, TOKENS,
         "the server's own token counter and usage differ by {:.0%}: usage is wrong, or others used the server"),
    Rule("output-length", "output_length_off_share", 0.05, ("output_tok_s", "e2e_ms", "goodput", "measured_over_bound"),
         "{:.0%} of the answers were not of the length asked for"),
    Rule("prompt-length", "prompt_length_off_share", 0.05, ALL, "{:.0%} of the prompts arrived at another length"),
    Rule("prefix-cache", "prefix_hit_beyond_plan", 0.1, FROM_PREFILL,
         "the prefix cache served {:.0%} of the prompt tokens more than planned"),
    Rule("prefix-cache-missed", "prefix_hit_below_plan", 0.2, NOTE,
         "the prefix cache served {:.0%} of the prompt tokens less than the plan's common beginning"),
    Rule("concurrency-not-reached", "running_short_share", 0.1, SPEED,
         "the server never ran the asked number of requests at once: {:.0%} short"),
    Rule("clock-step", "clock_step_ms", 5.0, LATENCY, "the wall clock stepped by {:.0f} ms during the repeat"),
    Rule("stamps-dropped", "stamps_dropped", 0.0, NOTE,
         "the wall clock was set: {:.0f} arrival stamps were dropped and stand as upper bounds"),
    Rule("gaps-left-out", "gaps_left_out_share", 0.0, NOTE,
         "{:.2%} of the gaps touch merged chunks and are left out of itl_ms"),
    Rule("ttft-upper-bound", "ttft_bound_share", 0.0, NOTE,
         "{:.2%} of the TTFTs are upper bounds: the first token was merged with the next"),
    Rule("other-load", "cpu_wait_share", 0.01, NOTE,
         "another load on the machine: the client waited for a core {:.1%} of the time"),
    Rule("busy-machine", "other_load_share", 0.1, NOTE,
         "other programs took {:.0%} of this machine's cores"),
    Rule("contract-changed", "contract_fields_changed", 0.0, ALL,
         "contract fields that changed while it ran: {:.0f}; another server answers since"),
    Rule("no-server-metrics", "metrics_missing", 0.0, ("kv_use", "running", "waiting", "preemptions", "prefix_hit"),
         "the server's metrics could not be read"),
    Rule("no-interference", "undisturbed", 0.0, NOTE, "the long prompts found no victim that was decoding"),
    Rule("not-steady", "halves_differ_share", 0.05, NOTE, "not steady: the halves of the window differ by {:.0%}"),
    Rule("no-steady-window", "no_steady_window", 0.0, NOTE,
         "no steady window, for too few requests or all sent before the first token: all are used"),
    Rule("reconnects", "reconnected_share", 0.0, NOTE, "{:.0%} of the requests had to open a new connection"),
)  # fmt: skip


class Finding(NamedTuple):
    """A rule that fired, with its sentence filled in."""

    rule: Rule
    value: float

    def __str__(self) -> str:
        """The rule's id and sentence."""
        return f"{self.rule.id}: {self.rule.sentence.format(self.value)}"

    def spoils(self, metric: str) -> bool:
        """Whether it spoils that metric; what the server itself did (started, died) is never spoiled."""
        return (self.rule.spoils == ALL and metric not in OF_THE_SERVER) or metric in self.rule.spoils


def facts(
    manifest: Manifest, repeat: Repeat, point: LoadPoint, records: Sequence[Record], telemetry: Sequence[Sample],
    window: Window,
) -> dict[str, float | None]:  # fmt: skip
    """What the rules look at, per repeat; None where it cannot be known."""
    load = counted(records, window)
    good = [r for r in load if r.outcome == "ok"]
    lags = [(r.dispatched_s - r.scheduled_s) * 1000 for r in load if r.dispatched_s is not None]
    ttfts = [t for r in good if (t := ttft_service_ms(r)) is not None]
    usual_ttft = percentile(ttfts, 50) if ttfts else 0.0
    foreign = manifest.imported is not None  # says neither what was asked for nor what the server's metrics were
    fixed_length = not foreign and manifest.contract.candidate.get("output_length", "fixed") == "fixed"
    fixed_length = fixed_length and not point.free_length
    hit = delta(repeat, "prefix_hits")
    asked = delta(repeat, "prefix_queries")
    peak_running = max((s.value for s in telemetry if s.name == "running"), default=None)
    gaps = sum(max(0, len(r.chunk_s) - 1) for r in good)
    return {
        "dispatch_lag_share_of_ttft": percentile(lags, 95) / usual_ttft if lags and usual_ttft > 0 else None,
        "loop_lag_p99_ms": repeat.loop_lag_p99_ms,
        "loop_stalled_share": repeat.loop_stalled_share,
        "coalesced_share": _coalesced(load, repeat.shards),
        "shards_lost": float(repeat.shards_lost),
        "receive_buffer_full": float(repeat.receive_buffer_full),
        "client_error_share": _share([r for r in records if r.is_load], lambda r: r.error_kind == "client"),
        # A closed loop on a server that refuses at once spins: that is the server's result, and has no times to bend.
        "client_cpu_share": repeat.client_cpu_share if good else None,
        "usage_missing_share": _share(good, lambda r: r.output_tokens is None),
        "usage_below_chunks_share": _share(good, _fewer_tokens_than_chunks),
        "usage_counter_off_share": None if foreign else _counter_off(repeat, records),
        "output_length_off_share": _share(good, lambda r: r.output_tokens != r.asked_output_tokens)
        if fixed_length
        else None,
        "prompt_length_off_share": _share(good, _prompt_off),
        "prefix_hit_beyond_plan": hit / asked - point.shared_prefix if asked and hit is not None else None,
        "prefix_hit_below_plan": _prefix_missed(manifest, point, hit / asked if asked and hit is not None else None),
        "running_short_share": _running_short(manifest, point, peak_running),
        "clock_step_ms": abs(repeat.clock_step_ms),
        "stamps_dropped": float(repeat.stamps_dropped),
        "gaps_left_out_share": 1 - sum(len(itl_ms(r)) for r in good) / gaps if gaps else None,
        "ttft_bound_share": _share(good, ttft_is_bound),
        "cpu_wait_share": repeat.cpu_wait_share,
        "other_load_share": repeat.other_load_share,
        "contract_fields_changed": float(len(repeat.contract_changed)),
        "metrics_missing": 0.0 if foreign or telemetry or repeat.counters_after else 1.0,
        "undisturbed": float(not disturbance(records).disturbed) if point.shape == "interference" else None,
        "halves_differ_share": _halves(records, window),
        "no_steady_window": 0.0 if window.steady else 1.0,
        "reconnected_share": _share(load, lambda r: r.reconnected),
    }


def delta(repeat: Repeat, counter: str) -> float | None:
    """Increase of a server counter over the repeat; None when it was not read at both ends, or began anew."""
    if repeat.server_restarts:
        return None
    before, after = repeat.counters_before.get(counter), repeat.counters_after.get(counter)
    return None if before is None or after is None else after - before


def findings(values: dict[str, float | None]) -> tuple[Finding, ...]:
    """The rules that fire on these facts."""
    return tuple(Finding(r, v) for r in RULES if (v := values.get(r.fact)) is not None and v > r.limit)


def _coalesced(records: Sequence[Record], shards: int) -> float | None:
    """Share of merged chunks in the process of the client that saw most of them."""
    seen: dict[int, list[int]] = {}
    for r in records:
        merged, chunks = seen.get(r.request % shards, (0, 0))
        seen[r.request % shards] = [merged + sum(r.chunk_bound), chunks + len(r.chunk_s)]
    return max((merged / chunks for merged, chunks in seen.values() if chunks), default=None)


def _share(records: Sequence[Record], test: object) -> float | None:
    if not records or not callable(test):
        return None
    return sum(bool(test(r)) for r in records) / len(records)


def _fewer_tokens_than_chunks(r: Record) -> bool:
    """By more than 2: a reasoning or tool parser may cut a token in two where its channel changes."""
    return r.output_tokens is not None and r.output_tokens + 2 < len(r.chunk_s)


def _counter_off(repeat: Repeat, records: Sequence[Record]) -> float | None:
    """Known only where every request ended well: the server counts tokens of answers that we never saw the end of."""
    told = [r.output_tokens for r in records if r.outcome == "ok" and r.output_tokens is not None]
    counted = delta(repeat, "generation_tokens")
    if counted is None or not told or len(told) < len(records):
        return None
    return abs(counted - sum(told)) / max(counted, sum(told))


def _prompt_off(r: Record) -> bool:
    """More than 2 % and more than 8 tokens off: silent truncation, not tokenizer noise."""
    if r.prompt_tokens is None or not r.asked_prompt_tokens:
        return False
    off = abs(r.prompt_tokens - r.asked_prompt_tokens)
    return off > 8 and off > 0.02 * r.asked_prompt_tokens


def _prefix_missed(manifest: Manifest, point: LoadPoint, hit: float | None) -> float | None:
    """Known where prompts had something in common and the cache was not stated to be off."""
    if hit is None or not point.shared_prefix or manifest.contract.candidate.get("prefix_caching") == "off":
        return None
    return point.shared_prefix - hit


def _running_short(manifest: Manifest, point: LoadPoint, peak_running: float | None) -> float | None:
    limit = manifest.contract.candidate.get("max_num_seqs", "")
    if point.in_flight is None or peak_running is None or not limit.isdigit() or point.in_flight > int(limit):
        return None
    return 1 - peak_running / point.in_flight


def _halves(records: Sequence[Record], window: Window) -> float | None:
    if not window.steady:
        return None
    middle = (window.begin_s + window.end_s) / 2
    first, second = tokens_in(records, window.begin_s, middle), tokens_in(records, middle, window.end_s)
    return abs(first - second) / max(first, second) if max(first, second) > 0 else None
