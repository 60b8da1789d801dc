"""The team's own runs as ratios of measured over coverage bound, and which of them the team takes out again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from bundle.manifest import Manifest
from db.calibrations import CalibrationChoice
from db.cases import Case, RequirementsVersion
from db.evidence import StoredEvidence
from db.store import Store
from planner.calibration import SHOWN, Calibration, MeasuredPoint, Setting, calibrate
from planner.capacity import SizingSettings, throughput_inputs
from planner.catalog import Catalog
from planner.conditions import Kind, PassedOver
from planner.contract import Contract
from planner.errors import FliplineError, InputError, UnknownName
from planner.fit import FitSettings, footprint
from planner.gpu_schema import Gpu
from planner.memory import kv_bytes_read_per_request
from planner.quantization import KV_BYTES, quantization
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.throughput import ThroughputInputs, step_s
from planner.units import GB
from services.evidence import manifest_of
from services.workspace import Workspace, now, signed_by

# The median over requests: the reciprocal is the speed of the middle user, and a few late ones do not move it.
METRIC, STATISTIC = "tpot_ms", "p50"
LARGEST_BATCH = 4096  # of planner.throughput.MeasuredRatio
# Words of a driver's device name that say nothing about which device it is.
SILENT_WORDS = frozenset({"nvidia", "amd", "geforce", "tesla", "instinct", "generation", "edition", "gpu", "sxm",
                          "sxm4", "sxm5", "hbm2", "hbm2e", "hbm3", "hbm3e"})  # fmt: skip


class _Held(NamedTuple):
    """What the runs of a case gave, and all that it was made from."""

    catalog: Catalog
    requirements: str
    revision: int
    found: tuple[MeasuredPoint | PassedOver, ...]


# By store and case: a page asks for the calibration several times, and every case of the workspace has a part in it.
_HELD: WeakKeyDictionary[Store, dict[str, _Held]] = WeakKeyDictionary()


def calibration(ws: Workspace) -> Calibration:
    """Ratios from every bundle of the workspace; what cannot be used is listed with the reason."""
    points: list[MeasuredPoint] = []
    passed_over: list[PassedOver] = []
    for case in ws.store.cases.all():
        for found in _of_case(ws, case):
            if isinstance(found, MeasuredPoint):
                points.append(found)
            else:
                passed_over.append(found)
    excluded = {id: f"{c.author}, {c.at:%Y-%m-%d}: {c.reason}" for id, c in ws.store.calibrations.excluded().items()}
    return calibrate(points, excluded, passed_over)


def exclude(ws: Workspace, evidence: str, reason: str, author: str) -> None:
    """Take a point out of the calibration; raises InputError without a reason or a name, or for an unknown point."""
    _choose(ws, evidence, used=False, reason=reason, author=author)


def include(ws: Workspace, evidence: str, reason: str, author: str) -> None:
    """Put a point back; raises InputError without a reason or a name, or for an unknown point."""
    _choose(ws, evidence, used=True, reason=reason, author=author)


def _choose(ws: Workspace, evidence: str, *, used: bool, reason: str, author: str) -> None:
    name = signed_by(author, "calibration")
    if not reason.strip():
        raise InputError("no reason is given.", where="calibration", fix="Say what was wrong with the run.")
    if (evidence not in ws.store.calibrations.excluded()) is used:
        state = "counted" if used else "taken out"
        raise InputError(f"the point is {state} already.", where=evidence, fix="Choose another point.")
    ws.store.calibrations.add(
        CalibrationChoice(evidence=evidence, used=used, reason=reason.strip(), author=name, at=now())
    )


def setting_of(catalog: Catalog, r: Requirements, plan: ModelPlan, hardware: Hardware, engine: str,
               devices: int = 1) -> Setting:  # fmt: skip
    """The setting of a sizing; an engine is measured on the server that its catalogue entry names."""
    model, facts = catalog.model(plan.model), catalog.engines.get(engine)
    return Setting.of(
        facts.llama_server.id if facts and facts.llama_server else engine, catalog.gpu(hardware.gpu).id, devices,
        "moe" if model.moe else "dense", quantization(plan.quantization).id, context_tokens=r.context_tokens,
        input_tokens=r.input_tokens, output_tokens=r.output_tokens,
    )  # fmt: skip


def _of_case(ws: Workspace, case: Case) -> tuple[MeasuredPoint | PassedOver, ...]:
    """As `_read_case`, read again only when a figure, the requirements or the catalogue are others.

    Inside an open transaction it is always read, since that may be undone.
    """
    version = ws.store.cases.current_requirements(case.id)
    if version is None:
        return ()
    if ws.store.in_transaction:
        return tuple(_read_case(ws, case, version))
    of_store, revision = _HELD.setdefault(ws.store, {}), ws.store.evidence.revision(case.id)
    held = of_store.get(case.id)
    if held and held.catalog is ws.catalog and (held.requirements, held.revision) == (version.sha256, revision):
        return held.found
    found = tuple(_read_case(ws, case, version))
    of_store[case.id] = _Held(ws.catalog, version.sha256, revision, found)
    return found


def _read_case(ws: Workspace, case: Case, version: RequirementsVersion) -> Iterator[MeasuredPoint | PassedOver]:
    """Every median time per token of a case, as a point or as the reason why it is none."""
    requirements = version.requirements()
    # Starts of one plan share their loads, and the formulas cost more than reading the figures.
    inputs_of = cache(partial(_inputs, ws.catalog, requirements))
    manifests = {r.sha256: manifest_of(r) for r in ws.store.runs.of_case(case.id)}
    for stored in ws.store.evidence.stored(case.id, metric=METRIC, kinds=SHOWN):
        if stored.evidence.statistic != STATISTIC:
            continue
        try:
            yield _point(ws.catalog, stored, manifests.get(stored.run_sha256 or ""), requirements, inputs_of)
        except FliplineError as e:
            yield PassedOver(evidence=stored.evidence.id, reason=str(e))


def _point(
    catalog: Catalog, stored: StoredEvidence, m: Manifest | None, r: Requirements,
    inputs_of: Callable[[_Asked, int, int], ThroughputInputs],
) -> MeasuredPoint:  # fmt: skip
    e = stored.evidence
    if m is None:
        raise InputError("not from a bundle, so engine, model and lengths are not stated.", where="calibration")
    load = next(p for p in m.points if p.name == e.load_point)
    if load.shape != "closed" or load.in_flight is None:
        raise InputError(f"{load.shape} load: how many ran at once is not stated.", where=load.name)
    asked = _asked(catalog, m.contract, r)
    inputs = inputs_of(asked, load.input_tokens, load.output_tokens)
    batch = min(load.in_flight, asked.max_num_seqs or load.in_flight)
    if batch > LARGEST_BATCH:
        raise InputError(f"{batch:,} at once is beyond {LARGEST_BATCH:,}.", where=load.name)
    speed = {kind: 1.0 / step_s(inputs, kind, batch) for kind in (Kind.BOUND, Kind.COVERAGE, Kind.PLANNING)}
    return MeasuredPoint(
        id=e.id, run=m.id, load_point=load.name, at=e.at, kind=e.kind, model=asked.model, batch=batch,
        input_tokens=load.input_tokens, output_tokens=load.output_tokens, measured_tok_s=1000 / e.value,
        bound_tok_s=speed[Kind.BOUND], coverage_tok_s=speed[Kind.COVERAGE], planning_tok_s=speed[Kind.PLANNING],
        spoiled_by=e.spoiled_by,
        setting=Setting.of(asked.engine, asked.gpu, asked.devices, inputs.family,
                           quantization(asked.quantization).id,
                           context_tokens=_context(load.input_tokens, load.output_tokens),
                           input_tokens=load.input_tokens, output_tokens=load.output_tokens),
    )  # fmt: skip


class _Asked(NamedTuple):
    """What a contract states of the server, in the catalogue's words."""

    engine: str
    model: str
    quantization: str
    kv_dtype: str
    devices: int
    max_num_seqs: int | None
    gpu: str


def _asked(catalog: Catalog, contract: Contract, r: Requirements) -> _Asked:
    """Raises InputError for a field that is not stated, UnknownName for one that the catalogue lacks."""
    stated = contract.stated()
    needed = ("engine", "model", "quantization", "kv_cache_dtype", "tensor_parallel", "gpu")
    if missing := [f for f in needed if f not in stated]:
        raise InputError(f"the contract does not state {', '.join(missing)}.", where="calibration")
    if stated["kv_cache_dtype"] not in KV_BYTES:
        raise UnknownName.from_known("KV cache format", stated["kv_cache_dtype"], KV_BYTES, where="calibration")
    devices, slots = stated["tensor_parallel"], stated.get("max_num_seqs", "")
    if not devices.isdigit() or int(devices) < 1:
        raise InputError(f"tensor_parallel {devices!r} is not a count.", where="calibration")
    return _Asked(
        engine=stated["engine"], model=catalog.model(stated["model"]).id, quantization=stated["quantization"],
        kv_dtype=stated["kv_cache_dtype"], devices=int(devices), max_num_seqs=int(slots) if slots.isdigit() else None,
        gpu=machine(catalog, stated["gpu"], r).id,
    )  # fmt: skip


def machine(catalog: Catalog, driver_name: str, r: Requirements) -> Gpu:
    """The catalogue entry of a device as its driver names it; without a GPU the CPU machine that the case states.

    Raises UnknownName: a name with a word that no alias explains may be another device (H100 NVL is not H100 SXM).
    """
    if driver_name.startswith("cpu:"):
        stated = [g for g in (catalog.gpu(h.gpu) for h in r.hardware) if g.architecture.endswith("CPU")]
        if len(stated) == 1:
            return stated[0]
        raise UnknownName(f"which machine has the {driver_name[4:].strip()} is not stated.", where="calibration",
                          fix="State it in the requirements, as one entry of the catalogue.")  # fmt: skip
    words = _words(driver_name)
    names = {name: g for g in catalog.gpus.values() for name in (*g.aliases, g.name, g.id)}
    fitting = [n for n in names if words - SILENT_WORDS <= _words(n) and _words(n) - SILENT_WORDS <= words]
    if len({names[n].id for n in fitting}) != 1:
        raise UnknownName.from_known("GPU", driver_name, names, where="calibration")
    return names[fitting[0]]


def _words(name: str) -> frozenset[str]:
    spaced = re.sub(r"(\d)\s+gb\b", r"\1gb", name.lower())
    return frozenset(re.findall(r"[a-z0-9]+", spaced))


def _context(input_tokens: int, output_tokens: int) -> int:
    """Tokens that a decode step reads of one request on average: the prompt and half of the answer."""
    return input_tokens + output_tokens // 2


def _inputs(
    catalog: Catalog, r: Requirements, asked: _Asked, input_tokens: int, output_tokens: int
) -> ThroughputInputs:  # fmt: skip
    """The speed's inputs at the point's own lengths; what fits is not asked, for it ran."""
    model, quant, gpu = catalog.model(asked.model), quantization(asked.quantization), catalog.gpu(asked.gpu)
    whole, devices = input_tokens + output_tokens, asked.devices
    memory = footprint(model, quant, gpu, FitSettings(context_tokens=whole, kv_dtype=asked.kv_dtype, devices=devices))
    lengths = {"input_tokens": input_tokens, "output_tokens": output_tokens, "context_tokens": whole}
    inputs = throughput_inputs(
        model, quant, gpu, r.model_copy(update=lengths), memory, SizingSettings(tensor_parallel=devices)
    )
    read = kv_bytes_read_per_request(model, _context(input_tokens, output_tokens), asked.kv_dtype, devices)
    return inputs.model_copy(update={"kv_gb_per_request": read * devices / GB, "kv_capacity": None})
