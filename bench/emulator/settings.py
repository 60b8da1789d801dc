"""Settings of the emulated server, its faults, and its tokenizer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from planner.batching import POLICIES, Limits
from planner.errors import InputError, UnknownName
from planner.server_schema import Server
from planner.step_time import StepTime

VERSION = "emulator/1"
TEMPLATE_TOKENS = 4
FIXED = "fixed"
TIMINGS = (FIXED, *POLICIES)
REFUSALS = {
    "404": "The model `{model}` does not exist.",
    "429": "Model is overloaded.",
    "503": "The server is overloaded.",
}
FAULTS = {
    "none": "answers as asked",
    "404": "does not know the model",
    "429": "refuses a chat request with Retry-After",
    "503": "refuses a chat request with Retry-After",
    "error-object": "answers 200 with an error object in place of a token",
    "error-mid-stream": "sends an error object after a third of the tokens",
    "close-mid-stream": "closes the connection after a third of the tokens",
    "reset": "resets the connection after a third of the tokens",
    "stall": "stops sending after a third of the tokens",
    "close-idle": "closes the connection after an answer without having said so",
    "lying-usage": "reports one token too many",
    "no-usage": "reports no usage",
    "truncate": "reads only half of the prompt and says nothing",
    "no-metrics": "its metrics page is empty",
    "restart": "loses every connection and counter in the middle of a stream and is back after a second",
    "die": "ends in the middle of a stream",
    "start-failure": "ends at once with exit code 1",
    "out-of-memory": "ends at once as vLLM does without memory",
}
RESTART_S = 1.0


@dataclass(frozen=True)
class Settings:
    """What is emulated.

    `timing` fixed gives each request its TTFT and gaps, whoever else runs; a policy runs steps of `step` together.
    `spread` draws each of these times evenly from 1 +- spread of what is stated, from `seed`. The fault begins after
    `fault_after` good chat requests and strikes `fault_times` of them, or all when that is 0.
    """

    model: str = "emulated"
    engine: str = "vllm"
    facts: Server | None = None  # of an engine that the catalogue lacks
    timing: str = FIXED
    ttft_ms: float = 100.0
    itl_ms: float = 20.0
    spread: float = 0.0
    seed: int = 0
    step: StepTime = field(default_factory=StepTime)
    slots: int = 256
    kv_tokens: int = 1_000_000
    block_size: int = 16
    token_budget: int | None = None
    max_model_len: int = 32_768
    tokens_per_chunk: int = 1
    reasoning_tokens: int = 0
    crlf: bool = False
    truth: bool = False
    fault: str = "none"
    fault_after: int = 0
    fault_times: int = 0

    def __post_init__(self) -> None:
        """Refuse names that do not exist and numbers that mean nothing."""
        if self.fault not in FAULTS:
            raise UnknownName.from_known("fault", self.fault, FAULTS)
        if self.timing not in TIMINGS:
            raise UnknownName.from_known("batch policy", self.timing, TIMINGS)
        if not 0 <= self.spread < 1:
            raise InputError(f"a spread of {self.spread:g} is not a share below 1.", fix="Use 0.2 for 20 %.")
        if min(self.slots, self.kv_tokens, self.block_size, self.tokens_per_chunk) < 1:
            raise InputError("slots, KV tokens, block size and tokens per chunk are 1 or more.")
        if not all(0 <= n < math.inf for n in (self.ttft_ms, self.itl_ms, self.reasoning_tokens)):
            raise InputError("times and reasoning tokens are 0 or more.")

    def fault_at(self, chat: int) -> str:
        """What strikes the chat request of this number, counted from 1."""
        strikes = chat > self.fault_after and (not self.fault_times or chat <= self.fault_after + self.fault_times)
        return self.fault if strikes else "none"

    @property
    def limits(self) -> Limits:
        """Limits of the batch policy; raises ValidationError."""
        policy = next(p for p in POLICIES if p == self.timing)
        return Limits(policy=policy, max_num_seqs=self.slots, kv_blocks=self.kv_tokens // self.block_size,
                      block_size=self.block_size, token_budget=self.token_budget)  # fmt: skip


def count_tokens(text: str) -> int:
    """Tokens of a chat prompt here: one per word, two for words over eight letters, four for the template."""
    return TEMPLATE_TOKENS + sum(2 if len(w) > 8 else 1 for w in text.split())


def read_fault(text: str) -> tuple[str, int, int]:
    """Read NAME, NAME:AFTER or NAME:AFTER:TIMES; raises InputError."""
    name, *numbers = text.split(":")
    fix = "Write NAME, NAME:AFTER or NAME:AFTER:TIMES, such as die:10."
    for number in numbers:
        if not number.isdigit():
            raise InputError(f"fault {text!r}: {number!r} is no number.", fix=fix)
    if len(numbers) > 2:
        raise InputError(f"fault {text!r} has too many parts.", fix=fix)
    after, times = [*map(int, numbers), 0, 0][:2]
    return name, after, times
