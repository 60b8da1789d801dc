"""Settings of the emulated server, its tokenizer, and its queue: who runs, who waits, and the counters it shows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from planner.errors import UnknownName

LOOK_FOR_CLIENT_S = 0.05
TEMPLATE_TOKENS = 4
FAULTS = {
    "none": "answers as asked",
    "error-mid-stream": "sends an error object after a third of the tokens",
    "close-mid-stream": "closes the connection after a third of the tokens",
    "stall": "stops sending after a third of the tokens",
    "404": "does not know the model",
    "503": "refuses every chat request with Retry-After",
    "lying-usage": "reports one token too many",
    "no-usage": "reports no usage",
    "no-metrics": "its metrics page is empty",
    "start-failure": "ends at once with exit code 1",
    "out-of-memory": "ends at once as vLLM does without memory",
    "die": "ends in the middle of a stream",
}


@dataclass(frozen=True)
class Settings:
    """Timing and limits of the emulated server; a fault begins after `fault_after` chat requests were fine."""

    model: str = "emulated"
    ttft_ms: float = 100.0
    itl_ms: float = 20.0
    slots: int = 256
    kv_tokens: int = 1_000_000
    max_model_len: int = 32_768
    fault: str = "none"
    fault_after: int = 0

    def __post_init__(self) -> None:
        """Refuse a fault that does not exist."""
        if self.fault not in FAULTS:
            raise UnknownName.from_known("fault", self.fault, FAULTS)


def count_tokens(text: str) -> int:
    """Tokens of a chat prompt here: one per word, two for words over eight letters, four for the template."""
    return TEMPLATE_TOKENS + sum(2 if len(w) > 8 else 1 for w in text.split())


@dataclass
class Admission:
    """First come, first served: a request runs when a slot and its whole KV reservation are free."""

    settings: Settings
    running: int = 0
    kv_used: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)
    prompt_tokens: int = 0
    generation_tokens: int = 0
    ttft_sum_s: float = 0.0
    ttft_count: int = 0

    def _fits(self, kv: int) -> bool:
        return self.running < self.settings.slots and self.kv_used + kv <= self.settings.kv_tokens

    async def enter(self, kv: int, gone: Callable[[], bool]) -> bool:
        """Wait for a slot and for `kv` tokens of cache; False when the client went away before its turn."""
        if not self.waiting and self._fits(kv):
            self._take(kv)
            return True
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append((kv, turn))
        while not turn.done():
            await asyncio.wait({turn}, timeout=LOOK_FOR_CLIENT_S)
            if gone() and not turn.done():
                self.waiting.remove((kv, turn))
                return False
        return True

    def _take(self, kv: int) -> None:
        self.running += 1
        self.kv_used += kv

    def leave(self, kv: int) -> None:
        """Give slot and cache back, and let the next ones in."""
        self.running -= 1
        self.kv_used -= kv
        while self.waiting and self._fits(self.waiting[0][0]):
            waiting_kv, turn = self.waiting.popleft()
            self._take(waiting_kv)
            turn.set_result(None)

    def page(self) -> str:
        """Metrics in vLLM's names and Prometheus' form."""
        s = self.settings
        label = f'{{engine="0",model_name="{s.model}"}}'
        values = {
            "num_requests_running": self.running,
            "num_requests_waiting": len(self.waiting),
            "kv_cache_usage_perc": self.kv_used / s.kv_tokens,
            "num_preemptions_total": 0,
            "prefix_cache_queries_total": self.prompt_tokens,
            "prefix_cache_hits_total": 0,
            "prompt_tokens_total": self.prompt_tokens,
            "generation_tokens_total": self.generation_tokens,
            "time_to_first_token_seconds_sum": self.ttft_sum_s,
            "time_to_first_token_seconds_count": self.ttft_count,
        }
        lines = [f"vllm:{name}{label} {float(value)}" for name, value in values.items()]
        lines.append(f'vllm:cache_config_info{{engine="0",kv_cache_size_tokens="{s.kv_tokens}",block_size="16"}} 1.0')
        return "\n".join(lines) + "\n"
