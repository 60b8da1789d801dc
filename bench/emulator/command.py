"""The command `python -m bench emulate`: its options, and the server until it is told to end."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from bench.dialects import dialect
from bench.emulator.metrics import capacity_line
from bench.emulator.server import Emulator
from bench.emulator.settings import FAULTS, FIXED, TIMINGS, Settings, read_fault
from bench.emulator.sizing import read_sizing
from planner.engine_files import load_engine
from planner.errors import InputError
from planner.poc import DIALECTS
from planner.step_time import StepTime

LONGEST_MS = 3_600_000
_DEFAULT = Settings()
_LAST_WORDS = {
    "start-failure": "emulator: RuntimeError: the model cannot be loaded",
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add, d = parser.add_argument, _DEFAULT
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8000, help="0 lets the system choose")
    add("--model", default=d.model, help="model name to answer to")
    add("--engine", default=d.engine, metavar="NAME",
        help=f"whose metrics, stream and tokenise endpoint: {', '.join(DIALECTS)}, or a .yaml of your own")  # fmt: skip
    add("--policy", choices=TIMINGS, default=d.timing,
        help="fixed: every request by itself; the others run steps of a batch with KV blocks")  # fmt: skip
    add("--ttft-ms", type=float, default=d.ttft_ms, help="fixed: from admission to the first token")
    add("--itl-ms", type=float, default=d.itl_ms, help="fixed: between tokens; a policy: a step")
    add("--per-request-ms", type=float, default=0.0, help="a policy: what each request in it adds to a step")
    add("--prefill-tok-s", type=float, default=0.0, help="a policy: prompt tokens a second; 0 takes no time")
    add("--plan-sizing", metavar="FILE[:PLAN]",
        help="a policy: step times, slots and KV cache of a sizing (cli.py size --json)")  # fmt: skip
    add("--spread", type=float, default=0.0, help="share by which each time is drawn around what is stated")
    add("--seed", type=int, default=0, help="of the spread")
    add("--slots", type=int, help=f"requests that run at once; the others wait ({d.slots})")
    add("--kv-tokens", type=int, help=f"KV cache in tokens ({d.kv_tokens:,})")
    add("--block-size", type=int, default=d.block_size, help="a policy: tokens of a KV block")
    add("--token-budget", type=int, help="a policy: tokens that a step computes at most (prompts whole)")
    add("--max-model-len", type=int, default=d.max_model_len, help="longest prompt with its answer")
    add("--tokens-per-chunk", type=int, default=1, help="tokens in one event")
    add("--reasoning-tokens", type=int, default=0, help="tokens on the reasoning channel, before the visible ones")
    add("--crlf", action="store_true", help="end the lines of the stream with CR LF")
    add("--truth", action="store_true", help="stamp every write; GET /truth tells and forgets")
    add("--fault", default="none", metavar="NAME[:AFTER[:TIMES]]",
        help="a fault after so many good chat requests; " + "; ".join(f"{k}: {v}" for k, v in FAULTS.items()),
    )  # fmt: skip
    add("--json", action="store_true", help="print one line of JSON when it listens, and nothing else")


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that the options ask for; raises InputError."""
    o = options
    slots, kv_tokens = _DEFAULT.slots, _DEFAULT.kv_tokens
    fault, after, times = read_fault(o.fault)
    step = StepTime(
        base_s=_time_s(o.itl_ms), per_request_s=_time_s(o.per_request_ms),
        prefill_s_per_token=1 / o.prefill_tok_s if o.prefill_tok_s > 0 else 0.0,
    )  # fmt: skip
    if o.plan_sizing:
        if o.policy == FIXED:
            raise InputError("a sizing gives step times, and fixed timing has no steps.",
                             fix="Add --policy continuous, slots or static.")  # fmt: skip
        path, _, plan = o.plan_sizing.partition(":")
        sized = read_sizing(Path(path), plan)
        step, slots, kv_tokens = sized.step, sized.slots, sized.kv_tokens
    facts = load_engine(Path(o.engine)) if o.engine.endswith(".yaml") else None
    return Settings(
        model=o.model, engine=facts.id if facts else o.engine, facts=facts, timing=o.policy,
        ttft_ms=o.ttft_ms, itl_ms=o.itl_ms, spread=o.spread, seed=o.seed, step=step,
        slots=slots if o.slots is None else o.slots, kv_tokens=kv_tokens if o.kv_tokens is None else o.kv_tokens,
        block_size=o.block_size,
        token_budget=o.token_budget, max_model_len=o.max_model_len, tokens_per_chunk=o.tokens_per_chunk,
        reasoning_tokens=o.reasoning_tokens, crlf=o.crlf, truth=o.truth, fault=fault, fault_after=after,
        fault_times=times,
    )  # fmt: skip


def _time_s(ms: float) -> float:
    if not 0 <= ms <= LONGEST_MS:
        raise InputError(f"{ms:g} ms is no time of a step.", fix=f"Use 0 to {LONGEST_MS:,}.")
    return ms / 1000


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; the exit code is what the fault asks for."""
    settings = settings_of(options)
    if not 0 <= options.port <= 65_535:
        raise InputError(f"{options.port} is no port.", fix="Use 1 to 65535, or 0 to let the system choose.")
    try:
        return asyncio.run(_serve(settings, options.host, options.port, as_json=options.json))
    except OSError as e:
        raise InputError(f"port {options.port} cannot be used: {e.strerror}.", fix="Choose another --port.") from None


async def _serve(settings: Settings, host: str, port: int, *, as_json: bool) -> int:
    emulator = Emulator(settings)
    if not as_json:
        print(f"emulator: model {settings.model}, {settings.slots} slots, {settings.timing} timing, "
              f"fault {settings.fault}", flush=True)  # fmt: skip
    if settings.fault in _LAST_WORDS:
        print(_LAST_WORDS[settings.fault], file=sys.stderr, flush=True)
        return 1
    await emulator.start(host, port)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before it says that it listens: whoever reads that may stop it
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    if as_json:
        print(json.dumps({"url": f"http://{host}:{emulator.port}", "model": settings.model}), flush=True)
    else:
        facts = dialect(settings.engine, settings.facts).facts
        pattern = facts.log_patterns.get("kv_capacity") if facts else None
        if pattern:
            print(capacity_line(pattern, settings), flush=True)
        print(f"emulator: listening on http://{host}:{emulator.port}", flush=True)
    await ended.wait()
    await emulator.stop()
    return 0
