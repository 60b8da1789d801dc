"""What two servers answer without chance: the same text word for word, or they do not serve the same model."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.dialects import dialect
from bench.engines import Server
from bench.transport import Pool, fetch_json
from planner.poc import PlanCandidate

PROMPTS = ("one two three", "The capital of France is", "def add(a, b):")
TOKENS = 24


def differing_texts(candidates: Iterable[PlanCandidate]) -> str:
    """Start each in turn and ask it every prompt at temperature 0; the first difference, empty when there is none."""
    first, *others = [(c.id, asyncio.run(_answers(c, PROMPTS))) for c in candidates]
    for name, answers in others:
        for prompt, ours, theirs in zip(PROMPTS, first[1], answers, strict=True):
            if ours != theirs:
                return f"to {prompt!r} {first[0]} says {ours!r} and {name} says {theirs!r}"
    return ""


async def _answers(candidate: PlanCandidate, prompts: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(candidate.launch, dialect(candidate.engine), Path(folder) / "server.log")
        try:
            await server.start()
            pool = Pool(server.origin)
            texts = [await _answer(pool, candidate.model_name, prompt) for prompt in prompts]
            pool.close()
            return texts
        finally:
            await server.stop()


async def _answer(pool: Pool, model: str, prompt: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS, "temperature": 0}
    found = await fetch_json(pool, "POST", "/v1/chat/completions", body, timeout_s=60)
    assert found is not None, "the server gave no answer"
    return str(found["choices"][0]["message"]["content"])
