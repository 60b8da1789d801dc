"""The KV pool in vLLM's own block and group arithmetic, so that its start-up lines come out."""

from __future__ import annotations

from planner.frozen import Frozen
from planner.kv_layers import CacheLayers, cache_layers
from planner.model_schema import Model
from planner.quantization import KV_BYTES

VLLM_BLOCK_TOKENS = 16


class EngineKv(Frozen):
    """The KV pool as vLLM counts it: blocks, tokens per block, groups of layers, tokens, requests of full length.

    `tokens` is the figure of the log up to vLLM 0.23; later ones print `logged_tokens`. They differ for models with
    several kinds of layers (vllm#40691), so requests are what to compare.
    """

    blocks: int
    block_tokens: int
    groups: int
    tokens: int
    max_concurrency: float
    max_model_len: int

    @property
    def logged_tokens(self) -> int:
        """Tokens as vLLM 0.24 and later print them: requests of full length times that length."""
        return int(self.max_concurrency * self.max_model_len)


def engine_kv(
    model: Model, kv_pool_bytes: float, max_model_len: int, *, kv_dtype: str = "fp16", tensor_parallel: int = 1,
    pipeline_parallel: int = 1, max_num_batched_tokens: int = 8192, prefix_caching: bool = True,
    speculative_tokens: int = 0,
) -> EngineKv:  # fmt: skip
    """Blocks of the pool and how many requests of full length they hold.

    Kinds of layers are padded to groups of equal size, every group's block has the same bytes, and a window keeps
    ceil(min(window - 1 + max_num_batched_tokens, length) / block) + 1 blocks. A state takes one block per request, a
    second one with prefix caching, and one per drafted token (vllm/v1/core/kv_cache_utils.py, kv_cache_interface.py).
    """
    kinds = cache_layers(model, tensor_parallel, pipeline_parallel, speculative_tokens)
    width = KV_BYTES[kv_dtype]
    group_size = _group_size([c.layers for c in kinds])
    groups = {c.kind: -(-c.layers // group_size) for c in kinds}
    page = _page_bytes(kinds, width)
    block = {c.kind: max_model_len if c.kind == "state" else page // c.bytes_per_token(width) for c in kinds}
    blocks = int(kv_pool_bytes // (page * group_size))
    states = 1 + prefix_caching + speculative_tokens
    per_request = sum(
        groups[c.kind] * _blocks_per_request(c, max_model_len, block[c.kind], max_num_batched_tokens, states)
        for c in kinds
    )
    smallest = min(block[c.kind] for c in kinds if c.kind != "state")
    return EngineKv(
        blocks=blocks, block_tokens=smallest, groups=sum(groups.values()),
        tokens=blocks // sum(groups.values()) * smallest, max_concurrency=blocks / per_request,
        max_model_len=max_model_len,
    )  # fmt: skip


def largest_context(
    model: Model, kv_pool_bytes: float, requests: int, *, kv_dtype: str = "fp16", tensor_parallel: int = 1,
    pipeline_parallel: int = 1, max_num_batched_tokens: int = 8192, prefix_caching: bool = True,
    speculative_tokens: int = 0,
) -> int:  # fmt: skip
    """Longest context in tokens, up to the model's own limit, at which `requests` fit at once; 0 when none does."""
    low, high = 0, model.max_position_embeddings
    while low < high:
        middle = (low + high + 1) // 2
        held = engine_kv(
            model, kv_pool_bytes, middle, kv_dtype=kv_dtype, tensor_parallel=tensor_parallel,
            pipeline_parallel=pipeline_parallel, max_num_batched_tokens=max_num_batched_tokens,
            prefix_caching=prefix_caching, speculative_tokens=speculative_tokens,
        )  # fmt: skip
        low, high = (middle, high) if held.max_concurrency >= requests else (low, middle - 1)
    return low


def _group_size(counts: list[int]) -> int:
    # A kind that is barely larger is not split: that would pad more than it saves.
    return max(counts) if max(counts) < 1.25 * min(counts) else min(counts)


def _page_bytes(kinds: tuple[CacheLayers, ...], width: int) -> int:
    """Bytes of one block in one layer: the widest kind's 16 tokens, grown until a fixed state fits into it."""
    token = max(c.bytes_per_token(width) for c in kinds if c.kind != "state")
    state = max((c.state_bytes for c in kinds if c.kind == "state"), default=0)
    multiples = max(1, -(-state // (token * VLLM_BLOCK_TOKENS)))
    return multiples * VLLM_BLOCK_TOKENS * token


def _blocks_per_request(c: CacheLayers, length: int, block: int, batched_tokens: int, states: int) -> int:
    if c.kind == "state":
        return states
    if c.window is not None:
        return -(-min(c.window - 1 + batched_tokens, length) // block) + 1
    return -(-length // block)
