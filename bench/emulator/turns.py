"""What the two timings have in common: a request asks for tokens, and gets each one when it is due."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple, Protocol


class Asked(NamedTuple):
    """One chat request: its number, its lengths, and whether its client has gone away."""

    number: int
    prompt_tokens: int
    output_tokens: int
    gone: Callable[[], bool]


class Turns(Protocol):
    """Who runs and who waits."""

    @property
    def running(self) -> int:
        """Requests that run."""
        ...

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        ...

    @property
    def kv_tokens(self) -> int:
        """Tokens of KV cache in use."""
        ...

    @property
    def preemptions(self) -> int:
        """Preemptions so far."""
        ...

    def refusal(self, asked: Asked) -> str:
        """Why the request could never be served, or nothing."""
        ...

    def tokens(self, asked: Asked) -> AsyncGenerator[float, None]:
        """Yield once per token, when it is due, the loop time at which the request was let in.

        Raises ConnectionError when the client went away while it waited.
        """
        ...

    async def stop(self) -> None:
        """End what runs by itself."""
        ...
