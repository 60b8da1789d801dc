"""Bundles made by hand, whose every figure can be computed on paper."""

from __future__ import annotations

from pathlib import Path

from bundle.folder import seal
from bundle.manifest import EngineStart, Manifest, Repeat
from bundle.records import Record, Sample, write_records, write_telemetry
from planner.conditions import Kind
from planner.contract import Contract
from planner.loads import LoadPoint

POINT = LoadPoint(name="parallel-2", in_flight=2, input_tokens=64, output_tokens=11, requests=10)


def request(
    i: int, scheduled_s: float, *, ttft_s: float = 0.2, itl_s: float = 0.05, tokens: int = 11,
    dispatch_lag_s: float = 0.0, outcome: str = "ok", **more: object,
) -> Record:  # fmt: skip
    """A request whose first token comes `ttft_s` after its schedule and whose tokens follow every `itl_s`."""
    first = scheduled_s + ttft_s
    chunks = [first + itl_s * k for k in range(tokens)] if outcome == "ok" else []
    fields = {
        "request": i, "cohort": "load", "outcome": outcome, "scheduled_s": scheduled_s,
        "dispatched_s": scheduled_s + dispatch_lag_s, "sent_s": scheduled_s + dispatch_lag_s,
        "first_byte_s": first if chunks else None, "first_token_s": first if chunks else None,
        "first_visible_s": first if chunks else None, "last_token_s": chunks[-1] if chunks else None,
        "end_s": (chunks[-1] if chunks else scheduled_s + 0.1), "chunk_s": chunks, "chunk_tokens": [1] * len(chunks),
        "prompt_tokens": 64, "output_tokens": tokens if chunks else None, "cached_tokens": None,
        "asked_prompt_tokens": 64, "asked_output_tokens": 11, "finish_reason": "length" if chunks else "",
        "http_status": 200 if chunks else 503, "error_kind": "" if chunks else "http", "error": "",
        "reconnected": False, "server_timings": "",
    }  # fmt: skip
    return Record(**(fields | more))  # type: ignore[arg-type]


def closed_loop(slots: int = 2, rounds: int = 5, **more: object) -> list[Record]:
    """`slots` in flight, each request 0.7 s long (0.2 + 10 x 0.05), slots staggered by 0.35 s."""
    return [
        request(k * slots + s, k * 0.7 + s * 0.7 / slots, **more)  # type: ignore[arg-type]
        for k in range(rounds)
        for s in range(slots)
    ]


def bundle(
    folder: Path, records: list[Record] | None = None, *, point: LoadPoint = POINT, start: int = 1,
    candidate: str = "vllm", kind: Kind = Kind.SIMULATED, started: bool = True, telemetry: list[Sample] | None = None,
    counters: tuple[dict[str, float], dict[str, float]] = ({}, {}), plan_sha256: str = "p" * 64,
    contract: Contract | None = None, kv_capacity_tokens: int | None = None,
    engine: dict[str, int] | None = None, repeats: bool = True, **repeat: object,
) -> Path:  # fmt: skip
    """Write and seal a bundle with one repeat."""
    folder.mkdir(parents=True, exist_ok=True)
    made = ()
    if started and repeats:
        records = closed_loop() if records is None else records
        (folder / "records").mkdir(exist_ok=True)
        write_records(folder / "records" / "r1.parquet", records)
        samples = [Sample(0.5, "running", float(point.in_flight or 1))] if telemetry is None else telemetry
        write_telemetry(folder / "telemetry.parquet", samples)
        made = (
            Repeat.model_validate({
                "load_point": point.name, "repeat": 1, "t0_unix_s": 1.8e9, "duration_s": 5.0, "scheduled": len(records),
                "ok": sum(r.outcome == "ok" for r in records), "failed": sum(r.outcome == "failed" for r in records),
                "undetermined": 0, "records": "records/r1.parquet", "telemetry": "telemetry.parquet",
                "counters_before": counters[0], "counters_after": counters[1],
            } | repeat),
        )  # fmt: skip
    manifest = Manifest(
        id=f"run-{candidate}-{start}", kind=kind, tool_version="test", case="test", plan_sha256=plan_sha256,
        candidate=candidate, engine="vllm", stage="A", start=start, created_at="2026-11-29T10:00:00+00:00",
        finished_at="2026-11-29T10:05:00+00:00", status="complete" if started else "failed",
        contract=contract or Contract(candidate={"output_length": "fixed", "max_num_seqs": "16"}),
        engine_start=EngineStart(**(engine or {}), url="http://127.0.0.1:1", started=started,
                                 startup_s=12.0 if started else None,
                                 exit_code=None if started else 1,
                                 kv_capacity_tokens=kv_capacity_tokens, error="" if started else "exited with code 1"),
        points=(point,), repeats=made, bound_tok_s={point.name: 62.5},
    )  # fmt: skip
    seal(folder, manifest)
    return folder
