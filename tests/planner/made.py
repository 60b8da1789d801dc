"""Evidence and a context as a judgement gets them: one contract, two load points, the day of the judgement."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from planner.condition_line import parse_condition
from planner.conditions import Context, Evidence, Exceedance, Kind
from planner.contract import Contract
from planner.loads import LoadPoint

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
PEAK = LoadPoint(name="peak", shape="open", rate_per_s=0.8, input_tokens=3596, output_tokens=500)
P16 = LoadPoint(name="parallel-16", in_flight=16, input_tokens=512, output_tokens=128)
POINTS = {"peak": PEAK, "parallel-16": P16}
SHARED = {"model": "m", "model_revision": "r1", "tokenizer": "t", "sampling": "temperature 0", "load_generator": "same"}
ASKED = {"engine": "vllm", "engine_version": "0.33.0", "weight_format": "safetensors", "quantization": "fp8",
         "kv_cache_dtype": "auto", "output_length": "fixed", "max_model_len": "4096", "max_num_seqs": "16",
         "prefix_caching": "on", "tensor_parallel": "1"}  # fmt: skip
SEEN = {"gpu": "NVIDIA GB10", "gpu_count": "1", "engine_version_reported": "0.33.0"}
CONTRACT = Contract(shared=SHARED, candidate=ASKED, observed=SEEN)
PROMISE = parse_condition("vllm: ttft p95 <= 2 s at peak")
FAST = parse_condition("vllm: output_tok_s >= 300 tok/s at parallel-16")


def context(**more: object) -> Context:
    return Context.model_validate({"now": NOW, "points": POINTS, "contracts": {CONTRACT.full_hash(): CONTRACT}} | more)


def ttft(n: int | None = 100, beyond: int = 0, value: float = 1840.0, start: int = 1, **more: object) -> Evidence:
    return Evidence.model_validate({
        "id": f"ttft-{start}-{n}-{beyond}", "metric": "ttft_ms", "statistic": "p95", "value": value, "unit": "ms",
        "kind": Kind.MEASURED, "source": f"start-{start}", "run": "run-1", "start": start,
        "at": NOW - timedelta(days=1),
        "candidate": "vllm", "load_point": "peak", "load_hash": PEAK.load_hash(), "n": n,
        "effective_n": float(n) if n else None,
        "exceedances": (Exceedance(threshold=2000, comparison="<=", beyond=beyond),),
        "contract": CONTRACT.full_hash(),
    } | more)  # fmt: skip


def speed(value: float, start: int = 1, candidate: str = "vllm", **more: object) -> Evidence:
    return Evidence.model_validate({
        "id": f"speed-{candidate}-{start}", "metric": "output_tok_s", "value": value, "unit": "tok/s",
        "kind": Kind.MEASURED, "source": f"{candidate}-{start}", "run": "run-1", "start": start, "at": NOW,
        "candidate": candidate, "load_point": "parallel-16", "load_hash": P16.load_hash(), "n": 60,
        "contract": CONTRACT.full_hash(),
    } | more)  # fmt: skip


def share(metric: str, value: float, n: int, start: int = 1) -> Evidence:
    return ttft(id=f"{metric}-{start}-{n}-{value}", metric=metric, statistic="value", value=value, unit="share", n=n,
                start=start, exceedances=())  # fmt: skip
