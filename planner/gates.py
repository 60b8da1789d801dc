"""Hard requirements: what stops an engine before any score, and what is open until a server was started.

A failed gate removes the candidate from the ranking; an unknown one becomes the first hypothesis of the PoC.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from planner.engine_facts import capability
from planner.engine_schema import CAPABILITY, Engine, HardwareReport, WeightSupport
from planner.frozen import Frozen
from planner.ratings import rated
from planner.requirements import Hardware, ModelPlan, Requirements

GateState = Literal["pass", "fail", "unknown"]
GateName = Literal["gpu and precision", "api", "licence", "maintained", "operating system", "air gap"]

LICENCES_ALLOWED = ("Apache-2.0", "MIT", "BSD-3-Clause")


class Gate(Frozen):
    """One hard requirement of one candidate: state, reason, sources, and what would settle an unknown."""

    gate: GateName
    state: GateState
    reason: str
    sources: tuple[str, ...] = ()
    hypothesis: str = ""


class RunForm(Frozen):
    """The form of the model that an engine would load; `declared` names contract fields that differ from the plan's."""

    weight_format: str
    quantization: str
    declared: tuple[str, ...] = ()
    note: str = ""


def run_form(engine: Engine, plan: ModelPlan) -> RunForm | None:
    """The plan's own form where the engine reads it, else the nearest one it reads, else None."""
    if engine.formats.support(plan.weight_format, plan.quantization):
        return RunForm(weight_format=plan.weight_format, quantization=plan.quantization)
    other = engine.formats.substitute(plan.quantization)
    if other is None or engine.formats.support(other.weight_format, other.becomes) is None:
        return None
    return RunForm(
        weight_format=other.weight_format, quantization=other.becomes, declared=("weight_format", "quantization"),
        note=f"{plan.quantization} {plan.weight_format} becomes {other.becomes} {other.weight_format}: {other.note}",
    )  # fmt: skip


def gates(
    engine: Engine,
    requirements: Requirements,
    plan: ModelPlan,
    hardware: Hardware,
    compute_capability: str | None,
    licences: tuple[str, ...] = LICENCES_ALLOWED,
) -> tuple[Gate, ...]:
    """All gates of engine x model plan x hardware.

    Compute capability as in "9.0", of other makers the generation ("metal", "gfx942"), None when nobody states it.
    """
    return (
        _gpu(engine, plan, hardware, compute_capability),
        _api(engine, requirements),
        _licence(engine, licences),
        _maintained(engine),
        _os(engine, hardware),
        _air_gap(engine, requirements),
    )


def format_gate(engine: Engine, plan: ModelPlan, hardware: Hardware, compute_capability: str | None) -> Gate:
    """Whether the engine runs this plan's weight format and quantization on this compute capability."""
    return _gpu(engine, plan, hardware, compute_capability)


def _gpu(engine: Engine, plan: ModelPlan, hardware: Hardware, cc: str | None) -> Gate:
    form = run_form(engine, plan)
    if form is None:
        known = sorted({q for w in engine.formats.weights for q in w.quantization})
        reason = f"reads no {plan.quantization} in {plan.weight_format}; it reads {', '.join(known)}."
        return _gpu_gate("fail", reason, tuple(w.source for w in engine.formats.weights[:1]))
    row = engine.formats.support(form.weight_format, form.quantization)
    assert row is not None  # run_form only names forms that are supported
    what = f"{form.quantization} in {form.weight_format}"
    hypothesis = f"{engine.name} {engine.version} starts and answers on {hardware.gpu} with {what}."
    if cc is None:
        reason = f"the catalogue states no compute capability for {hardware.gpu}."
        return _gpu_gate("unknown", reason, (row.source,), hypothesis)
    if not re.match(CAPABILITY, cc):
        return _other_maker(engine, what, cc, row, hypothesis)
    needed = max(row.min_compute_capability, engine.hardware.min_compute_capability, key=capability)
    if capability(cc) < capability(needed):
        note = f" ({row.note})" if row.note else ""
        return _gpu_gate("fail", f"{what} needs compute capability {needed}, this GPU has {cc}{note}.", (row.source,))
    if cc in row.not_on:
        return _gpu_gate("fail", f"{what} is left out on compute capability {cc}.", (row.source,))
    reports = tuple(r for r in engine.hardware.reports if r.compute_capability == cc)
    sources = (row.source, engine.hardware.known_basis, *(r.source for r in reports))
    if cc in engine.hardware.known_on:
        return _gpu_gate("pass", f"{what} on {cc}: {_known(row, cc)}.", sources)
    return _gpu_gate("unknown", _not_proven(engine, what, cc, reports), sources, hypothesis)


class Maker(NamedTuple):
    """A kind of hardware without a compute capability, and the words by which engines document it."""

    name: Literal["AMD", "Apple", "CPU"]
    words: tuple[str, ...]


# By how the catalogue of GPUs names their generation.
OTHER_MAKERS = {
    "gfx": Maker("AMD", ("AMD",)), "metal": Maker("Apple", ("Apple",)), "x86": Maker("CPU", ("x86", "Xeon")),
}  # fmt: skip


def accelerator(cc: str | None) -> Literal["NVIDIA", "AMD", "Apple", "CPU"]:
    """Whose hardware a compute capability or a generation is; NVIDIA's where nobody states it."""
    return next((m.name for prefix, m in OTHER_MAKERS.items() if (cc or "").startswith(prefix)), "NVIDIA")


def _other_maker(engine: Engine, what: str, cc: str, row: WeightSupport, hypothesis: str) -> Gate:
    """What is documented for a GPU that is not NVIDIA's: the generation itself, its maker, or neither."""
    facts = engine.hardware
    sources = (row.source, facts.known_basis)
    if cc in facts.known_on:
        return _gpu_gate("pass", f"{what} on {cc}: supported.", sources)
    maker = next((m for prefix, m in OTHER_MAKERS.items() if cc.startswith(prefix)), None)
    name, words = (f"{maker.name} hardware", maker.words) if maker else (cc, (cc,))
    if any(w.lower() in d.lower() for w in words for d in (*facts.documented, *facts.plugins)):
        reason = f"{name} is documented, but not {what} on {cc}."
        return _gpu_gate("unknown", reason, sources, hypothesis)
    return _gpu_gate("fail", f"{name} is not documented, only {', '.join(facts.documented)}.", sources)


def _gpu_gate(state: GateState, reason: str, sources: tuple[str, ...], hypothesis: str = "") -> Gate:
    return Gate(gate="gpu and precision", state=state, reason=reason, sources=sources, hypothesis=hypothesis)


def _known(row: WeightSupport, cc: str) -> str:
    weights_only = row.native_from is not None and capability(cc) < capability(row.native_from)
    notes = [f"weights only, native from {row.native_from}"] if weights_only else ["supported"]
    return "; ".join([*notes, row.note] if row.note else notes)


def _not_proven(engine: Engine, what: str, cc: str, reports: tuple[HardwareReport, ...]) -> str:
    numbered = [k for k in engine.hardware.known_on if re.match(CAPABILITY, k)]
    # Code for X.y runs on X.z from y on, never the other way: what lies below is the nearest.
    below = [k for k in numbered if capability(k)[0] == capability(cc)[0] and capability(k) < capability(cc)]
    near = f" (has {max(below, key=capability)} of the same major version)" if below else ""
    heard = "".join(
        f" Reported {'' if r.works else 'not '}to work{f' at {r.version}' if r.version else ''}: {r.what}."
        for r in reports
    )
    return f"{what} is not proven on {cc}, which is missing from the {engine.hardware.known_basis}{near}.{heard}"


def _api(engine: Engine, r: Requirements) -> Gate:
    sources = rated(engine, "openai_api").source
    if r.api == "any" or r.api in engine.api:
        return Gate(gate="api", state="pass", reason=f"{r.api} is served.", sources=sources)
    reason = f"{r.api} is not served; {', '.join(engine.api)} is."
    return Gate(gate="api", state="fail", reason=reason, sources=sources)


def _licence(engine: Engine, allowed: tuple[str, ...]) -> Gate:
    ok = engine.licence.spdx in allowed
    reason = f"{engine.licence.spdx} is {'' if ok else 'not '}among the licences allowed ({', '.join(allowed)})."
    return Gate(gate="licence", state="pass" if ok else "fail", reason=reason, sources=(engine.licence.source,))


def _maintained(engine: Engine) -> Gate:
    m = engine.maintenance
    if m.status == "active":
        return Gate(gate="maintained", state="pass", reason=m.note, sources=m.sources)
    since = f" since {m.since.isoformat()}" if m.since else ""
    return Gate(gate="maintained", state="fail", reason=f"in maintenance mode{since}. {m.note}", sources=m.sources)


def _os(engine: Engine, hardware: Hardware) -> Gate:
    ok = hardware.os in engine.hardware.os
    reason = f"runs on {', '.join(engine.hardware.os)}; the machine has {hardware.os}."
    sources = rated(engine, "hardware_breadth").source
    return Gate(gate="operating system", state="pass" if ok else "fail", reason=reason, sources=sources)


def _air_gap(engine: Engine, r: Requirements) -> Gate:
    facts = engine.air_gap
    if not r.air_gap:
        return Gate(gate="air gap", state="pass", reason="not asked for.")
    if facts.works is None:
        return Gate(
            gate="air gap", state="unknown", reason="nothing was read about running without network.",
            sources=(facts.source,),
            hypothesis=f"{engine.name} {engine.version} starts without network from files carried in.",
        )  # fmt: skip
    state: GateState = "pass" if facts.works else "fail"
    return Gate(gate="air gap", state=state, reason=facts.how, sources=(facts.source,))
