"""Observed demand of a real vLLM that a real Prometheus scrapes: what is read is what was sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.exchange import Origin
from bench.transport import Pool, request_bytes
from planner.catalog import load_catalog
from planner.poc import PlanCandidate
from services.demand_queries import watched
from services.prometheus import Prometheus
from tests.real_prometheus import prometheus

pytestmark = pytest.mark.engine

BLOCK = 128  # tokens in a KV block of vLLM's CPU build; its prefix cache holds whole blocks
IN_FLIGHT, ROUNDS = 4, 3
ANSWER = 512  # tokens: two seconds and more on two cores, so that a scrape every second sees all that are in flight


def test_what_prometheus_saw_of_vllm_is_what_was_sent(live: PlanCandidate, tmp_path: Path) -> None:
    """One request alone, which brings the prompt into the cache, then three times four at once with the same prompt."""
    with prometheus(tmp_path, scraping=live.launch.url.removeprefix("http://")) as url:
        p = Prometheus(url)
        wait(lambda: p.at("vllm:request_success_total", time.time()))
        begin_s = int(time.time()) + 1
        wait(lambda: time.time() >= begin_s)
        used = asyncio.run(send(live))
        answered = time.time()
        wait(
            lambda: all(s.samples[-1][1] > answered for s in p.at("timestamp(vllm:num_requests_running)", time.time()))
        )
        end_s = int(time.time()) + 1
        wait(lambda: time.time() >= end_s)
        w = watched(p, load_catalog().engines, begin_s=begin_s, end_s=end_s)
        interval_s, servers, [seen] = w.periods(begin_s, end_s - begin_s, 1)
    assert (w.engine, interval_s, servers) == ("vllm", 1.0, (live.launch.url.removeprefix("http://"),))
    assert seen.peak == IN_FLIGHT
    assert seen.requests == len(used) == 1 + ROUNDS * IN_FLIGHT
    assert seen.prompt == seen.queries == sum(u["prompt_tokens"] for u in used)
    assert seen.answer == sum(u["completion_tokens"] for u in used) == len(used) * ANSWER
    # All but the first find the prompt's whole blocks in the cache; its last token is always computed.
    assert seen.hits == (len(used) - 1) * ((used[0]["prompt_tokens"] - 1) // BLOCK * BLOCK)
    assert seen.coverage > 0.5  # of a scrape every second; a busy machine misses some


async def send(live: PlanCandidate) -> list[dict[str, int]]:
    """The usage that the server states for each request."""
    pool = Pool(Origin.of(live.launch.url))
    body = {
        "model": live.model_name, "messages": [{"role": "user", "content": "Demand:" + " day" * 300}],
        "max_tokens": ANSWER, "ignore_eos": True, "temperature": 0,
    }  # fmt: skip

    async def one() -> dict[str, int]:
        seen = await pool.exchange(request_bytes(pool.origin, "POST", "/v1/chat/completions", body), timeout_s=120)
        assert seen.status == 200, seen.error
        usage: dict[str, int] = json.loads(seen.body)["usage"]
        return usage

    used = [await one()]
    for _ in range(ROUNDS):
        used += await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    pool.close()
    return used


def wait(until: Callable[[], Any], for_s: float = 60.0) -> None:
    """Look until it is so."""
    end = time.monotonic() + for_s
    while not until():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
