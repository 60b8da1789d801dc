"""Start commands of the Nortia case, written out by hand, and what they warn about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.engine_facts import server
from planner.engine_files import load_engines
from planner.errors import InputError
from planner.launch import fairness, launch
from planner.launch_recipes import RECIPES
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

ENGINES = load_engines(Path(__file__).parents[2] / "catalog" / "engines")

# Nortia: 4,096 tokens per request, plan B in FP8, FP16 KV; stage A sweeps up to 32 in flight.
NORTIA = LaunchSettings(
    model="Qwen/Qwen3-30B-A3B-FP8", served_name="plan-b", max_model_len=4096, max_num_seqs=32,
    gpu_memory_utilization=0.85, prefix_caching=True, step_tokens=2048,
    because={"max_model_len": "4,096 tokens: input plus output of the requirements"},
)  # fmt: skip


def _server(name: str) -> Server:
    return server(ENGINES, name)


def test_vllm_for_nortia() -> None:
    plan = launch(_server("vllm"), NORTIA)
    assert plan.command_line == (
        "VLLM_SERVER_DEV_MODE=1 VLLM_NO_USAGE_STATS=1 HF_HUB_DISABLE_TELEMETRY=1"
        " vllm serve Qwen/Qwen3-30B-A3B-FP8 --host 127.0.0.1 --port 8000"
        " --served-model-name plan-b --max-model-len 4096 --max-num-seqs 32 --max-num-batched-tokens 2048"
        " --gpu-memory-utilization 0.85 --kv-cache-dtype auto --enable-prefix-caching"
        " --generation-config vllm --seed 0 --enable-prompt-tokens-details"
        " --no-enable-log-requests --disable-uvicorn-access-log"
    )
    assert plan.stage_settings == {"max_num_seqs": "--max-num-seqs"}


def test_llama_server_for_nortia() -> None:
    gguf = NORTIA.model_copy(update={"model": "/models/plan-b-q8_0.gguf"})
    # 32 slots x 4,096 tokens = 131,072 tokens of KV
    assert launch(_server("llama-server"), gguf).command_line == (
        "llama-server -m /models/plan-b-q8_0.gguf --host 127.0.0.1 --port 8080 --alias plan-b -np 32 -c 131072"
        " -b 2048 --cache-type-k f16 --cache-type-v f16 --cache-prompt --seed 0 --metrics"
        " --cors-origins localhost --no-cors-credentials --offline"
    )


def test_ollama_for_nortia_is_set_by_its_environment() -> None:
    plan = launch(_server("ollama"), NORTIA)
    assert plan.argv == ("ollama", "serve")
    assert plan.environment == {
        "OLLAMA_HOST": "127.0.0.1:11434", "OLLAMA_CONTEXT_LENGTH": "4096", "OLLAMA_NUM_PARALLEL": "32",
        "OLLAMA_MAX_QUEUE": "4096", "OLLAMA_KV_CACHE_TYPE": "f16", "OLLAMA_KEEP_ALIVE": "-1",
        "OLLAMA_MAX_LOADED_MODELS": "1", "OLLAMA_NO_CLOUD": "1",
    }  # fmt: skip
    assert plan.stage_settings == {}


def test_sglang_fraction_counts_weights_and_pool_only() -> None:
    # (31.2 GiB weights + 60.0 GiB pool) / 121.69 GiB that a GB10 reports = 0.7494...
    budget = {"weights_gib": 31.2, "kv_pool_gib": 60.0, "device_total_gib": 121.69, "prefix_caching": False}
    plan = launch(_server("sglang"), NORTIA.model_copy(update=budget))
    assert plan.command_line == (
        "HF_HUB_DISABLE_TELEMETRY=1 sglang serve Qwen/Qwen3-30B-A3B-FP8"
        " --host 127.0.0.1 --port 30000 --served-model-name plan-b"
        " --context-length 4096 --max-running-requests 32 --chunked-prefill-size 2048 --enable-mixed-chunk"
        " --mem-fraction-static 0.749 --kv-cache-dtype auto --disable-radix-cache --sampling-defaults openai"
        " --random-seed 0 --enable-metrics --enable-cache-report"
        " --log-level-http warning"
    )
    stated = launch(_server("sglang"), NORTIA)
    assert "--mem-fraction-static" not in stated.argv
    assert any(w.topic == "memory" and "computes its own fraction" in w.sentence for w in stated.warnings)


def test_every_flag_says_which_number_it_came_from() -> None:
    plan = launch(_server("vllm"), NORTIA)
    assert all(f.why for f in plan.flags)
    assert {f.flag: f.why for f in plan.flags}["--max-model-len"] == NORTIA.because["max_model_len"]


@pytest.mark.parametrize("name", RECIPES)
def test_prefix_caching_off_reaches_every_engine_that_can(name: str) -> None:
    off = launch(_server(name), NORTIA.model_copy(update={"prefix_caching": False}))
    on = launch(_server(name), NORTIA)
    reachable = next(f for f in _server(name).fair_run if f.topic == "prefix cache").by == "equalised"
    assert ((off.command_line, off.config) != (on.command_line, on.config)) == reachable


@pytest.mark.parametrize("name", RECIPES)
def test_a_server_is_reachable_from_this_machine_only(name: str) -> None:
    plan = launch(_server(name), NORTIA)
    assert plan.url.startswith("http://127.0.0.1:")
    assert "127.0.0.1" in plan.command_line


def test_eight_bit_kv_takes_the_nearest_type_and_says_so() -> None:
    narrow = NORTIA.model_copy(update={"kv_cache_dtype": "fp8"})
    assert launch(_server("ollama"), narrow).environment["OLLAMA_FLASH_ATTENTION"] == "1"
    plan = launch(_server("llama-server"), narrow)
    assert "--cache-type-v q8_0" in plan.command_line
    assert any(w.topic == "KV precision" for w in plan.warnings)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("vllm", {"gpu_memory_utilization": 0.98}, "vllm#57475"),
        ("vllm", {"quantization": "fp8"}, "fp8_per_tensor"),
        ("llama-server", {"tensor_parallel": 2}, "no tensor parallel"),
        ("ollama", {"quantization": "int4"}, "GGUF file decides"),
    ],
)
def test_risky_settings_are_warned_about(name: str, change: dict[str, object], words: str) -> None:
    plan = launch(_server(name), NORTIA.model_copy(update=change))
    assert any(words in w.sentence for w in plan.warnings)
    assert not any(words in w.sentence for w in launch(_server(name), NORTIA).warnings)


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt_llm", "llama-server"])
def test_a_step_has_a_token_for_each_of_its_requests(name: str) -> None:
    # vllm/config/scheduler.py 0.32: max_num_batched_tokens below max_num_seqs is a ValueError; the others keep equal.
    role = _server(name).parameters["chunked_prefill_size"].flag
    step = {n: next(f for f in launch(_server(name), NORTIA.model_copy(update={"max_num_seqs": n})).flags
                    if f.flag == role) for n in (32, 2550)}  # fmt: skip
    assert (step[32].value, step[2550].value) == ("2048", "2550")
    assert step[2550].why.endswith("at least one for each request in it")


def test_what_cannot_be_made_equal_is_a_warning() -> None:
    kinds = {w.topic: w.kind for w in launch(_server("ollama"), NORTIA).warnings}
    assert kinds["output length"] == "cannot"  # no ignore_eos: only per-token figures compare
    assert "seed" not in {w.topic for w in launch(_server("vllm"), NORTIA).warnings}


def test_the_fairness_table_covers_every_engine_and_topic() -> None:
    servers = {name: _server(name) for name in RECIPES}
    table = fairness(servers)
    assert len(table) == 16
    assert all(set(row.servers) == set(servers) for row in table)
    assert all(f.default and f.effect and (f.how or f.by != "equalised") for row in table for f in row.servers.values())
    assert not next(row for row in table if row.topic == "output length").equal


def test_a_plan_file_takes_the_launch_as_it_is() -> None:
    entry = launch(_server("vllm"), NORTIA.model_copy(update={"port": 8010})).for_plan(ready_timeout_s=600)
    assert entry.url == "http://127.0.0.1:8010"
    assert entry.command[:3] == ("vllm", "serve", "Qwen/Qwen3-30B-A3B-FP8")
    assert entry.environment == {
        "VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
    }  # fmt: skip


def test_an_engine_without_a_recipe_gets_the_flags_that_its_file_names_and_a_missing_one_is_told() -> None:
    sixth = ENGINES["vllm"].model_copy(update={"id": "sixth"})
    assert {"--max-model-len", "--max-num-seqs"} < set(launch(sixth, NORTIA).argv)
    assert "--gpu-memory-utilization" not in launch(sixth, NORTIA).argv  # what a fraction means is not known of it
    bare = ENGINES["vllm"].model_copy(update={"parameters": {
        k: v for k, v in ENGINES["vllm"].parameters.items() if k != "seed"
    }})  # fmt: skip
    with pytest.raises(InputError, match=r"parameters\.seed"):
        launch(bare, NORTIA)


# One device of a GB10 in GiB: 121.69 reported, 31.2 weights, 6.0 reserve, 60.0 KV cache.
SPLIT = {"weights_gib": 31.2, "kv_pool_gib": 60.0, "reserve_gib": 6.0, "device_total_gib": 121.69}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vllm", "0.798"),  # (31.2 + 6.0 + 60.0) / 121.69 = 0.7987..., rounded down
        ("tgi", "0.798"),
        ("sglang", "0.749"),  # (31.2 + 60.0) / 121.69 = 0.7494...
        ("tensorrt_llm", "0.710"),  # 60.0 / (121.69 - 31.2 - 6.0) = 60.0 / 84.49 = 0.7101...
    ],
)
def test_the_memory_knob_is_the_split_in_the_engines_own_meaning(name: str, value: str) -> None:
    plan = launch(_server(name), NORTIA.model_copy(update=SPLIT))
    knob = next(f for f in plan.flags if f.flag == _server(name).parameters["gpu_memory_fraction"].flag)
    assert knob.value == value
    assert knob.why.startswith("KV cache 60.0 GiB, weights 31.2") and "of 121.7 GiB" in knob.why


def test_tensorrt_llm_for_nortia_has_a_configuration_file() -> None:
    plan = launch(_server("tensorrt_llm"), NORTIA.model_copy(update=SPLIT | {"prefix_caching": False}))
    assert plan.command_line == (
        "TRTLLM_NO_USAGE_STATS=1 HF_HUB_DISABLE_TELEMETRY=1 trtllm-serve Qwen/Qwen3-30B-A3B-FP8 --host 127.0.0.1"
        " --port 8000 --max_seq_len 4096 --max_batch_size 32 --max_num_tokens 2048"
        " --config tensorrt_llm.yaml"
    )
    assert plan.config == (
        "kv_cache_config:\n  free_gpu_memory_fraction: 0.71\n  dtype: auto\n  enable_block_reuse: false\n"
        "enable_chunked_prefill: true\nreturn_perf_metrics: true\n"
    )
    # TensorRT-LLM#11711 of 2026-02 added --served_model_name to main; the release 1.2.1 knows no such option.
    assert "--served_model_name" not in plan.argv
    assert any(w.topic == "configuration" for w in plan.warnings)
    assert plan.for_plan().config_files == {"tensorrt_llm.yaml": plan.config}  # bench writes it before the start
    assert launch(_server("vllm"), NORTIA).for_plan().config_files == {}


def test_tgi_for_nortia_takes_whole_prompts() -> None:
    # Its launcher refuses a prefill budget below the longest prompt, and a prompt as long as the whole request.
    assert launch(_server("tgi"), NORTIA.model_copy(update=SPLIT)).command_line == (
        "PREFIX_CACHING=true HF_HUB_DISABLE_TELEMETRY=1 text-generation-launcher --model-id Qwen/Qwen3-30B-A3B-FP8"
        " --hostname 127.0.0.1 --port 3000 --max-total-tokens 4096 --max-input-tokens 4095 --max-batch-size 32"
        " --max-concurrent-requests 4096 --max-batch-prefill-tokens 4096 --cuda-memory-fraction 0.798"
        " --usage-stats off --cors-allow-origin http://localhost"
    )


PRODUCTION = NORTIA.model_copy(update=SPLIT | {"purpose": "production", "max_num_seqs": 12, "queue_limit": 50})


def test_production_is_another_launch_than_the_measurement() -> None:
    plan = launch(_server("vllm"), PRODUCTION.model_copy(update={"revision": "ad44e777"}))
    assert plan.command_line == (
        "VLLM_NO_USAGE_STATS=1 HF_HUB_DISABLE_TELEMETRY=1 vllm serve Qwen/Qwen3-30B-A3B-FP8 --host 127.0.0.1"
        " --port 8000 --served-model-name plan-b --revision ad44e777 --max-model-len 4096 --max-num-seqs 12"
        " --max-num-queued-reqs 50 --max-num-batched-tokens 2048 --gpu-memory-utilization 0.798 --kv-cache-dtype auto"
        " --enable-prefix-caching --enable-prompt-tokens-details --no-enable-log-requests"
        " --disable-access-log-for-endpoints /health,/metrics --disable-fastapi-docs"
    )
    assert plan.keys == {"VLLM_API_KEY": ""}
    assert any("answer without a key" in w.sentence for w in plan.warnings)
    assert not any(w.kind == "cannot" for w in plan.warnings)  # nothing is compared in daily use


def test_a_plan_file_refuses_a_launch_for_production() -> None:
    with pytest.raises(InputError, match="measures with benchmark settings"):
        launch(_server("vllm"), PRODUCTION).for_plan()


def test_tgi_counts_the_waiting_into_its_limit() -> None:
    argv = launch(_server("tgi"), PRODUCTION).argv
    assert argv[argv.index("--max-concurrent-requests") + 1] == "62"  # 12 in a step and 50 that wait


@pytest.mark.parametrize("name", RECIPES)
def test_what_only_a_measurement_needs_is_in_no_launch_for_daily_use(name: str) -> None:
    bench, daily = launch(_server(name), NORTIA), launch(_server(name), PRODUCTION)
    assert not bench.keys
    words = " ".join([*daily.argv, *daily.environment])
    for benchmark_only in ("--seed", "--random-seed", "--generation-config", "--sampling-defaults", "DEV_MODE"):
        assert benchmark_only not in words


@pytest.mark.parametrize("name", RECIPES)
def test_safe_settings_of_the_catalogue_are_in_every_launch(name: str) -> None:
    security = _server(name).security
    assert security is not None
    for purpose, settings in (("benchmark", NORTIA), ("production", PRODUCTION)):
        plan = launch(_server(name), settings)
        there = {f.flag for f in plan.flags}
        assert {s.flag for s in security.settings if s.only in (None, purpose)} <= there
        assert not there & {s.flag for s in security.settings if s.only not in (None, purpose)}


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_launch_claims_to_equalise_by_a_flag_is_in_its_command(name: str) -> None:
    plan = launch(_server(name), NORTIA.model_copy(update=SPLIT | {"prefix_caching": False}))
    there = {*plan.argv, *plan.environment, *(f.flag.split(".")[-1] for f in plan.flags)}
    for row in _server(name).fair_run:
        if row.by == "equalised":
            named = re.findall(r"(?:^|[\s(])(--?[a-z][\w-]*|[A-Z]{3,}_[A-Z_]+)", row.how)
            assert set(named) <= there, row
