"""Launches of a case: numbers from its sizing, for a measurement and for daily use, in every form."""

from __future__ import annotations

import pytest
import yaml

from planner.errors import UnknownName
from planner.launch_forms import FORMS
from planner.requirements import Hardware
from services.cases import favourite_sizing
from services.launches import Weights, settings_of, start, startable
from services.plans import draft_plan
from services.scores import case_score, on_candidate
from services.verdicts import case_state
from tests.services.made import CASE


@pytest.fixture
def r(shipped):
    return case_state(shipped, CASE).requirements


def value(form, flag):
    return next(f for f in form.launch.flags if f.flag == flag)


def test_all_five_engines_of_the_case_can_be_started_in_every_form(shipped, r):
    servers = startable(shipped, case_score(shipped, r))
    assert set(servers) == {"vllm", "sglang", "tensorrt_llm", "tgi", "ollama", "llama-server"}
    for name in servers:
        for form in FORMS:
            for purpose in ("benchmark", "production"):
                assert start(shipped, r, name, form, purpose).text


def test_the_measurement_is_started_as_the_plan_says(shipped, r):
    plan = draft_plan(shipped, CASE, r).plan
    for candidate in plan.candidates:
        made = start(shipped, r, candidate.engine, "bare", "benchmark").launch
        assert (made.argv, made.environment) == (candidate.launch.command, candidate.launch.environment)


def test_daily_use_serves_as_many_as_keep_the_promise(shipped, r):
    bench, daily = (start(shipped, r, "vllm", "bare", p) for p in ("benchmark", "production"))
    most = value(daily, "--max-num-seqs")
    assert int(most.value) < int(value(bench, "--max-num-seqs").value)
    assert "keep 20 tok/s per user by the planning value" in most.why
    # 50 users at the peak: as many may wait, the rest is refused
    assert value(daily, "--max-num-queued-reqs").value == "50"
    assert "peak of 50 users" in value(daily, "--max-num-queued-reqs").why


def test_fixed_slots_are_no_more_than_the_peak(shipped, r):
    """llama.cpp b11434 takes slots x context of KV memory at the start: 22 slots for 2 users would be 20 too many."""
    few = r.model_copy(update={"peak_users_min": 1, "peak_users_max": 2,
                               "hardware": (Hardware(gpu="nvidia-h100-80gb-sxm", in_house=True),)})  # fmt: skip
    slots = value(start(shipped, few, "llama-server", "bare", "production"), "-np")
    assert slots.value == "2" and "peak of 2 users" in slots.why
    assert value(start(shipped, few, "llama-server", "bare", "production"), "-c").value == str(2 * 4096)
    # a pool of pages costs nothing where nobody comes: the most that keep the promise
    assert int(value(start(shipped, few, "vllm", "bare", "production"), "--max-num-seqs").value) > 2


def test_what_a_person_states_about_the_weights_is_pinned(shipped, r):
    assert "--revision ad44e777" in start(shipped, r, "vllm", "bare", "production", Weights("ad44e777")).text
    contained = start(shipped, r, "llama-server", "container", "production", Weights(gguf_file="/srv/models/b.gguf"))
    assert "-m /models/b.gguf" in contained.text and "/srv/models:/models:ro" in contained.text


@pytest.mark.parametrize(
    ("plan", "engine", "told"),
    [
        ("C", "vllm", "has to be stored so"),  # int4: AWQ and GPTQ are made beforehand, by no engine at load
        ("C", "tensorrt_llm", "has to be stored so"),
        ("B", "tensorrt_llm", "has to be stored so"),  # FP8: it reads what ModelOpt stored
        ("B", "vllm", ""),  # --quantization fp8_per_tensor converts 16-bit weights
        ("A", "vllm", ""),  # bf16, as its maker stored it
        ("C", "llama-server", ""),  # the GGUF file says it in its name
    ],
)
def test_a_format_that_nothing_makes_at_load_has_to_be_in_the_checkpoint(shipped, r, plan, engine, told):
    """Else Qwen3-32B would be loaded in 16 bit: 65 GB where the sizing counts 18."""
    asked = on_candidate(r, plan, "nvidia-gb10-dgx-spark")
    for form in FORMS:
        made = start(shipped, asked, engine, form, "production")
        assert bool(told) == ("has to be stored so" in made.text)
        assert bool(told) == any("has to be stored so" in w.sentence for w in made.launch.warnings)


def test_another_machine_than_nvidia_is_told_in_the_form(shipped, r):
    amd = r.model_copy(update={"hardware": (Hardware(gpu="amd-mi300x", in_house=True),)})
    assert "amd.com/gpu" in start(shipped, amd, "vllm", "kubernetes", "production").text


def test_memory_is_the_sizings_split_in_each_engines_meaning(shipped, r):
    score = case_score(shipped, r)
    servers = startable(shipped, score)
    sizing = favourite_sizing(shipped, r)
    split = settings_of(score, r, sizing, servers["sglang"], "benchmark")
    share = (split.weights_gib + split.kv_pool_gib) / split.device_total_gib
    shown = float(value(start(shipped, r, "sglang", "bare", "benchmark"), "--mem-fraction-static").value)
    assert share - 0.001 < shown <= share
    config = yaml.safe_load(start(shipped, r, "tensorrt_llm", "systemd", "benchmark").files["tensorrt_llm.yaml"])
    free = split.device_total_gib - split.weights_gib - split.reserve_gib
    assert config["kv_cache_config"]["free_gpu_memory_fraction"] == pytest.approx(split.kv_pool_gib / free, abs=0.001)


def test_an_engine_that_is_not_there_is_named(shipped, r):
    with pytest.raises(UnknownName, match="Did you mean 'vllm'"):
        start(shipped, r, "vlm", "bare", "benchmark")
