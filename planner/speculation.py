"""Speculative decoding as an option of a sizing: what a draft guesses, how often it is right, and what it costs."""

from __future__ import annotations

from pydantic import Field

from planner.frozen import Frozen


class Speculation(Frozen):
    """`draft_tokens` guessed ahead in each step, each accepted with `acceptance` whatever came before it.

    `draft_cost` is one draft step / one step of the model at the same batch: 0 for n-gram look-up, about 0.05 for a
    draft head. `draft_gb` is a draft model of its own in decimal GB, 0 for the model's own draft layers. Independent
    acceptance is the paper's assumption (Leviathan, Kalman and Matias 2023, section 2.2); real acceptance falls with
    the position and differs between code and prose: measure it.
    """

    draft_tokens: int = Field(ge=1, le=16)
    acceptance: float = Field(ge=0, le=1)
    draft_cost: float = Field(default=0.05, ge=0, le=1)
    draft_gb: float = Field(default=0.0, ge=0, le=10_000)

    @property
    def tokens_per_step(self) -> float:
        """Expected tokens of one verification: (1 - a^(k+1)) / (1 - a), equation 1 of the paper."""
        if self.acceptance == 1:
            return self.draft_tokens + 1.0
        return (1 - self.acceptance ** (self.draft_tokens + 1)) / (1 - self.acceptance)
