"""vLLM's own request function on the burst server; run by the Python that has vLLM installed.

    .venv-vllm/bin/python perf/vllm_client.py --port PORT --streams 256 --chunks 150

Prints the same JSON object as our_client.py. The session is made as vllm.benchmarks.serve makes it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from itertools import accumulate
from typing import Any

import aiohttp
from vllm.benchmarks.lib.endpoint_request_func import RequestFuncInput, async_request_openai_chat_completions


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Send all requests at once and wait for them."""
    inputs = [
        RequestFuncInput(
            prompt=f"stream {i}", api_url=f"http://127.0.0.1:{args.port}/v1/chat/completions", prompt_len=8,
            output_len=args.chunks, model="emulated", ignore_eos=True,
        )
        for i in range(args.streams)
    ]  # fmt: skip
    connector = aiohttp.TCPConnector(
        limit=args.streams, limit_per_host=args.streams, ttl_dns_cache=300, use_dns_cache=True, keepalive_timeout=60,
        enable_cleanup_closed=True, force_close=False, ssl=False,
    )  # fmt: skip
    timeout = aiohttp.ClientTimeout(total=6 * 60 * 60)
    async with aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout) as session:
        cpu = time.process_time()
        made = await asyncio.gather(*(async_request_openai_chat_completions(i, session) for i in inputs))
        cpu = time.process_time() - cpu
    failed = [o.error for o in made if not o.success]
    if failed:
        sys.exit(f"{len(failed)} of {len(made)} requests failed: {failed[0]}")
    # perf_counter and monotonic are the same clock on Linux.
    return {
        "arrived": {i: list(accumulate([o.start_time + o.ttft, *o.itl])) for i, o in enumerate(made)},
        "cpu_s": cpu,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--chunks", type=int, required=True)
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))
