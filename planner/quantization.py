"""Weight formats: bits per stored weight with scales counted, what stays wide, what the matrix units compute in."""

from __future__ import annotations

from typing import Literal

from planner.errors import InputError, UnknownName
from planner.frozen import Frozen

ModuleName = Literal["embedding", "lm_head", "attention", "mlp", "router", "experts"]
ALL: frozenset[ModuleName] = frozenset({"embedding", "lm_head", "attention", "mlp", "router", "experts"})
LINEAR: frozenset[ModuleName] = frozenset({"attention", "mlp", "experts"})
EXPERTS: frozenset[ModuleName] = frozenset({"experts"})
MLP: frozenset[ModuleName] = frozenset({"mlp", "experts"})
WIDE_BITS = 16.0


class Quantization(Frozen):
    """One format. `bits` hold for `narrow` modules, scales and zero points included; the others keep `wide_bits`.

    `linear_attention_bits` hold for gated-delta-net and Mamba layers where publishers treat them differently.
    `native_from` is the first CUDA compute capability whose matrix units compute in it; below, weights are widened.
    `runs_from` is the first on which it runs at all, `cuda_only` that there are no kernels for other makers' devices,
    `instead` what to take there.
    """

    id: str
    bits: float
    narrow: frozenset[ModuleName]
    computes_in: Literal["bf16", "fp8", "int8", "fp4"] = "bf16"
    wide_bits: float = WIDE_BITS
    linear_attention_bits: float | None = None
    native_from: float | None = None
    runs_from: float | None = None
    cuda_only: bool = False
    instead: str = ""
    basis: str

    def bits_of(self, module: ModuleName) -> float:
        """Bits per weight of one module."""
        return self.bits if module in self.narrow else self.wide_bits

    @property
    def bits_of_linear_attention(self) -> float:
        """Bits per weight of a layer with a fixed state instead of a KV cache."""
        return self.bits_of("attention") if self.linear_attention_bits is None else self.linear_attention_bits


_GGUF = "ggml-org/llama.cpp tools/quantize: bits per weight of the whole file, Llama-3.1-8B"
_ROWS = (
    Quantization(id="bf16", bits=16, narrow=frozenset(), runs_from=8.0, instead="fp16", basis="two bytes per weight"),
    Quantization(id="fp16", bits=16, narrow=frozenset(), basis="two bytes per weight"),
    Quantization(id="fp32", bits=32, narrow=ALL, basis="four bytes per weight"),
    Quantization(id="fp8", bits=8, narrow=LINEAR, computes_in="fp8", native_from=8.9, runs_from=7.5, instead="q8_0",
                 basis="one byte per weight; embeddings, output projection and router stay 16 bit"),
    Quantization(id="fp8_mlp", bits=8, narrow=MLP, computes_in="fp8", native_from=8.9, runs_from=7.5, instead="q8_0",
                 basis="one byte per weight of the feed-forward layers, the rest 16 bit (Meta's FBGEMM FP8 files)"),
    Quantization(id="int8", bits=8, narrow=LINEAR, computes_in="int8", native_from=7.5, runs_from=7.5, instead="q8_0",
                 basis="one byte per weight; embeddings, output projection and router stay 16 bit"),
    Quantization(id="int4", bits=4 + 20 / 128, narrow=LINEAR, linear_attention_bits=16, runs_from=7.5, instead="q4_k_m",
                 basis="4 bit, per group of 128 a 16-bit scale and a 4-bit zero point (AWQ, GPTQ)"),
    Quantization(id="nvfp4", bits=4.5, narrow=LINEAR, computes_in="fp4", native_from=10.0, runs_from=7.5,
                 linear_attention_bits=8, cuda_only=True, instead="int4",
                 basis="4 bit and an 8-bit scale per 16 weights; linear-attention layers in FP8"),
    Quantization(id="mxfp4", bits=4.25, narrow=EXPERTS, runs_from=8.0, instead="q4_k_m",
                 basis="experts in 4 bit with an 8-bit scale per 32 weights"),
    Quantization(id="q8_0", bits=8.5, narrow=ALL, basis="8 bit and a 16-bit scale per 32 weights (GGUF)"),
    Quantization(id="q6_k", bits=6.56, narrow=ALL, basis=_GGUF),
    Quantization(id="q5_k_m", bits=5.70, narrow=ALL, basis=_GGUF),
    Quantization(id="q4_k_m", bits=4.89, narrow=ALL, basis=_GGUF),
    Quantization(id="q4_0", bits=4.66, narrow=ALL, basis=_GGUF),
)  # fmt: skip
QUANTIZATIONS: dict[str, Quantization] = {q.id: q for q in _ROWS}
_ALIASES = {
    "none": "bf16", "bfloat16": "bf16", "float16": "fp16", "f16": "fp16", "float32": "fp32", "fp8_e4m3": "fp8",
    "w8a8": "int8", "awq": "int4", "gptq": "int4", "w4a16": "int4", "q8": "q8_0",
}  # fmt: skip

KV_BYTES: dict[str, int] = {"fp16": 2, "bf16": 2, "fp8": 1, "fp32": 4}


def quantization(name: str) -> Quantization:
    """The format with this name or a usual synonym, whatever the capitals. Raises UnknownName."""
    key = name.strip().lower().replace("-", "_")
    key = _ALIASES.get(key, key)
    if key not in QUANTIZATIONS:
        raise UnknownName.from_known("quantization", name, (*QUANTIZATIONS, *_ALIASES), where="model plan")
    return QUANTIZATIONS[key]


def check_runs(quant: Quantization, compute_capability: str | None, device: str) -> None:
    """Raise InputError, with what to take instead, where no kernel runs the format on the device.

    From get_min_capability() of the vLLM 0.33.0 wheel; 16-bit floats with 8 exponent bits need 8.0. An unknown
    capability passes.
    """
    own = _cuda(compute_capability)
    if own is None:
        lacking = "has no kernels for it" if quant.cuda_only and compute_capability else ""
    else:
        low = quant.runs_from is not None and own < quant.runs_from
        lacking = f"has compute capability {own}, it needs {quant.runs_from}" if low else ""
    if lacking:
        raise InputError(
            f"{quant.id} does not run on this device: it {lacking}.",
            where=device,
            fix=f"Take {quant.instead} or a newer device." if quant.instead else "Take a newer device.",
        )


def _cuda(compute_capability: str | None) -> float | None:
    """The CUDA compute capability as a number; None where it is unknown or another maker's."""
    try:
        return float(compute_capability or "")
    except ValueError:
        return None


def runs_natively(quant: Quantization, compute_capability: str | None) -> bool:
    """Whether the matrix units compute in the format; True where the capability is unknown or not CUDA's."""
    own = _cuda(compute_capability)
    return own is None or quant.native_from is None or own >= quant.native_from
