"""What each server is started with: roles of the catalogue's parameters, values from the settings, and the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from planner.launch_settings import Flag, LaunchSettings
from planner.memory_knobs import KNOBS, DeviceLoad, flag_value
from planner.server_schema import Server

Value = Callable[[LaunchSettings], str | None]


class Step(NamedTuple):
    """One role of a recipe: its value from the settings (None leaves it out, "" is a switch) and the reason.

    `why` is a field of WHY, a sentence, or a function that makes one. `off` takes the flag that switches the role off.
    """

    role: str
    value: Value
    why: str | Callable[[LaunchSettings], str]
    off: bool = False


class Recipe(NamedTuple):
    """What one server is started with, and variables that only a measurement needs."""

    steps: tuple[Step, ...]
    benchmark_environment: tuple[Flag, ...] = ()


# The nearest KV type of each server for the precision that sizing counts with; None leaves the default.
KV_TYPES: dict[str, dict[str, str | None]] = {
    "vllm": {"fp16": "auto", "bf16": "auto", "fp8": "fp8", "fp32": "auto"},
    "sglang": {"fp16": "auto", "bf16": "auto", "fp8": "fp8_e4m3", "fp32": "auto"},
    "tensorrt_llm": {"fp16": "auto", "bf16": "auto", "fp8": "fp8", "fp32": "auto"},
    "tgi": {"fp16": None, "bf16": None, "fp8": "fp8_e4m3fn", "fp32": None},
    "llama-server": {"fp16": "f16", "bf16": "bf16", "fp8": "q8_0", "fp32": "f32"},
    "ollama": {"fp16": "f16", "bf16": "f16", "fp8": "q8_0", "fp32": "f16"},
}


def _kv(server: str) -> Value:
    return lambda s: KV_TYPES[server][s.kv_cache_dtype]


def _number(field: str) -> Value:
    def value(s: LaunchSettings) -> str | None:
        found = getattr(s, field)
        return None if found in (None, "") else str(found)

    return value


def _if(condition: Callable[[LaunchSettings], bool], value: str = "") -> Value:
    return lambda s: value if condition(s) else None


def _always(value: str = "") -> Value:
    return lambda s: value


def _cache_on(s: LaunchSettings) -> bool:
    return s.prefix_caching


def _cache_off(s: LaunchSettings) -> bool:
    return not s.prefix_caching


def _yes_or_no(s: LaunchSettings) -> str:
    return "true" if s.prefix_caching else "false"


def _cache_why(s: LaunchSettings) -> str:
    if s.purpose == "production" and s.prefix_caching:
        return "a prompt that begins like an earlier one is not computed again"
    return s.why("prefix_caching")


def _all_slots(s: LaunchSettings) -> str:
    return str(s.max_num_seqs * s.max_model_len)


def _longest_prompt(s: LaunchSettings) -> str:
    return str(s.max_model_len - 1)


def _step_tokens(s: LaunchSettings) -> str:
    """vLLM refuses a step that has not a token for every request (vllm/config/scheduler.py)."""
    return str(max(s.step_tokens, s.max_num_seqs))


def _step_why(s: LaunchSettings) -> str:
    more = "; at least one for each request in it" if s.max_num_seqs > s.step_tokens else ""
    return f"{s.why('step_tokens')}{more}"


def _whole_prompts(s: LaunchSettings) -> str:
    return str(max(s.step_tokens, s.max_model_len))


def _with_queue(s: LaunchSettings) -> str | None:
    return str(s.max_num_seqs + s.queue_limit) if s.queue_limit else None


def _benchmark(value: Value) -> Value:
    return lambda s: value(s) if s.purpose == "benchmark" else None


def _production(value: Value) -> Value:
    return lambda s: value(s) if s.purpose == "production" else None


def _load(engine: str, s: LaunchSettings) -> tuple[DeviceLoad, float] | None:
    """The memory split in GiB as the knob takes it, and the KV cache; None unless the split is stated."""
    reserve_gib = 0.0 if engine == "sglang" else s.reserve_gib
    if s.weights_gib is None or s.kv_pool_gib is None or s.device_total_gib is None or reserve_gib is None:
        return None
    return DeviceLoad(total=s.device_total_gib, weights=s.weights_gib, reserve=reserve_gib), s.kv_pool_gib


def memory_fraction(engine: str) -> Value:
    """The engine's own fraction for the sizing's memory split; None unless the split is stated."""

    def value(s: LaunchSettings) -> str | None:
        found = _load(engine, s)
        return f"{flag_value(engine, *found):.3f}" if found else None

    return value


def _vllm_fraction(s: LaunchSettings) -> str | None:
    return memory_fraction("vllm")(s) or _number("gpu_memory_utilization")(s)


def _memory_why(engine: str) -> Callable[[LaunchSettings], str]:
    """What the fraction is made of, in GiB on one device, and what the engine means by it."""

    def why(s: LaunchSettings) -> str:
        found = _load(engine, s)
        if not found:
            return s.why("gpu_memory_utilization")
        load, kv = found
        reserve = f", reserve {load.reserve:.1f}" if load.reserve else ""
        return (f"KV cache {kv:.1f} GiB, weights {load.weights:.1f}{reserve} of {load.total:.1f} GiB (sizing). "
                f"It means: {KNOBS[engine].meaning}")  # fmt: skip

    return why


static_fraction = memory_fraction("sglang")


def _address(s: LaunchSettings) -> str:
    return f"{s.host}:{s.port}"


_ADDRESS = (Step("host", _number("host"), "host"), Step("port", _number("port"), "port"))
_NAME = Step("served_model_name", _number("served_name"), "served_name")
_REVISION = Step("revision", _number("revision"), "revision")
_LENGTH = Step("max_context_length", _number("max_model_len"), "max_model_len")
_BATCH = Step("max_concurrent_sequences", _number("max_num_seqs"), "max_num_seqs")
_STEP_TOKENS = Step("chunked_prefill_size", _step_tokens, _step_why)
_QUEUE = Step("queue_limit", _production(_number("queue_limit")), "queue_limit")
_CONVERT = Step("quantization", _number("quantization"), "quantization")
_SEED = Step("seed", _benchmark(_number("seed")), "runs can be repeated")
_DEVICES = Step(
    "tensor_parallel", lambda s: str(s.tensor_parallel) if s.tensor_parallel > 1 else None, "tensor_parallel"
)
_CACHE_ON = Step("prefix_caching", _if(_cache_on), _cache_why)
_CACHE_OFF = Step("prefix_caching", _if(_cache_off), "prefix_caching", off=True)
_REPORT = Step("cached_tokens_report", _always(), "cached tokens are reported with each answer")
_NEUTRAL = "the model's file must not change the sampling"
# Beyond every load point of a plan: the other engines queue without limit.
_NO_REFUSALS = "4096"

RECIPES: dict[str, Recipe] = {
    "vllm": Recipe(
        steps=(
            *_ADDRESS, _NAME, _REVISION, _LENGTH, _BATCH, _QUEUE, _STEP_TOKENS,
            Step("gpu_memory_fraction", _vllm_fraction, _memory_why("vllm")),
            Step("kv_cache_dtype", _kv("vllm"), "kv_cache_dtype"),
            _CONVERT, _DEVICES, _CACHE_ON, _CACHE_OFF,
            Step("generation_config_override", _benchmark(_always("vllm")), _NEUTRAL),
            _SEED, _REPORT,
        ),
        benchmark_environment=(
            Flag(flag="VLLM_SERVER_DEV_MODE", value="1", why="the prefix cache can be reset between runs"),
        ),
    ),
    "sglang": Recipe(
        steps=(
            *_ADDRESS, _NAME, _REVISION, _LENGTH, _BATCH, _QUEUE, _STEP_TOKENS,
            Step("mix_prefill_decode", _always(), "a long prompt must not pause running answers, as in the others"),
            Step("gpu_memory_fraction", static_fraction, _memory_why("sglang")),
            Step("kv_cache_dtype", _kv("sglang"), "kv_cache_dtype"),
            _CONVERT, _DEVICES, _CACHE_OFF,
            Step("generation_config_override", _benchmark(_always("openai")), _NEUTRAL),
            _SEED,
            Step("metrics_enable", _always(), "the metrics page is off by default"),
            _REPORT,
        ),
    ),
    "tensorrt_llm": Recipe(
        steps=(
            *_ADDRESS, _LENGTH, _BATCH, _STEP_TOKENS, _DEVICES,
            Step("gpu_memory_fraction", memory_fraction("tensorrt_llm"), _memory_why("tensorrt_llm")),
            Step("kv_cache_dtype", _kv("tensorrt_llm"), "kv_cache_dtype"),
            Step("prefix_caching", _yes_or_no, _cache_why),
            Step("mix_prefill_decode", _always("true"), "a long prompt is cut and must not take a whole step"),
            Step("metrics_enable", _always("true"), "the metrics page answers 404 without it"),
        ),
    ),
    "tgi": Recipe(
        steps=(
            *_ADDRESS, _REVISION, _LENGTH,
            Step("max_input", _longest_prompt, "one token less than a whole request, else longer prompts are refused"),
            _BATCH,
            Step("queue_limit", _benchmark(_always(_NO_REFUSALS)), "no load point is refused, as the others queue"),
            Step("queue_limit", _production(_with_queue), "requests in one step and those that may wait"),
            Step("chunked_prefill_size", _whole_prompts, "at least the longest prompt, or it does not start"),
            Step("gpu_memory_fraction", memory_fraction("tgi"), _memory_why("tgi")),
            Step("kv_cache_dtype", _kv("tgi"), "kv_cache_dtype"),
            _CONVERT, _DEVICES,
            Step("prefix_caching", _yes_or_no, _cache_why),
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
            _LENGTH, _BATCH, _QUEUE,
            Step("queue_limit", _benchmark(_always(_NO_REFUSALS)), "no load point is refused, as the others queue"),
            Step("kv_cache_dtype", _kv("ollama"), "kv_cache_dtype"),
            Step("flash_attention", _if(lambda s: s.kv_cache_dtype == "fp8", "1"), "a narrower KV cache needs it"),
            Step("keep_loaded", _always("-1"), "no cold start inside a run"),
            Step("models_loaded", _always("1"), "nothing else takes memory"),
        ),
    ),
}  # fmt: skip
# What an engine without a recipe of its own is started with: all that can be said without knowing it, as far as its
# file names a flag. KV type and memory mean something else in each engine, so they keep their defaults.
_GENERAL = (
    *_ADDRESS, _NAME, _REVISION, _LENGTH, _BATCH, _QUEUE, _STEP_TOKENS, _DEVICES, _CACHE_ON, _CACHE_OFF, _SEED, _REPORT,
)  # fmt: skip


def recipe_of(server: Server) -> Recipe:
    """The recipe of a server, or the general one for an engine that was added by its file alone."""
    return RECIPES.get(server.id) or Recipe(tuple(step for step in _GENERAL if _named(server, step)))


def _named(server: Server, step: Step) -> bool:
    found = server.parameters.get(step.role)
    return found is not None and (found.switch_off if step.off else found.flag) != ""
