"""The metrics that a condition can name: unit, direction, level, statistics, definition.

A new metric is one row here, one function in bundle/summary.py and, where a server exports it,
its names in the engine's YAML; tests/test_metric_sets.py holds the three together.
"""

from __future__ import annotations

from enum import StrEnum

from planner.errors import InputError, UnknownName
from planner.frozen import Frozen


class Level(StrEnum):
    """Where a metric lives; it decides how samples are counted."""

    REQUEST = "request"
    RUN = "run"
    SERVER = "server"
    DEMAND = "demand"
    STATIC = "static"


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Metric(Frozen):
    """One metric: `id` carries the unit, `name` is how a condition line calls it.

    A `paired` one compares two candidates by itself, so it names both and keeps its own unit instead of a ratio's.
    `spread_of` names the metric whose figures of several starts it is worked out from.
    """

    id: str
    name: str
    unit: str
    direction: Direction
    level: Level
    statistics: tuple[str, ...]
    definition: str
    version: int = 1
    paired: bool = False
    spread_of: str = ""


PERCENTILES = ("p5", "p50", "p90", "p95", "p99")
VALUE = ("value",)
LOWER, HIGHER, NEITHER = Direction.LOWER, Direction.HIGHER, Direction.NEITHER


def _row(
    id: str, name: str, unit: str, direction: Direction, level: Level, statistics: tuple[str, ...], definition: str,
    paired: bool = False, spread_of: str = "",
) -> Metric:  # fmt: skip
    return Metric(
        id=id, name=name, unit=unit, direction=direction, level=level, statistics=statistics, definition=definition,
        paired=paired, spread_of=spread_of,
    )  # fmt: skip


_ROWS = (
    _row("ttft_ms", "ttft", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean"),
         "First token on any channel minus the scheduled time: the wait in the client and in the queue included."),
    _row("ttft_service_ms", "ttft_service", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean"),
         "First token on any channel minus dispatch (just before the first send)."),
    _row("itl_ms", "itl", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean", "max"),
         "Gap between consecutive chunks after the first; an inter-chunk gap when a chunk holds several tokens."),
    _row("itl_quiet_ms", "itl_quiet", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean", "max"),
         "itl_ms of the victims of an interference point, before the long prompts were sent."),
    _row("itl_disturbed_ms", "itl_disturbed", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean", "max"),
         "itl_ms of the victims of an interference point, while the long prompts were on the server."),
    _row("tpot_ms", "tpot", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean"),
         "(last token - first token) / (output tokens - tokens in the first chunk), per request."),
    _row("user_tok_s", "user_tok_s", "tok/s", HIGHER, Level.REQUEST, (*PERCENTILES, "mean"),
         "1000 / tpot_ms per request: the speed that one user sees. The promise is its p5, the slow tail."),
    _row("e2e_ms", "e2e", "ms", LOWER, Level.REQUEST, (*PERCENTILES, "mean"), "Last token minus the scheduled time."),
    _row("output_tok_s", "output_tok_s", "tok/s", HIGHER, Level.RUN, VALUE,
         "Output tokens that arrived in the steady window divided by its length."),
    _row("request_rate", "request_rate", "req/s", HIGHER, Level.RUN, VALUE,
         "Requests that ended well in the steady window divided by its length."),
    _row("goodput", "goodput", "share", HIGHER, Level.RUN, VALUE,
         "Requests that met all service levels / (scheduled in the window - undetermined); one that a stop rule cut "
         "off met none."),
    _row("error_share", "error_share", "share", LOWER, Level.RUN, VALUE,
         "Failed requests / (scheduled in the window - undetermined)."),
    _row("completed_share", "completed_share", "share", HIGHER, Level.RUN, VALUE,
         "Requests that ended well / (scheduled in the window - undetermined); one that a stop rule cut off did not."),
    _row("pass_rate", "pass_rate", "share", HIGHER, Level.REQUEST, VALUE,
         "Items of the quality set whose answer met its expectation / items; a failed request does not pass."),
    _row("quality_loss", "quality_loss", "share", LOWER, Level.RUN, VALUE,
         "Of two candidates on the same items of a quality set: (items that only the second passed - items that only "
         "the first passed) / items that both answered; from the items behind pass_rate.", paired=True),
    _row("json_valid", "json_valid", "share", HIGHER, Level.RUN, VALUE,
         "Answers that are JSON and fit the asked schema / answers that ended well."),
    _row("structured_cost", "structured_cost", "x", LOWER, Level.RUN, VALUE,
         "Median over the same prompts of (end - dispatch) / output tokens with a JSON schema, over that without."),
    _row("measured_over_bound", "measured_over_bound", "x", NEITHER, Level.RUN, VALUE,
         "output_tok_s over the coverage bound (memory bandwidth, with the experts that a batch touches) of the same "
         "candidate at the same load point."),
    _row("started", "started", "bool", HIGHER, Level.SERVER, VALUE,
         "1 when the engine came up and answered the preflight, else 0."),
    _row("startup_s", "startup_s", "s", LOWER, Level.SERVER, VALUE,
         "From the start command to the first healthy answer."),
    _row("oom", "oom", "count", LOWER, Level.SERVER, VALUE,
         "Out-of-memory deaths of the engine seen in exit code or log during the load point."),
    _row("restarts", "restarts", "count", LOWER, Level.SERVER, VALUE,
         "Times the engine process ended while it was expected to serve."),
    _row("kv_capacity_tokens", "kv_capacity", "tokens", HIGHER, Level.SERVER, VALUE,
         "KV cache capacity that the engine states after its start."),
    _row("kv_capacity_spread", "kv_capacity_spread", "share", LOWER, Level.SERVER, VALUE,
         "(largest - smallest) / largest kv_capacity_tokens over the starts of an engine.",
         spread_of="kv_capacity_tokens"),
    _row("kv_use", "kv_use", "share", LOWER, Level.SERVER, ("mean", "max"),
         "Share of the KV cache in use, from the server's own metrics, sampled through the load point."),
    _row("running", "running", "count", NEITHER, Level.SERVER, ("mean", "max"),
         "Requests in the running batch, from the server's own metrics."),
    _row("waiting", "waiting", "count", LOWER, Level.SERVER, ("mean", "max"),
         "Requests in the server's queue, from its own metrics."),
    _row("preemptions", "preemptions", "count", LOWER, Level.SERVER, VALUE,
         "Increase of the server's preemption counter over the load point."),
    _row("prefix_hit", "prefix_hit", "share", HIGHER, Level.SERVER, VALUE,
         "Prefix-cache hits / queries in tokens over the load point, from the server's counters."),
    _row("peak_in_flight", "peak_in_flight", "count", NEITHER, Level.DEMAND, ("max", "p95", "mean"),
         "Highest number of requests in flight at once in a day, observed in production, over the days of the "
         "window."),
    _row("requests_per_day", "requests_per_day", "count", NEITHER, Level.DEMAND, ("max", "mean"),
         "Requests that users sent in a day, observed in production."),
    _row("shared_prefix_share", "shared_prefix_share", "share", NEITHER, Level.DEMAND, ("mean",),
         "Share of prompt tokens that stand in a prefix seen before, observed in production."),
    _row("input_tokens", "input_tokens", "tokens", NEITHER, Level.DEMAND, ("mean",),
         "Mean prompt tokens of a day's requests, observed in production; every day of the window counts alike."),
    _row("output_tokens", "output_tokens", "tokens", NEITHER, Level.DEMAND, ("mean",),
         "Mean answer tokens of a day's requests, observed in production; every day of the window counts alike."),
    _row("format_supported", "format_supported", "bool", HIGHER, Level.STATIC, VALUE,
         "1 when the engine's catalogue entry supports the weight format and quantization on this GPU, else 0."),
    _row("maintained", "maintained", "bool", HIGHER, Level.STATIC, VALUE,
         "1 while the engine's catalogue entry says that it is actively maintained, else 0."),
)  # fmt: skip

METRICS: dict[str, Metric] = {m.id: m for m in _ROWS}
_BY_NAME = {m.name: m for m in _ROWS} | METRICS

# Display and input units: unit -> (base unit, factor to the base unit).
UNITS: dict[str, tuple[str, float]] = {
    "ms": ("ms", 1.0), "s": ("s", 1.0), "min": ("s", 60.0),
    "tok/s": ("tok/s", 1.0), "req/s": ("req/s", 1.0), "req/min": ("req/s", 1 / 60),
    "share": ("share", 1.0), "%": ("share", 0.01), "x": ("x", 1.0),
    "count": ("count", 1.0), "tokens": ("tokens", 1.0), "bool": ("bool", 1.0),
}  # fmt: skip


def metric(name: str) -> Metric:
    """Find a metric by its line name or id.

    Raises UnknownName with the nearest name.
    """
    found = _BY_NAME.get(name)
    if found is None:
        raise UnknownName.from_known("metric", name, _BY_NAME)
    return found


def to_base(value: float, unit: str, target: Metric) -> float:
    """Convert a value written in `unit` to the metric's own unit.

    Raises InputError when the unit does not measure this metric.
    """
    if unit == "s" and target.unit == "ms":
        return value * 1000.0
    if unit == "ms" and target.unit == "s":
        return value / 1000.0
    base, factor = UNITS.get(unit, ("", 0.0))
    if base != target.unit:
        fits = [u for u, (b, _) in UNITS.items() if b == target.unit] + (["s"] if target.unit == "ms" else [])
        raise InputError(f"unit {unit!r} does not fit {target.name}.", fix=f"Use {' or '.join(fits)}.")
    return float(f"{value * factor:.12g}")  # 95 % is 0.95, not 0.9500000000000001


def quantity(value: float, unit: str) -> str:
    """A value in a base unit as people read it: three significant digits, seconds from 1,000 ms on, shares in %."""
    if unit == "bool":
        return "true" if value else "false"
    if unit == "ms" and abs(value) >= 1000:
        value, unit = value / 1000, "s"
    if unit == "share":
        value, unit = value * 100, "%"
    digits = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return digits if unit == "count" else f"{digits} {unit}"
