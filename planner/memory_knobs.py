"""What each engine's memory knob means: the same KV budget as every engine's own flag, and a flag's KV budget.

Meanings from catalog/engines/*.yaml (parameters.gpu_memory_fraction and max_context_length). Equal fractions are not
equal memory: 0.9 leaves three different KV caches (vllm#21348: 178,880 tokens at vLLM's default, 367,404 at 0.93 on
SGLang).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pydantic import Field

from planner.errors import InputError, UnknownName
from planner.frozen import Frozen

FRACTION_DIGITS = 3


class DeviceLoad(Frozen):
    """One device in bytes: what the driver reports, weights, and what the engine needs besides (activations, graphs).

    `others` is what other programs on the device hold. `kv_bytes_per_token` and `slots` are for engines that are told
    tokens instead of memory: each of `slots` requests gets the same context.
    """

    total: float = Field(gt=0)
    weights: float = Field(ge=0)
    reserve: float = Field(ge=0)
    others: float = Field(default=0.0, ge=0)
    kv_bytes_per_token: float = Field(default=0.0, ge=0)
    slots: int = Field(default=1, ge=1)

    @property
    def free(self) -> float:
        """What is left for a KV cache."""
        return self.total - self.others - self.weights - self.reserve


class Knob(NamedTuple):
    """One engine's knob: meaning in words, the value that a KV budget needs, and the KV that a value gives, in bytes.

    `fraction` knobs lie in (0, 1]; the others are tokens.
    """

    meaning: str
    value: Callable[[DeviceLoad, float], float]
    kv: Callable[[DeviceLoad, float], float]
    fraction: bool = True

    @property
    def role(self) -> str:
        """The parameter of the engine's entry in the catalogue that names its flag."""
        return "gpu_memory_fraction" if self.fraction else "max_context_length"


def _tokens(load: DeviceLoad, kv: float) -> float:
    return kv / _per_token(load)


def _per_token(load: DeviceLoad) -> float:
    if not load.kv_bytes_per_token:
        raise InputError("KV bytes per token are needed to turn memory into tokens.", where="memory knob")
    return load.kv_bytes_per_token


KNOBS: dict[str, Knob] = {
    "vllm": Knob(
        "fraction of the device's total; weights, KV cache, activations and graphs are inside",
        lambda d, kv: (d.weights + d.reserve + kv) / d.total,
        lambda d, f: f * d.total - d.weights - d.reserve,
    ),
    "sglang": Knob(
        "fraction of the device's total for weights and KV pool; activations and graphs live in the rest",
        lambda d, kv: (d.weights + kv) / d.total,
        lambda d, f: f * d.total - d.weights,
    ),
    "tensorrt_llm": Knob(
        "fraction of what is free after weights and activations",
        lambda d, kv: kv / d.free if d.free > 0 else math.inf,
        lambda d, f: f * d.free,
    ),
    "tgi": Knob(
        "fraction of the device's total that the process may allocate; warm-up gives what is left to the KV cache",
        lambda d, kv: (d.weights + d.reserve + kv) / d.total,
        lambda d, f: f * d.total - d.weights - d.reserve,
    ),
    "llama-server": Knob(
        "tokens of all slots together; memory follows from them",
        _tokens,
        lambda d, n: n * _per_token(d),
        fraction=False,
    ),
    "ollama": Knob(
        "tokens of one slot; slots times that are kept",
        lambda d, kv: _tokens(d, kv) / d.slots,
        lambda d, n: n * d.slots * _per_token(d),
        fraction=False,
    ),
}


def _knob(engine: str) -> Knob:
    if engine not in KNOBS:
        raise UnknownName.from_known("engine with a memory knob", engine, KNOBS)
    return KNOBS[engine]


def flag_value(engine: str, load: DeviceLoad, kv_bytes: float) -> float:
    """The value of the engine's knob that gives it `kv_bytes` of KV cache, rounded down as the flag is written.

    A fraction has three digits, tokens are whole. Raises UnknownName; InputError for a budget that is negative or
    that no value up to 1 gives.
    """
    if kv_bytes < 0:
        raise InputError("the KV budget is negative.", where=engine, fix="Free memory first: see the memory split.")
    knob = _knob(engine)
    value = knob.value(load, kv_bytes)
    if not knob.fraction:
        return math.floor(value + 1e-9)
    if value > 1 + 1e-9:
        raise InputError(
            f"no fraction gives that KV cache: {value:.2f} of the device would be needed.",
            where=engine,
            fix="Ask for less KV cache, a smaller weight format or more devices.",
        )
    scale = 10.0**FRACTION_DIGITS
    return math.floor(min(value, 1.0) * scale + 1e-6) / scale


def kv_budget(engine: str, load: DeviceLoad, value: float) -> float:
    """Bytes of KV cache that the engine has with this value of its knob; 0 where the weights leave nothing.

    Raises UnknownName; InputError for a fraction outside (0, 1] or a negative number of tokens.
    """
    knob = _knob(engine)
    if knob.fraction and not 0 < value <= 1:
        percent = f" {value:g} % is {value / 100:g}." if 1 < value <= 100 else ""
        raise InputError(f"a fraction of {value:g} is outside 0 to 1.", where=engine, fix=f"State a fraction.{percent}")
    if value < 0:
        raise InputError(f"{value:g} tokens are negative.", where=engine, fix="State 0 or more.")
    return max(0.0, knob.kv(load, value))
