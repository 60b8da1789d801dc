"""Names for people of what engines are scored by, and sentences that use them."""

from __future__ import annotations

import re
from collections.abc import Callable

CRITERION_NAMES: dict[str, str] = {
    "batching": "Batching",
    "kv_management": "KV cache management",
    "scheduling_policy": "Scheduling policy",
    "chunked_prefill": "Chunked prefill",
    "prefix_reuse": "Prefix reuse",
    "openai_api": "OpenAI-compatible API",
    "metrics": "Metrics",
    "ops_information": "Information for operators",
    "model_formats": "Model formats",
    "quantization": "Quantization",
    "kv_quantization": "KV cache quantization",
    "multi_gpu": "Several GPUs",
    "hardware_breadth": "Breadth of hardware",
    "ease_of_install": "Ease of installation",
    "release_cadence": "Releases to take in",
    "licence_maintenance": "Licence and maintenance",
    "security_defaults": "Security by default",
    "benchmark_control": "Control for benchmarks",
    "structured_output": "Structured output",
    "lora": "LoRA adapters",
    "multimodal": "Images and audio",
    "container_images": "Container images",
}
_ID = re.compile(r"(?<!\S)(" + "|".join(CRITERION_NAMES) + r")(?=[:,]|$)")


def criterion_name(id: str) -> str:
    """A criterion as people call it; one that no table names is called by its id."""
    return CRITERION_NAMES.get(id, id)


def with_names(text: str, name: Callable[[str], str] = criterion_name) -> str:
    """A sentence of the domain with criteria by their names for people, or by those that `name` gives."""
    return _ID.sub(lambda found: name(found[1]), text)
