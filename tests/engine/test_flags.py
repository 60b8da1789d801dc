"""Every flag of the launches, read by the engines' own parsers: nothing is started."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from planner.engine_facts import server
from planner.launch import launch
from planner.launch_recipes import RECIPES
from planner.launch_settings import LaunchSettings
from tests.engine.server import ENGINE_PYTHON, ROOT
from tests.planner import launch_cases

pytestmark = pytest.mark.engine

# `vllm serve` reads its arguments with this parser; values come back as JSON.
READ = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser())
read = [vars(parser.parse_args(argv)) for argv in json.load(sys.stdin)]
json.dump(read, sys.stdout, default=str)
"""
# Settings that bring in every flag that a recipe of vLLM can write.
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"kv_cache_dtype": "fp8", "quantization": "fp8_per_tensor", "tensor_parallel": 2, "prefix_caching": False},
)


def settings(name: str, purpose: str, change: dict[str, Any]) -> LaunchSettings:
    return launch_cases.settings(name, purpose).model_copy(update=change)


def argvs(name: str) -> list[list[str]]:
    found = server(launch_cases.ENGINES, name)
    launches = [launch(found, settings(name, p, v)) for p in launch_cases.PURPOSES for v in VARIANTS]
    return [list(made.argv[len(found.launch.command) :]) for made in launches]


@pytest.fixture(scope="module")
def read_by_vllm(engine: None) -> list[dict[str, Any]]:
    """What vLLM's parser understood, one dictionary a launch."""
    done = subprocess.run(
        [str(ENGINE_PYTHON), "-c", READ], input=json.dumps(argvs("vllm")), cwd=ROOT, capture_output=True, text=True,
        env={"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_vllm_reads_every_flag_as_it_is_meant(read_by_vllm: list[dict[str, Any]]) -> None:
    bench, narrow, daily, _ = read_by_vllm
    both = {
        "model_tag": "Qwen/Qwen3-30B-A3B-FP8", "host": "127.0.0.1", "port": 8000, "served_model_name": ["plan-b"],
        "revision": "ad44e777", "max_model_len": 4096, "max_num_batched_tokens": 2048, "gpu_memory_utilization": 0.798,
        "kv_cache_dtype": "auto", "enable_prefix_caching": True, "enable_prompt_tokens_details": True,
        "enable_log_requests": False, "tensor_parallel_size": 1,
    }  # fmt: skip
    for read in (bench, daily):
        assert {k: read[k] for k in both} == both
    assert (bench["max_num_seqs"], bench["generation_config"], bench["seed"]) == (32, "vllm", 0)
    assert bench["disable_uvicorn_access_log"] and not bench["disable_fastapi_docs"]
    assert (daily["max_num_seqs"], daily["max_num_queued_reqs"]) == (12, 50)
    assert daily["disable_fastapi_docs"] and daily["disable_access_log_for_endpoints"] == "/health,/metrics"
    assert (narrow["kv_cache_dtype"], narrow["quantization"]) == ("fp8", "fp8_per_tensor")
    assert (narrow["tensor_parallel_size"], narrow["enable_prefix_caching"]) == (2, False)


def test_vllm_names_the_variables_that_a_launch_sets(engine: None) -> None:
    found = server(launch_cases.ENGINES, "vllm")
    names = {n for p in launch_cases.PURPOSES for n in launch(found, settings("vllm", p, {})).environment}
    names |= set(found.security.keys) if found.security else set()
    ours = sorted(n for n in names if n.startswith("VLLM_"))
    ask = f"import vllm.envs as e; print([n for n in {ours} if n not in e.environment_variables])"
    done = subprocess.run([str(ENGINE_PYTHON), "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_engine_has_a_launch_to_check() -> None:
    assert set(RECIPES) == {*launch_cases.ENGINES, "llama-server"}
