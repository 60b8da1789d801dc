"""A made-up case as large as they come: real bundles of simulated requests, taken in as any bundle is.

The same for the same seed. Nothing in it was measured, and every bundle says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from bundle.folder import seal
from bundle.manifest import EngineStart, Manifest, Repeat
from bundle.records import SCHEMA, Sample, write_table, write_telemetry
from planner.conditions import Kind
from planner.contract import Contract
from planner.loads import LoadPoint
from planner.poc import Plan
from services.evidence import take_in
from services.shipped import install_shipped
from services.verdicts import asked_conditions, case_state
from services.workspace import open_workspace

CASE = "nortia"
CHUNKS = 16  # token-bearing chunks of an answer
FAILED = 0.002  # share of requests that the server refused


def make(home: Path, bundles: int, requests: int, seed: int = 1) -> None:
    """Put `bundles` engine starts with `requests` requests in total into the shipped case of a new workspace."""
    ws = open_workspace(home)
    install_shipped(ws)
    state = case_state(ws, CASE)
    plan = state.plan
    assert plan is not None
    asked = asked_conditions(plan, state.adrs)
    with TemporaryDirectory() as scratch:
        for i in range(bundles):
            folder = bundle(Path(scratch) / f"b{i}", plan, i, requests // bundles, np.random.default_rng((seed, i)))
            take_in(ws, state.case.id, folder, "perf", asked, plan.service_levels)
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {bundles} bundles", end="", file=sys.stderr)
    ws.store.close()


def bundle(folder: Path, plan: Plan, i: int, requests: int, rng: np.random.Generator) -> Path:
    """Start number i, each time of the next candidate: every closed load point of the plan once."""
    candidate = plan.candidates[i % len(plan.candidates)]
    points = tuple(p for p in plan.load_points if p.shape == "closed" and p.in_flight)
    (folder / "records").mkdir(parents=True)
    repeats = tuple(_repeat(folder, p, requests // len(points), rng) for p in points)
    finished = f"2026-11-{1 + i % 28:02d}T{i // 28:02d}:30:00+00:00"
    manifest = Manifest(
        id=f"made-up-{i:04d}", kind=Kind.SIMULATED, tool_version="perf", case=CASE, plan_sha256=plan.sha256(),
        candidate=candidate.id, engine=candidate.engine, stage="A", start=1 + i // len(plan.candidates),
        created_at=finished.replace(":30:", ":00:"), finished_at=finished, status="complete",
        contract=Contract(shared=plan.shared_contract, candidate={**candidate.contract, "output_length": "fixed"}),
        engine_start=EngineStart(url="http://127.0.0.1:1", started=True, startup_s=90.0, kv_capacity_tokens=250_000),
        points=points, repeats=repeats,
    )  # fmt: skip
    seal(folder, manifest)
    return folder


def _repeat(folder: Path, point: LoadPoint, n: int, rng: np.random.Generator) -> Repeat:
    columns = closed_loop(point, n, rng)
    ok = int(np.count_nonzero(columns["outcome"] == "ok"))
    length = float(np.max(columns["end_s"]))
    records, telemetry = f"records/{point.name}.parquet", f"records/{point.name}-server.parquet"
    write_table(folder / records, pa.table(columns, schema=SCHEMA))
    write_telemetry(folder / telemetry, list(_samples(point, length, rng)))
    return Repeat(
        load_point=point.name, repeat=1, t0_unix_s=1.79e9, duration_s=length, scheduled=n, ok=ok, failed=n - ok,
        undetermined=0, records=records, telemetry=telemetry,
    )  # fmt: skip


def closed_loop(point: LoadPoint, n: int, rng: np.random.Generator) -> dict[str, object]:
    """Columns of SCHEMA: `in_flight` slots that send as soon as their answer ended; log-normal waits and gaps."""
    slots = min(point.in_flight or 1, n)
    ok = rng.random(n) >= FAILED
    ttft = rng.lognormal(np.log(0.1 + 0.01 * slots), 0.4, n)
    gaps = rng.lognormal(np.log(0.02 + 0.001 * slots), 0.3, (n, CHUNKS - 1))
    took = ttft + np.where(ok, gaps.sum(axis=1), 0.0)
    scheduled = np.empty(n)
    for slot in range(slots):
        mine = slice(slot, n, slots)
        scheduled[mine] = np.cumsum(took[mine]) - took[mine] + 0.001 * slot
    chunks = np.column_stack([scheduled + ttft, (scheduled + ttft)[:, None] + np.cumsum(gaps, axis=1)])
    tokens = np.full(CHUNKS, point.output_tokens // CHUNKS)
    tokens[-1] += point.output_tokens - tokens.sum()
    ends = np.cumsum(np.where(ok, CHUNKS, 0))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    first, last = (pa.array(t, mask=~ok) for t in (chunks[:, 0], chunks[:, -1]))
    return {
        "request": np.arange(n, dtype=np.int32), "cohort": np.full(n, "load"),
        "outcome": np.where(ok, "ok", "failed"), "scheduled_s": scheduled, "dispatched_s": scheduled + 1e-4,
        "sent_s": scheduled + 2e-4, "first_byte_s": first, "first_token_s": first, "first_visible_s": first,
        "last_token_s": last, "end_s": scheduled + took,
        "chunk_s": pa.ListArray.from_arrays(offsets, pa.array(chunks[ok].ravel())),
        "chunk_tokens": pa.ListArray.from_arrays(offsets, pa.array(np.tile(tokens, ok.sum()).astype(np.int32))),
        "prompt_tokens": np.full(n, point.input_tokens, np.int32),
        "output_tokens": pa.array(np.full(n, point.output_tokens, np.int32), mask=~ok),
        "cached_tokens": np.zeros(n, np.int32), "asked_prompt_tokens": np.full(n, point.input_tokens, np.int32),
        "asked_output_tokens": np.full(n, point.output_tokens, np.int32), "finish_reason": np.where(ok, "length", ""),
        "http_status": np.where(ok, 200, 503).astype(np.int32), "error_kind": np.where(ok, "", "http"),
        "error": np.where(ok, "", "503 Service Unavailable"), "reconnected": np.zeros(n, bool),
        "server_timings": np.full(n, ""), "chunk_bound": pa.array([[]] * n, pa.list_(pa.bool_())),
        "json_valid": pa.nulls(n, pa.bool_()), "connected_s": scheduled + 1e-4,
    }  # fmt: skip


def _samples(point: LoadPoint, length_s: float, rng: np.random.Generator) -> Iterator[Sample]:
    busy = float(point.in_flight or 1)
    for second in range(int(length_s) + 1):
        yield Sample(float(second), "running", busy)
        yield Sample(float(second), "waiting", float(rng.poisson(0.2)))
        yield Sample(float(second), "kv_use", min(1.0, 0.01 * busy + 0.02 * float(rng.random())))
