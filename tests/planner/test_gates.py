"""What stops an engine before any score, and what stays open until a server was started."""

from __future__ import annotations

import pytest

from planner.requirements import ModelPlan
from planner.scoring import score
from tests.planner.test_scoring import ENGINES, GB10, NORTIA, gate, nortia


def test_an_engine_that_reads_only_gguf_takes_the_nearest_form_and_declares_it() -> None:
    form = nortia().of("ollama").form
    assert form is not None
    assert (form.weight_format, form.quantization) == ("gguf", "q8_0")
    assert form.declared == ("weight_format", "quantization")


@pytest.mark.parametrize(
    ("engine", "quantization", "cc", "state"),
    [
        ("vllm", "fp8", "9.0", "pass"),
        ("vllm", "fp8", "8.0", "pass"),  # weights only through Marlin
        ("sglang", "fp8", "8.0", "fail"),  # sglang#7715: FP8 checkpoints fail on Ampere
        ("vllm", "fp8", "7.0", "fail"),  # no code below 7.5 in the wheel
        ("tensorrt_llm", "nvfp4", "9.0", "fail"),  # FP4 from Blackwell on
        ("tensorrt_llm", "awq", "12.0", "fail"),  # no AWQ or GPTQ on 12.0
        ("vllm", "fp8", None, "unknown"),
        ("vllm", "q4_k_m", "9.0", "fail"),  # GGUF left the core at 0.24
        ("tensorrt_llm", "awq", "8.6", "pass"),  # its table gives Ampere W4A16 AWQ; A10, A40 and RTX 30 are Ampere
        ("tensorrt_llm", "fp8", "8.6", "fail"),  # and no FP8 weights
        ("ollama", "fp8", "gfx942", "pass"),  # docs/gpu.mdx@06da0199: "gfx942 | Radeon Instinct MI300X/MI300A"
        ("tensorrt_llm", "bf16", "x86-64", "fail"),  # it documents NVIDIA GPUs only
        ("vllm", "bf16", "x86-64", "unknown"),  # x86 CPUs are documented, without a table of formats
        ("ollama", "bf16", "x86-64", "pass"),  # llama-server b11434 was started on two cores
    ],
)
def test_precision_gate(engine: str, quantization: str, cc: str | None, state: str) -> None:
    weight_format = "gguf" if quantization.startswith("q4") else "safetensors"
    plan = ModelPlan.model_validate(
        {"id": "X", "label": "x", "model": "m", "quantization": quantization, "weight_format": weight_format}
    )
    found = gate(engine, "gpu and precision", plan=plan, cc=cc)
    assert found.state == state
    assert found.sources
    assert bool(found.hypothesis) == (state == "unknown")


@pytest.mark.parametrize(
    ("engine", "cc", "near"),
    [
        ("sglang", "8.6", "8.0"),  # 8.9 is nearer in name, but code for a higher minor version does not run on a lower
        ("sglang", "12.1", "12.0"),
        ("tgi", "8.9", "8.6"),
    ],
)
def test_what_is_near_an_unproven_gpu_is_the_next_lower_version(engine: str, cc: str, near: str) -> None:
    # CUDA C++ Programming Guide, binary compatibility: a cubin for X.y runs on X.z only where z >= y.
    plan = ModelPlan.model_validate({"id": "X", "label": "x", "model": "m", "quantization": "bf16"})
    assert f"(has {near} of the same major version)" in gate(engine, "gpu and precision", plan=plan, cc=cc).reason


def test_a_gate_that_fails_says_what_is_known_of_the_format_below_its_minimum() -> None:
    # sglang 0.5.23, fp8_utils.can_auto_enable_marlin_fp8: 80 <= sm < 89 for linear layers; sglang#38291: experts fail.
    reason = gate("sglang", "gpu and precision", cc="8.0").reason
    assert "needs compute capability 8.9, this GPU has 8.0 (on Ampere experts fail" in reason
    assert "weights only through Marlin" in reason


def test_hardware_that_an_engine_does_not_document_is_named_with_what_it_does() -> None:
    reason = gate("tensorrt_llm", "gpu and precision", cc="gfx942").reason
    assert reason.startswith("AMD hardware is not documented, only B200, ")


def test_windows_leaves_ollama() -> None:
    passing = {e for e in ENGINES if gate(e, "operating system", os="windows").state == "pass"}
    assert passing == {"ollama"}


def test_an_air_gap_is_open_where_nothing_was_read() -> None:
    scored = nortia(air_gap=True)
    opened = {o.engine for o in scored.first_hypotheses if o.gate.gate == "air gap"}
    assert opened == {"sglang", "tensorrt_llm", "ollama"}  # vLLM was tried offline; TGI does not rank


def test_a_licence_that_is_not_allowed_stops_everything() -> None:
    scored = score(NORTIA, ENGINES, compute_capability=GB10, licences=("MIT",))
    assert [c.engine for c in scored.ranking] == ["ollama"]
    nobody = score(NORTIA, ENGINES, compute_capability=GB10, licences=())
    assert nobody.favourite is None
    assert nobody.sentence.startswith("No engine passes")
