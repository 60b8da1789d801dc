"""vLLM's group arithmetic for models with several kinds of layers, against its own logs."""

from typing import NamedTuple

import pytest

from planner.catalog import load_catalog
from planner.kv_blocks import engine_kv
from planner.units import GIB

CATALOG = load_catalog()


class Logged(NamedTuple):
    """One log: KV memory of a device, length, what was set, and the block, tokens and requests that it printed."""

    model: str
    kv_gib: float
    length: int
    block: int
    tokens: int
    requests: float
    kv_dtype: str = "fp8"
    tensor_parallel: int = 1
    prefix_caching: bool = False
    speculative_tokens: int = 0
    batched: int = 8192


OLDER = [
    # djangodevreng/dgx-spark-benchmarks@5636536, boot logs of vLLM 0.21+ on GB10
    Logged("Qwen/Qwen3.5-35B-A3B", 47.55, 131_072, 1056, 623_040, 18.44, kv_dtype="bf16"),
    Logged("nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", 103.39, 49_152, 1952, 1_934_432, 216.94),
    # Three drafted tokens: nine attention layers with the draft's, 40 Mamba layers padded to 45.
    Logged("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", 36.25, 131_072, 8432, 1_399_712, 27.81,
           speculative_tokens=3),
    # vLLM 0.17, states cached with prefixes: 304 blocks, 32 + 3 x 2 a request
    Logged("Qwen/Qwen3.5-35B-A3B", 6.08, 65_536, 2096, 159_296, 8.00, prefix_caching=True),
    # jgchn/llm-d-planner@d3121e0, vLLM 0.19 on H100: windows of 128 and of 1,024; chunked attention
    Logged("openai/gpt-oss-20b", 63.28, 8192, 16, 2_764_768, 337.17, kv_dtype="bf16", tensor_parallel=2),
    Logged("google/gemma-3-12b-it", 47.72, 8192, 16, 130_304, 15.88, kv_dtype="bf16"),
    Logged("meta-llama/Llama-4-Scout-17B-16E-Instruct", 16.75, 8192, 16, 365_968, 44.68, kv_dtype="bf16",
           tensor_parallel=4),
]  # fmt: skip
NEWER = [
    # noonghunna/club-3090#612 and #652 (Qwen3.6-35B-A3B, vLLM 0.24); mitchross/talos-argocd-proxmox#1995
    Logged("Qwen/Qwen3.5-35B-A3B", 5.98, 131_072, 2096, 567_978, 4.33, prefix_caching=True),
    Logged("Qwen/Qwen3.5-35B-A3B", 6.01, 131_072, 2096, 569_878, 4.35, prefix_caching=True),
    Logged("Qwen/Qwen3.8-27B", 4.99, 131_072, 1568, 302_921, 2.31, tensor_parallel=2, prefix_caching=True),
]


def _ids(log: Logged) -> str:
    return f"{log.model.split('/')[1]}-{log.kv_gib}"


@pytest.mark.parametrize("log", OLDER + NEWER, ids=_ids)
def test_blocks_and_requests_of_the_log(log: Logged) -> None:
    held = engine_kv(
        CATALOG.model(log.model), log.kv_gib * GIB, log.length, kv_dtype=log.kv_dtype,
        tensor_parallel=log.tensor_parallel, prefix_caching=log.prefix_caching,
        speculative_tokens=log.speculative_tokens, max_num_batched_tokens=log.batched,
    )  # fmt: skip
    assert held.block_tokens == log.block
    # KV memory is logged with two decimals, requests too.
    assert held.max_concurrency == pytest.approx(log.requests, rel=0.002)
    tokens = held.logged_tokens if log in NEWER else held.tokens
    assert tokens == pytest.approx(log.tokens, rel=0.0003)


def test_the_token_figures_of_two_versions_differ_for_hybrids_only() -> None:
    # vllm#40691: 290,864 tokens beside 33.04 requests of 32,768 = 1.08 million.
    hybrid = engine_kv(CATALOG.model("Qwen/Qwen3.5-35B-A3B"), 47.55 * GIB, 131_072)
    assert hybrid.logged_tokens > 3 * hybrid.tokens
    dense = engine_kv(CATALOG.model("Qwen/Qwen3-8B"), 57.5 * GIB, 8192)
    assert dense.logged_tokens == pytest.approx(dense.tokens, rel=0.001)
