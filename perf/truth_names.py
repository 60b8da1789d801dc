"""Names as benchmark pages spell them, read as entries of the catalogue; what is not certain is None, never a guess."""

from __future__ import annotations

import re
from functools import cache

from planner.catalog import Catalog
from planner.gpu_schema import Gpu
from planner.model_schema import Model
from planner.quantization import QUANTIZATIONS, Quantization

# Words of a model's name that say how it was trained on, packed or dated, but nothing of its dimensions.
_MODEL_NOISE = frozenset({
    "instruct", "it", "chat", "base", "hf", "meta", "nvidia", "nv", "coder", "thinking", "reasoning", "vl",
    "text", "only", "sft", "preview", "latest", "quantized", "dynamic", "static", "autoround", "auto", "round",
    "awq", "gptq", "gguf", "exl2", "marlin", "modelopt", "nvfp4", "mxfp4", "fp8", "fp4", "int8", "int4", "bf16",
    "fp16", "bfloat16", "float16", "w8a8", "w4a16", "w4a4", "w8a16", "w4afp8", "4bit", "8bit", "g128", "block",
    "qat", "ud", "unsloth", "uncompressed", "lora", "e4m3",
})  # fmt: skip
_GGUF_FORMAT = re.compile(r"q\d(_[a-z0-9]+)*|\d{4}|v0\.1")
_MODEL_PARTS = re.compile(r"[^a-z0-9.]+")
# Names of other checkpoints with the same dimensions, and short names of one model; both sides as `_model_key` gives.
_SAME_DIMENSIONS = {
    "llama-3.1-70b": "llama-3.3-70b", "llama-3-70b": "llama-3.3-70b", "llama3.3-70b": "llama-3.3-70b",
    "llama3.1-70b": "llama-3.3-70b", "deepseek-r1-distill-llama-70b": "llama-3.3-70b",
    "deepseek-r1-70b": "llama-3.3-70b", "llama-3-8b": "llama-3.1-8b", "llama3.1-8b": "llama-3.1-8b",
    "llama3-8b": "llama-3.1-8b", "deepseek-r1-distill-llama-8b": "llama-3.1-8b", "llama3.1-405b": "llama-3.1-405b",
    "llama-4-scout": "llama-4-scout-17b-16e", "deepseek-v3": "deepseek-r1", "deepseek-v3.1": "deepseek-r1",
    "deepseek-v3.1-terminus": "deepseek-r1", "deepseek-v3.2-exp": "deepseek-v3.2", "kimi-k2.5": "kimi-k2",
    "kimi-k2.6": "kimi-k2", "deepseek-v2-lite-0628": "deepseek-v2-lite", "deepseek-coder-v2-lite": "deepseek-v2-lite",
    "qwen3.6-27b": "qwen3.5-27b", "qwen3.6-35b-a3b": "qwen3.5-35b-a3b", "qwen2-7b": "qwen2.5-7b",
    "qwen2-72b": "qwen2.5-72b", "deepseek-r1-distill-qwen-14b": "qwen2.5-14b",
    "deepseek-r1-distill-qwen-32b": "qwen2.5-32b", "qwq-32b": "qwen2.5-32b", "minimax-m2": "minimax-m2.5",
    "minimax-m2.1": "minimax-m2.5", "glm-4.6-air": "glm-4.5-air", "mistral-small-3.2-24b": "mistral-small-3.1-24b",
    "mistral-small-24b": "mistral-small-3.1-24b", "qwen3-next-80b": "qwen3-next-80b-a3b",
}  # fmt: skip

# Words of an accelerator's name that tell nothing apart, and those that name another card unless the entry has them.
_GPU_NOISE = frozenset({
    "nvidia", "amd", "gpu", "gpus", "tensor", "core", "edition", "server", "workstation", "x", "geforce",
    "tesla", "unified",
})  # fmt: skip
_OTHER_CARD = frozenset({
    "pcie", "nvl", "ti", "super", "laptop", "mobile", "mig", "max",
})  # fmt: skip

# First match wins: what the text says of the weights, as a pattern.
_WEIGHTS = (
    (r"nvfp4|w4a4", "nvfp4"), (r"mxfp4", "mxfp4"), (r"q8[_-]0|\bq8\b", "q8_0"), (r"q6[_-]k", "q6_k"),
    (r"q5[_-]k", "q5_k_m"), (r"q4[_-]0", "q4_0"), (r"q4[_-]k|\bq4\b", "q4_k_m"),
    (r"awq|gptq|w4a16|int4|4[- ]?bit|autoround", "int4"),
    (r"int8|w8a8", "int8"), (r"fp8|e4m3|8[- ]?bit", "fp8"), (r"bf16|bfloat16", "bf16"), (r"fp16|float16|\bf16", "fp16"),
    (r"fp32|float32", "fp32"),
)  # fmt: skip
# Formats in which the maker publishes the model; everything else is published in 16 bit.
_PUBLISHED = (
    (r"gpt-oss", "mxfp4"), (r"kimi-k2\.[56]|kimi-k2-thinking", "int4"),
    (r"deepseek-(r1|v3)(?!.*distill)|kimi-k2|minimax-m2", "fp8"),
)  # fmt: skip
_ENGINES = (
    (r"vllm", "vllm"), (r"sglang", "sglang"), (r"tensorrt|trt[-_ ]?llm", "tensorrt-llm"),
    (r"llama[.\-_ ]?cpp|llama-(server|bench)", "llama.cpp"), (r"ollama", "ollama"), (r"tgi|text-generation", "tgi"),
)  # fmt: skip
_KV = (
    (r"fp8|e4m3|e5m2|int8|q8", "fp8"),
    (r"fp32|float32|f32", "fp32"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|\bf16|auto", "fp16"),
)


@cache
def _model_key(name: str) -> str:
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", name.lower().replace("_", "-")).split("/")[-1]
    parts = [p.strip(".") for part in _MODEL_PARTS.split(text) for p in _dotted(part)]
    kept = [p for p in parts if p and p not in _MODEL_NOISE and not _GGUF_FORMAT.fullmatch(p)]
    return "-".join(kept)


def _dotted(part: str) -> list[str]:
    """A part at its dots where one side is a word ("quantized.w8a8"), whole where it is a version ("qwen2.5")."""
    return [part] if re.search(r"\d\.\d", part) else part.split(".")


def model_of(name: str, catalog: Catalog) -> Model | None:
    """The catalogue's model that has this model's dimensions; None when there is none or the name is ambiguous."""
    key = _model_key(name)
    key = _SAME_DIMENSIONS.get(key, key)
    known = {_model_key(m.id): m for m in catalog.models.values()}
    # An entry of its own comes first: another catalogue may hold both checkpoints.
    return known.get(_model_key(name)) or known.get(key)


@cache
def _gpu_words(name: str) -> frozenset[str]:
    text = re.sub(r"\b\d+\s*x\s*(?=[a-z])|\(see[^)]*\)", " ", name.lower())
    text = re.sub(r"(\d)\s*g(i?)b\b", r"\1gb", text)
    words = (re.sub(r"^sxm\d$", "sxm", w) for w in re.split(r"[^a-z0-9.]+", text))
    return frozenset(w for w in words if w and w not in _GPU_NOISE and not re.fullmatch(r"hbm\d?e?", w))


def gpu_of(name: str, catalog: Catalog) -> Gpu | None:
    """The catalogue's accelerator for a name like "NVIDIA H100 80GB HBM3", "8x H200" or "A100-PCIE-40GB"."""
    asked = _gpu_words(name)
    if "or" in asked:
        return None
    best: tuple[int, Gpu] | None = None
    for gpu in catalog.gpus.values():
        spelled = [_gpu_words(n) for n in (*gpu.aliases, gpu.name, gpu.id)]
        own = frozenset().union(*spelled)
        if (asked & _OTHER_CARD) - own or not all(_same_size(w, gpu) for w in asked):
            continue
        found = max((len(s) for s in spelled if s and s <= asked), default=0)
        if found and (best is None or found > best[0]):
            best = found, gpu
    return best[1] if best else None


def _same_size(word: str, gpu: Gpu) -> bool:
    size = re.fullmatch(r"(\d+)gb", word)
    return not size or gpu.memory_gb is None or abs(int(size[1]) / gpu.memory_gb - 1) < 0.1


def quantization_of(dtype_text: str, model_name: str) -> Quantization | None:
    """The weight format: what the text says, else what the model's name says, else how the maker publishes it.

    "fp4" is MXFP4 for gpt-oss, which is published in it, and NVFP4 for the others. None when the text says a format
    that is not known ("gguf" alone).
    """
    text, name = dtype_text.lower().strip(), model_name.lower().replace("_", "-")
    if text in ("fp4", "w4afp4"):
        return QUANTIZATIONS["mxfp4" if "gpt-oss" in name else "nvfp4"]
    said, named = _first(_WEIGHTS, text), _first(_WEIGHTS, name)
    if text and said is None:
        return None
    if "fp8" in text and "int8" in text:  # both said: the name decides
        said = named or said
    found = said or named or _first(_PUBLISHED, name) or "bf16"
    return QUANTIZATIONS[found]


def kv_dtype_of(dtype_text: str) -> str:
    """The KV cache's format as planner.quantization.KV_BYTES names it; 16 bit, every engine's default, if not said."""
    return _first(_KV, dtype_text.lower()) or "fp16"


def engine_of(text: str) -> str:
    """One name for an engine however it is spelled, without its version; what is not known keeps its first words."""
    found = re.match(r"[a-z][a-z .+_\-]*", text.lower().strip())
    name = found[0].strip(" .-") if found else ""
    return _first(_ENGINES, name) or name or "not stated"


def number_of(text: str) -> float | None:
    """A number as a cell states it, above or equal to 0; None for words, ranges and nothing."""
    plain = text.strip().replace(",", "")
    return float(plain) if re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d{1,2})?", plain) else None


def _first(patterns: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((value for pattern, value in patterns if re.search(pattern, text)), None)
