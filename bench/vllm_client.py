"""vLLM's own benchmark client as a process of another Python, for bench/crosscheck.py."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.exchange import Origin
from planner.errors import InputError
from planner.loads import LoadPoint

# Neither `vllm` nor its module form: both ask for package metadata of that name, which builds for a CPU do not carry.
# Only the reading of the prompts is replaced: theirs wants pandas, which vLLM does not install by itself.
THEIR_CLIENT = """
import argparse, json, vllm
from vllm.benchmarks import serve
from vllm.benchmarks.datasets import SampleRequest

def our_prompts(options, tokenizer):
    with open(options.dataset_path, encoding="utf-8") as lines:
        texts = [json.loads(line)["prompt"] for line in lines]
    return [
        SampleRequest(prompt=text, prompt_len=len(tokenizer(text).input_ids),
                      expected_output_len=options.custom_output_len, request_id=options.request_id_prefix + str(i))
        for i, text in enumerate(texts)
    ]

parser = argparse.ArgumentParser()
serve.add_cli_args(parser)
options = parser.parse_args()
options.metadata = ["vllm_version=" + vllm.__version__]
serve.get_samples = our_prompts
if {prioritised}:
    import os
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        pass
serve.main(options)
"""
THEIR_TIMEOUT_S = 1800
WARMUP_ROUNDS = 3  # it repeats its first prompt, so at most that one request meets a warm prefix cache afterwards


class Client(NamedTuple):
    """The Python that has vLLM, and the model's tokenizer that its client wants.

    `prioritised` gives it the real-time priority that our client has while load runs (bench/machine.py).
    """

    python: Path
    tokenizer: Path
    prioritised: bool = True


async def run_client(
    client: Client, origin: Origin, point: LoadPoint, texts: Sequence[str], body: dict[str, Any], result: Path
) -> dict[str, Any]:
    """Send the prompts `texts` in a closed loop with the fields of our own `body`; returns the result file's content.

    Prompts and result lie side by side. Raises InputError when the client cannot be run or ends with an error.
    """
    prompts = result.with_suffix(".prompts.jsonl")
    prompts.write_text("".join(json.dumps({"prompt": t}) + "\n" for t in texts), encoding="utf-8")
    result.unlink(missing_ok=True)
    fields = {k: v for k, v in body.items() if k not in ("messages", "stream", "stream_options")}
    await _run(client, [
        "--backend", "openai-chat", "--base-url", str(origin), "--endpoint", "/v1/chat/completions",
        "--model", str(fields.pop("model")), "--tokenizer", str(client.tokenizer),
        "--dataset-name", "custom", "--dataset-path", str(prompts),
        "--custom-output-len", str(point.output_tokens), "--num-prompts", str(point.requests),
        "--max-concurrency", str(point.in_flight), "--num-warmups", str(WARMUP_ROUNDS * (point.in_flight or 1)),
        "--extra-body", json.dumps(fields),
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,95,99",
        "--save-result", "--save-detailed", "--result-dir", str(result.parent), "--result-filename", result.name,
        "--disable-tqdm",
    ], result.parent)  # fmt: skip
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


async def _run(client: Client, arguments: list[str], folder: Path) -> None:
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | offline
    try:
        process = await asyncio.create_subprocess_exec(
            str(client.python), "-W", "ignore", "-c", THEIR_CLIENT.format(prioritised=client.prioritised), *arguments,
            cwd=folder, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    except OSError as e:
        raise InputError(f"cannot be run: {e.strerror}.", where=str(client.python),
                         fix="Name the Python of an environment that has vLLM.") from None  # fmt: skip
    try:
        async with asyncio.timeout(THEIR_TIMEOUT_S):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = [line for line in out.decode("utf-8", "replace").splitlines() if line.strip()]
        raise InputError(
            f"vLLM's client ended with exit code {process.returncode}: {lines[-1] if lines else 'no words'}",
            where=str(client.python), fix="It has to be a Python that can import vllm.benchmarks.",
        )  # fmt: skip
