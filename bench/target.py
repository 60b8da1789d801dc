"""A server as requests see it."""

from __future__ import annotations

from typing import Any, NamedTuple

from bench.dialects import Dialect
from bench.engines import Server
from bench.prompts import Prompt
from bench.transport import Pool, request_bytes


class Target(NamedTuple):
    """A server as requests see it; `server` tells whether its process still lives."""

    pool: Pool
    dialect: Dialect
    server: Server
    model: str
    sampling: dict[str, float]
    timeout_s: float

    def chat_request(
        self, prompt: Prompt, output_tokens: int, salt: str, *, schema: dict[str, Any] | None = None,
        free: bool = False, exact: bool = False,
    ) -> bytes:  # fmt: skip
        """The bytes of a streaming chat request; `free` makes the length a limit, `exact` the temperature 0."""
        sampling = self.sampling | {"temperature": 0.0} if exact else self.sampling
        body = self.dialect.chat_body(self.model, prompt.text, output_tokens, sampling, salt=salt, schema=schema,
                                      free=free)  # fmt: skip
        return request_bytes(self.pool.origin, "POST", "/v1/chat/completions", body)
