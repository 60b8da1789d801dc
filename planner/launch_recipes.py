"""What each server is started with: roles of the catalogue's parameters, values from the settings, and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from pydantic import Field

from planner.frozen import Frozen
from planner.memory_knobs import DeviceLoad, flag_value

WHY: dict[str, str] = {
    "host": "reachable from this machine only",
    "port": "where the client sends",
    "served_name": "the name that requests use, the same for every engine",
    "max_model_len": "tokens of one request, input plus output",
    "max_num_seqs": "largest number of requests in one step",
    "step_tokens": "tokens in one step, stated because the default depends on the GPU",
    "gpu_memory_utilization": "share of the memory budget",
    "kv_cache_dtype": "precision of the KV cache in the sizing",
    "quantization": "converts the weights at load",
    "tensor_parallel": "devices that share the model",
    "prefix_caching": "stated, so that every candidate has the same",
}


class LaunchSettings(Frozen):
    """What sizing decided for one candidate; `because` says per field which number it came from.

    `model` is a repository or path, for llama-server the GGUF file. The memory split (GiB on one device) is needed by
    engines whose fraction is not the one of vLLM.
    """

    model: str = Field(min_length=1)
    max_model_len: int = Field(ge=16)
    max_num_seqs: int = Field(ge=1)
    served_name: str = ""
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    kv_cache_dtype: Literal["fp16", "bf16", "fp8", "fp32"] = "fp16"
    quantization: str | None = None
    tensor_parallel: int = Field(default=1, ge=1)
    prefix_caching: bool = True
    step_tokens: int = Field(default=2048, ge=64)
    seed: int = Field(default=0, ge=0)
    host: str = "127.0.0.1"
    port: int | None = Field(default=None, ge=1, le=65_535)
    weights_gib: float | None = Field(default=None, gt=0)
    kv_pool_gib: float | None = Field(default=None, gt=0)
    reserve_gib: float | None = Field(default=None, ge=0)
    device_total_gib: float | None = Field(default=None, gt=0)
    because: dict[str, str] = {}

    def why(self, field: str) -> str:
        """The sentence for a field: the caller's, else the general one."""
        return self.because.get(field) or WHY[field]


class Flag(Frozen):
    """One argument (empty value: a switch) or environment variable, and why it has this value."""

    flag: str
    value: str
    why: str


class Step(NamedTuple):
    """One role of a recipe: its value from the settings (None leaves it out, "" is a switch) and the reason.

    `why` is a field of WHY, or a sentence. `off` takes the flag that switches the role off.
    """

    role: str
    value: Callable[[LaunchSettings], str | None]
    why: str
    off: bool = False


class Recipe(NamedTuple):
    """What one server is started with; environment variables are roles too."""

    steps: tuple[Step, ...]
    environment: tuple[Flag, ...] = ()


# The nearest KV type of each server for the precision that sizing counts with; None leaves the default.
KV_TYPES: dict[str, dict[str, str | None]] = {
    "vllm": {"fp16": "auto", "bf16": "auto", "fp8": "fp8", "fp32": "auto"},
    "sglang": {"fp16": "auto", "bf16": "auto", "fp8": "fp8_e4m3", "fp32": "auto"},
    "tgi": {"fp16": None, "bf16": None, "fp8": "fp8_e4m3fn", "fp32": None},
    "llama-server": {"fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "fp32": "f32"},
    "ollama": {"fp16": "f16", "bf16": "f16", "fp8": "q8_0", "fp32": "f16"},
}


def _kv(server: str) -> Callable[[LaunchSettings], str | None]:
    return lambda s: KV_TYPES[server][s.kv_cache_dtype]


def _number(field: str) -> Callable[[LaunchSettings], str | None]:
    def value(s: LaunchSettings) -> str | None:
        found = getattr(s, field)
        return None if found in (None, "") else str(found)

    return value


def _if(condition: Callable[[LaunchSettings], bool], value: str = "") -> Callable[[LaunchSettings], str | None]:
    return lambda s: value if condition(s) else None


def _always(value: str = "") -> Callable[[LaunchSettings], str | None]:
    return lambda s: value


def _cache_on(s: LaunchSettings) -> bool:
    return s.prefix_caching


def _cache_off(s: LaunchSettings) -> bool:
    return not s.prefix_caching


def _all_slots(s: LaunchSettings) -> str:
    return str(s.max_num_seqs * s.max_model_len)


def memory_fraction(engine: str) -> Callable[[LaunchSettings], str | None]:
    """The engine's own fraction for the sizing's memory split; None unless the split is stated."""

    def value(s: LaunchSettings) -> str | None:
        reserve_gib = 0.0 if engine == "sglang" else s.reserve_gib
        if s.weights_gib is None or s.kv_pool_gib is None or s.device_total_gib is None or reserve_gib is None:
            return None
        load = DeviceLoad(total=s.device_total_gib, weights=s.weights_gib, reserve=reserve_gib)
        return f"{flag_value(engine, load, s.kv_pool_gib):.3f}"

    return value


static_fraction = memory_fraction("sglang")


def _address(s: LaunchSettings) -> str:
    return f"{s.host}:{s.port}"


_ADDRESS = (Step("host", _number("host"), "host"), Step("port", _number("port"), "port"))
_NAME = Step("served_model_name", _number("served_name"), "served_name")
_LENGTH = Step("max_context_length", _number("max_model_len"), "max_model_len")
_BATCH = Step("max_concurrent_sequences", _number("max_num_seqs"), "max_num_seqs")
_STEP_TOKENS = Step("chunked_prefill_size", _number("step_tokens"), "step_tokens")
_CONVERT = Step("quantization", _number("quantization"), "quantization")
_SEED = Step("seed", _number("seed"), "runs can be repeated")
_DEVICES = Step(
    "tensor_parallel", lambda s: str(s.tensor_parallel) if s.tensor_parallel > 1 else None, "tensor_parallel"
)
_CACHE_ON = Step("prefix_caching", _if(_cache_on), "prefix_caching")
_CACHE_OFF = Step("prefix_caching", _if(_cache_off), "prefix_caching", off=True)
_REPORT = Step("cached_tokens_report", _always(), "cached tokens are reported with each answer")

RECIPES: dict[str, Recipe] = {
    "vllm": Recipe(
        steps=(
            *_ADDRESS, _NAME, _LENGTH, _BATCH, _STEP_TOKENS,
            Step("gpu_memory_fraction", _number("gpu_memory_utilization"), "gpu_memory_utilization"),
            Step("kv_cache_dtype", _kv("vllm"), "kv_cache_dtype"),
            _CONVERT, _DEVICES, _CACHE_ON, _CACHE_OFF,
            Step("generation_config_override", _always("vllm"), "the model's file must not change the sampling"),
            _SEED, _REPORT,
        ),
        environment=(Flag(flag="VLLM_SERVER_DEV_MODE", value="1", why="the prefix cache can be reset between runs"),),
    ),
    "sglang": Recipe(
        steps=(
            *_ADDRESS, _NAME, _LENGTH, _BATCH, _STEP_TOKENS,
            Step("mix_prefill_decode", _always(), "a long prompt must not pause running answers, as in the others"),
            Step("gpu_memory_fraction", static_fraction, "weights and KV pool over the device total"),
            Step("kv_cache_dtype", _kv("sglang"), "kv_cache_dtype"),
            _CONVERT, _DEVICES, _CACHE_OFF,
            Step("generation_config_override", _always("openai"), "the model's file must not change the sampling"),
            _SEED,
            Step("metrics_enable", _always(), "the metrics page is off by default"),
            _REPORT,
        ),
    ),
    "tgi": Recipe(
        steps=(
            *_ADDRESS, _LENGTH, _BATCH, _STEP_TOKENS,
            Step("gpu_memory_fraction", memory_fraction("tgi"), "weights, KV pool and reserve over the device total"),
            Step("kv_cache_dtype", _kv("tgi"), "kv_cache_dtype"),
            _CONVERT, _DEVICES,
            Step("prefix_caching", lambda s: "true" if s.prefix_caching else "false", "prefix_caching"),
        ),
    ),
    "llama-server": Recipe(
        steps=(
            *_ADDRESS, _NAME, _BATCH,
            Step("max_context_length", _all_slots, "KV for all slots: slots times tokens of one request"),
            _STEP_TOKENS,
            Step("kv_cache_dtype", _kv("llama-server"), "kv_cache_dtype"),
            _CACHE_ON, _CACHE_OFF,
            Step("host_prompt_cache", _if(_cache_off, "0"), "no second prompt cache in host memory"),
            _SEED,
            Step("metrics_enable", _always(), "the metrics page is off by default"),
        ),
    ),
    "ollama": Recipe(
        steps=(
            Step("host", _address, "host"),
            _LENGTH, _BATCH,
            Step("kv_cache_dtype", _kv("ollama"), "kv_cache_dtype"),
            Step("flash_attention", _if(lambda s: s.kv_cache_dtype == "fp8", "1"), "a narrower KV cache needs it"),
            Step("keep_loaded", _always("-1"), "no cold start inside a run"),
            Step("models_loaded", _always("1"), "nothing else takes memory"),
        ),
    ),
}  # fmt: skip
