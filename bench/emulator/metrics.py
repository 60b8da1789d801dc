"""The metrics page in an engine's own names, written from the same rows of the catalogue that bench reads it by."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bench.dialects import Dialect
from bench.emulator.settings import Settings
from bench.emulator.turns import Turns
from planner.server_schema import LogPattern


@dataclass
class Histogram:
    """Sum and count; the only parts of a histogram that bench reads."""

    sum_s: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        """Take one value."""
        self.sum_s += seconds
        self.count += 1


@dataclass
class Counters:
    """What the server counts since it started."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    success: int = 0
    ttft: Histogram = field(default_factory=Histogram)
    queue_time: Histogram = field(default_factory=Histogram)
    e2e: Histogram = field(default_factory=Histogram)


def page(dialect: Dialect, settings: Settings, turns: Turns, counters: Counters) -> str:
    """The page in Prometheus' form, with the roles that the engine has; no prefix is ever found in the cache."""
    capacity = settings.kv_tokens
    values: dict[str, float] = {
        "running": turns.running, "waiting": turns.waiting, "kv_use": turns.kv_tokens / capacity,
        "preemptions": turns.preemptions, "prefix_hits": 0, "prefix_queries": counters.prompt_tokens,
        "prompt_tokens": counters.prompt_tokens, "cached_tokens": 0, "generation_tokens": counters.generation_tokens,
        "success": counters.success, "kv_capacity": capacity,
    }  # fmt: skip
    series = _series(dialect, settings, values)
    for role in ("ttft", "queue_time", "e2e"):
        for name in dialect.series.get(role, ())[:1]:
            histogram: Histogram = getattr(counters, role)
            series |= {f"{name}_sum": histogram.sum_s, f"{name}_count": histogram.count}
    label = f'engine="0",model_name="{settings.model}"'
    lines = [f"{name}{{{label}}} {float(value)}" for name, value in series.items()]
    return "\n".join([*lines, *_info(dialect, settings)]) + "\n"


def _series(dialect: Dialect, settings: Settings, values: dict[str, float]) -> dict[str, float]:
    """Each role's value by its first spelling, undone where bench combines it with a second series."""
    found: dict[str, float] = {}
    for role, value in values.items():
        reading = dialect.reading.get(role)
        for name in dialect.series.get(role, ())[:1]:
            if reading and reading.label:
                continue
            if reading and reading.times:
                found |= {name: value / settings.block_size, reading.times: settings.block_size}
            elif reading and reading.over:
                found |= {name: value * settings.kv_tokens, reading.over: settings.kv_tokens}
            else:  # with `plus`, the second series is that of the prefix hits: nothing
                found[name] = value
    return found


def _info(dialect: Dialect, settings: Settings) -> list[str]:
    reading, names = dialect.reading.get("kv_capacity"), dialect.series.get("kv_capacity", ())
    if not (reading and reading.label and names):
        return []
    labels = f'engine="0",{reading.label}="{settings.kv_tokens}",block_size="{settings.block_size}"'
    return [f"{names[0]}{{{labels}}} 1.0"]


def capacity_line(pattern: LogPattern, settings: Settings) -> str:
    """The engine's own line about its KV capacity, as its start log would have it."""
    slots = settings.slots
    values = {"tokens": settings.kv_tokens, "slots": slots, "ctx": settings.kv_tokens // slots}
    found = re.search(pattern.regex, pattern.example)
    assert found is not None  # a test of the catalogue holds them together
    line = found.string[: found.end()]
    for group in sorted(pattern.multiply, key=found.start, reverse=True):
        line = line[: found.start(group)] + str(values[group]) + line[found.end(group) :]
    return line[found.start() :]
