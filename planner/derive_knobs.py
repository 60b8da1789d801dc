"""The same KV cache in each engine's own words: the value of its memory knob, and what a number in it gives."""

from __future__ import annotations

from planner.bands import band
from planner.catalog import Catalog
from planner.derivation import Derivation, given
from planner.engine_facts import server
from planner.fit import Footprint
from planner.memory_knobs import KNOBS, DeviceLoad, flag_value, kv_budget
from planner.units import format_gb, format_gib


def knob_derivations(catalog: Catalog, memory: Footprint) -> tuple[Derivation, ...]:
    """One figure per server that has a knob; none where not one request fits."""
    if not memory.requests_that_fit:
        return ()
    settings, budget = memory.settings, memory.budget
    load = DeviceLoad(
        total=budget.device_total, weights=budget.weights, reserve=budget.reserve, others=budget.tenants,
        kv_bytes_per_token=memory.kv_bytes_per_request / settings.context_tokens,
        slots=min(settings.max_num_seqs, memory.requests_that_fit),
    )  # fmt: skip
    return tuple(_knob(catalog, engine, memory, load) for engine in KNOBS)


def _knob(catalog: Catalog, engine: str, memory: Footprint, load: DeviceLoad) -> Derivation:
    """What to write for this KV cache, and back: vLLM's fraction written into another engine's knob is not the same."""
    known, knob, kv = server(catalog.engines, engine), KNOBS[engine], memory.budget.kv
    value = flag_value(engine, load, kv)
    number = f"{value:.3f}" if knob.fraction else f"{value:.0f}"
    other = memory.device.gpu_memory_utilization if knob.fraction else value
    written = f"{other:.2f}" if knob.fraction else number
    return Derivation(
        key=f"knob_{engine}", title=f"{known.name}: the same KV cache",
        value=f"{known.parameters[knob.role].flag} {number}", formula=knob.meaning,
        inputs=(given("KV cache", format_gb(kv), "this sizing"),
                given("device total", format_gib(load.total), "as in the memory split"),
                given("weights, reserve, others",
                      ", ".join(map(format_gb, (load.weights, load.reserve, load.others))), "as in the memory split"),
                *(() if knob.fraction else (given("slots", f"{load.slots:,}", "requests at once"),)),
                given(f"{written} here", f"{format_gb(kv_budget(engine, load, other))} of KV cache",
                      "the other way round")),
        assumptions=("the engine keeps as much beside the cache as vLLM does",), band=band("kv_pool"),
    )  # fmt: skip
