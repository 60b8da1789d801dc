"""Servers that a plan may start, and how they are started and stopped."""

from __future__ import annotations

import ast
import asyncio
import os
from pathlib import Path

import pytest

from bench import engines
from bench.consent import check_allowed, is_emulator_command
from bench.dialects import dialect
from bench.engines import Server
from bench.stage_rule import with_setting
from bench.telemetry import family_of, memory_of
from planner.engine_facts import server
from planner.errors import NotAllowed, ServerError
from planner.launch import launch as launch_of
from planner.launch_recipes import RECIPES
from planner.poc import Launch
from tests.bench.helpers import free_port
from tests.planner import launch_cases


def launch(*command: str, **more: object) -> Launch:
    return Launch.model_validate({"command": command} | more)


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve Qwen/Qwen3-30B-A3B --max-num-seqs 16", "python3.12 -m sglang.launch_server",
        "python -m vllm.entrypoints.openai.api_server --model m", "/usr/bin/python3 -m bench emulate --port 1",
        "ollama serve", "llama-server -m model.gguf", "trtllm-serve m", "text-generation-launcher --model-id m",
        "sglang serve m", "python3 -m bench emulate --port 1",
    ],
)  # fmt: skip
def test_commands_of_the_engines_may_be_named_by_a_plan(command: str) -> None:
    check_allowed(launch(*command.split()), allow=False, where="test")


@pytest.mark.parametrize(
    "command",
    [
        "sh -c id", "python -c print()", "python script.py", "python -m http.server", "vllm bench", "ollama rm m",
        "docker run image", "python -m bench run plan.yaml", "pythonx -m bench emulate", "vllm-serve m",
        "/tmp/anywhere/vllm serve m", "./ollama serve",
    ],
)  # fmt: skip
def test_other_commands_need_consent(command: str) -> None:
    with pytest.raises(NotAllowed, match="--allow-command"):
        check_allowed(launch(*command.split()), allow=False, where="test")
    check_allowed(launch(*command.split()), allow=True, where="test")


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV"])
def test_a_plan_may_not_set_the_environment_of_the_loader(name: str) -> None:
    with pytest.raises(NotAllowed, match=f"environment variable {name}"):
        check_allowed(launch("vllm", "serve", "m", environment={name: "x"}), allow=False, where="test")


@pytest.mark.parametrize(
    "name",
    [
        "VLLM_RUST_FRONTEND_PATH",  # with VLLM_USE_RUST_FRONTEND the program that vLLM 0.32 starts
        "VLLM_NCCL_SO_PATH", "VLLM_LOGGING_CONFIG_PATH", "NCCL_NET_PLUGIN", "NCCL_CONF_FILE", "OMP_TOOL_LIBRARIES",
        "SGLANG_EXTERNAL_MODEL_PACKAGE", "HF_MODULES_CACHE", "TORCH_EXTENSIONS_DIR",
        "HF_ENDPOINT", "VLLM_USAGE_STATS_SERVER",  # would be sent the hub's token, or what the machine is
        "VLLM_ALLOW_INSECURE_SERIALIZATION",
    ],
)  # fmt: skip
def test_a_plan_may_not_name_a_program_or_an_address_through_an_engines_own_variables(name: str) -> None:
    made = launch("vllm", "serve", "m", environment={name: "/tmp/x"})
    with pytest.raises(NotAllowed, match=f"environment variable {name}.*--allow-command"):
        check_allowed(made, allow=False, where="test")
    check_allowed(made, allow=True, where="test")


@pytest.mark.parametrize(
    "words",
    [
        # Of the parsers of vLLM 0.32, SGLang and TensorRT-LLM; argparse also takes a beginning, and an underscore.
        "--trust-remote-code", "--trust_remote_code=true", "--trust-rem", "--middleware x.y", "--worker-cls x.y",
        "--worker-extension-cls=x.y", "--scheduler-cls x.y", "--logits-processors x.y", "--tool-parser-plugin x.py",
        "--reasoning-parser-plugin x.py", "--io-processor-plugin x", "--custom-weight-loader x.y",
        "--custom_module_dirs x", "--enable-custom-logit-processor", "--config /tmp/x.yaml", "--config=/tmp/x.yaml",
        '--kv-transfer-config {"kv_connector_module_path":"x"}', "--extra_llm_api_options /tmp/x.yaml", "--config",
        '--compilation-config {"backend":"my_passes.replace"}', "--compilation-config.backend my.passes.replace",
        '--compilation-config={"inductor_compile_config":{"post_grad":"a.b"}}', "-cc.backend=x.y",
        "--distributed-executor-backend x.Y", "--distributed_executor_backend=x.y.Z",
    ],
)  # fmt: skip
def test_a_plan_may_not_make_an_engine_load_other_code(words: str) -> None:
    made = launch("vllm", "serve", "m", *words.split())
    with pytest.raises(NotAllowed, match=r"not its own.*--allow-command"):
        check_allowed(made, allow=False, where="test")
    check_allowed(made, allow=True, where="test")


def test_a_file_of_options_is_read_where_the_plan_carries_it() -> None:
    harmless = launch("trtllm-serve", "m", "--config", "a.yaml", config_files={"a.yaml": "max_batch_size: 8\n"})
    check_allowed(harmless, allow=False, where="test")
    loads = launch("trtllm-serve", "m", "--config", "a.yaml", config_files={"a.yaml": "trust_remote_code: true\n"})
    with pytest.raises(NotAllowed, match=r"trust-remote-code.*--allow-command"):
        check_allowed(loads, allow=False, where="test")


@pytest.mark.parametrize(
    "words",
    [
        "--reasoning-parser qwen3",
        "--tool-call-parser hermes",
        "--worker-ports 1",
        "--model m",
        "--config-format hf",
        "--distributed-executor-backend mp",
        "--compilation-config.level 3",
        '--speculative-config {"model":"org/Qwen3-0.6B"}',
        "--host gpu.local",
        '--override-generation-config {"temperature":0.6}',
        "--model tiny.gguf",
    ],
)
def test_options_that_only_begin_alike_may_be_set(words: str) -> None:
    check_allowed(launch("vllm", "serve", "m", *words.split()), allow=False, where="test")


@pytest.mark.parametrize("name", RECIPES)
def test_a_plan_may_carry_every_launch_of_ours(name: str) -> None:
    made = launch_of(server(launch_cases.ENGINES, name), launch_cases.settings(name, "benchmark"))
    check_allowed(made.for_plan(), allow=False, where="test")


@pytest.mark.parametrize(
    "name", ["VLLM_CPU_KVCACHE_SPACE", "OLLAMA_NUM_PARALLEL", "CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE"]
)
def test_a_plan_may_set_what_engines_read(name: str) -> None:
    check_allowed(launch("vllm", "serve", "m", environment={name: "1"}), allow=False, where="test")


def test_nothing_in_bench_goes_through_a_shell() -> None:
    for path in Path(engines.__file__).parent.rglob("*.py"):
        for call in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)):
            name = ast.unparse(call.func)
            assert name not in ("os.system", "os.popen", "asyncio.create_subprocess_shell"), path.name
            assert not any(k.arg == "shell" for k in call.keywords), path.name


def test_our_own_emulator_is_known_by_its_command() -> None:
    assert is_emulator_command(("python", "-m", "bench", "emulate", "--port", "1"))
    assert not is_emulator_command(("python", "-m", "vllm.entrypoints.openai.api_server"))
    assert not is_emulator_command(())


def start(server: Server) -> None:
    async def go() -> None:
        try:
            await server.start()
        finally:
            await server.stop()

    asyncio.run(go())


def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    made = launch("no-such-engine", "serve", url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ServerError, match="no-such-engine cannot be started: No such file"):
        start(Server(made, dialect("vllm"), tmp_path / "log"))


def test_a_server_that_never_gets_ready_is_said_and_its_log_kept(tmp_path: Path) -> None:
    made = launch(
        "sh", "-c", "echo loading; exec sleep 600", url=f"http://127.0.0.1:{free_port()}", ready_timeout_s=0.3
    )
    server = Server(made, dialect("vllm"), tmp_path / "log")
    with pytest.raises(ServerError, match=r"was not ready after 0\.3 s"):
        start(server)
    assert server.read_log() == "loading\n"
    assert server.pid is None


def test_stopping_a_server_stops_its_children(tmp_path: Path) -> None:
    made = launch("sh", "-c", "sleep 600 & sleep 600", url=f"http://127.0.0.1:{free_port()}")
    server = Server(made, dialect("vllm"), tmp_path / "log")

    async def go() -> list[int]:
        begun = asyncio.create_task(server.start())
        while not (server.pid and len(family_of(server.pid)) == 3):
            await asyncio.sleep(0.01)
        family = family_of(server.pid)
        begun.cancel()
        await server.stop()
        return family

    family = asyncio.run(go())
    assert len(family) == 3
    assert not any(alive(pid) for pid in family)


def alive(pid: int) -> bool:
    """Running, and not just waiting for its parent to read the exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_memory_of_this_process_is_what_the_kernel_says() -> None:
    status = Path("/proc/self/status").read_text()
    rss_kib = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
    assert memory_of([os.getpid()]) == pytest.approx(rss_kib * 1024, rel=0.05)
    assert memory_of([]) is None


SETTINGS = {"max_num_seqs": "--max-num-seqs", "parallel": "OLLAMA_NUM_PARALLEL"}


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (("vllm", "serve", "--max-num-seqs", "32", "m"), ("vllm", "serve", "--max-num-seqs", "16", "m")),
        (("vllm", "serve", "--max-num-seqs=32"), ("vllm", "serve", "--max-num-seqs=16")),
        (("vllm", "serve"), ("vllm", "serve", "--max-num-seqs", "16")),
    ],
)
def test_a_setting_is_put_into_the_command(command: tuple[str, ...], changed: tuple[str, ...]) -> None:
    made = with_setting(launch(*command, stage_settings=SETTINGS), "max_num_seqs", 16)
    assert made and made.command == changed


def test_a_setting_may_be_an_environment_variable() -> None:
    made = with_setting(launch("ollama", "serve", stage_settings=SETTINGS), "parallel", 8)
    assert made and made.environment == {"OLLAMA_NUM_PARALLEL": "8"}


def test_a_setting_that_no_argument_carries_changes_nothing() -> None:
    assert with_setting(launch("vllm", "serve"), "max_num_seqs", 16) is None
    assert with_setting(launch(stage_settings=SETTINGS), "max_num_seqs", 16) is None
