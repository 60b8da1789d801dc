"""What each request of a load point asks for: prompt, lengths, salt, schema."""

from __future__ import annotations

from typing import NamedTuple

from bench.inputs import Inputs
from bench.prompts import Prompt, PromptMaker
from bench.target import Target
from planner.loads import LoadPoint

LOAD, VICTIM, AGGRESSOR, TAIL, WARMUP = "load", "victim", "aggressor", "tail", "warmup"


class Lengths(NamedTuple):
    """Tokens asked for; 0 input tokens: the prompt is as long as it is."""

    input_tokens: int
    output_tokens: int


def counted_cohort(point: LoadPoint) -> str:
    """The cohort whose requests the point counts."""
    return VICTIM if point.shape == "interference" else LOAD


def tail_reserve(point: LoadPoint, inputs: Inputs) -> int:
    """Requests that keep the load up until the counted ones have ended; none where there is no steady window."""
    if point.shape == "quality":
        return 0
    if point.shape == "trace":
        return min(point.requests, len(inputs.trace) - point.requests)
    if point.in_flight is None:
        return point.requests
    return point.in_flight if point.in_flight > 1 and point.requests > 2 * point.in_flight else 0


class Asking:
    """The requests of one repeat of one point, by cohort and index."""

    def __init__(self, target: Target, point: LoadPoint, prompts: PromptMaker, inputs: Inputs, salt: str) -> None:
        self._target, self._point, self._prompts, self._inputs, self._salt = target, point, prompts, inputs, salt

    def lengths(self, cohort: str, index: int) -> Lengths:
        """What a request asks for."""
        p, rows = self._point, self._inputs.trace
        if cohort == AGGRESSOR:
            return Lengths(p.aggressor_input_tokens or 1, p.aggressor_output_tokens)
        row = index if cohort == LOAD else p.requests + index
        if rows and cohort in (LOAD, TAIL) and row < len(rows):
            return Lengths(rows[row].input_tokens, rows[row].output_tokens)
        own = self._own(cohort, index) is not None
        return Lengths(0 if own else p.input_tokens, p.output_tokens)

    def request(self, cohort: str, index: int) -> bytes:
        """The bytes of a request."""
        asked, own = self.lengths(cohort, index), self._own(cohort, index)
        if own is None:
            prompt = self._prompts.make(cohort, index, asked.input_tokens)
        elif self._inputs.quality:
            prompt = Prompt(own, 0)  # as it stands: a nonce could change the answer
        else:
            prompt = self._prompts.own(own, cohort, index)
        return self._target.chat_request(
            prompt, asked.output_tokens, "" if self._inputs.quality else self._salt,
            schema=self._point.json_schema, free=self._point.free_length, exact=bool(self._inputs.quality),
        )  # fmt: skip

    def _own(self, cohort: str, index: int) -> str | None:
        """A prompt from a file; warm-up, tail and aggressors are always ours."""
        if cohort not in (LOAD, VICTIM):
            return None
        if self._inputs.quality:
            return self._inputs.quality[index].prompt
        return self._inputs.prompts[index] if self._inputs.prompts else None
