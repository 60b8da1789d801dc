"""How lengths are counted on servers that tokenise differently or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.dialects import dialect
from bench.emulator import Emulator
from bench.emulator.settings import Settings, count_tokens
from bench.engines import Server
from bench.exchange import Exchange, Origin
from bench.preflight import Preflight, preflight
from bench.target import Target
from bench.transport import Pool
from planner.errors import ServerError
from planner.poc import Launch
from tests.bench.answering import AnsweringServer
from tests.bench.helpers import FAST, with_emulator


class Noting(Pool):
    """Keeps every request that goes out."""

    def __init__(self, origin: Origin, seen: list[bytes]) -> None:
        super().__init__(origin)
        self._seen = seen

    async def exchange(self, request: bytes, *, timeout_s: float) -> Exchange:
        self._seen.append(request)
        return await super().exchange(request, timeout_s=timeout_s)


def checked(
    engine: str, input_tokens: int = 50, settings: Settings = FAST, seen: list[bytes] | None = None
) -> Preflight:
    async def use(emulator: Emulator) -> Preflight:
        launch = Launch(url=f"http://127.0.0.1:{emulator.port}")
        server = Server(launch, dialect(engine), None)
        pool = Noting(server.origin, seen if seen is not None else [])
        try:
            return await preflight(Target(pool, dialect(engine), server, "emulated", {}, 5.0), input_tokens)
        finally:
            pool.close()

    return with_emulator(settings, use)


def test_vllm_counts_by_its_tokenise_endpoint_with_the_chat_template() -> None:
    found = checked("vllm")
    assert found.vocabulary.base == count_tokens("Note:") == 5
    assert found.findings == ()
    assert found.settings["max_model_len"] == "32768"


def test_an_engine_without_tokenise_counts_by_usage() -> None:
    found = checked("ollama")
    assert found.vocabulary.base == 5
    assert any(f.startswith("free-length: ollama cannot hold the output length") for f in found.findings)
    assert any(f.startswith("no-server-metrics: ollama has no metrics page") for f in found.findings)


def test_llama_server_counts_by_its_tokenise_endpoint_and_the_template_is_measured_once() -> None:
    asked: list[bytes] = []
    found = checked("llama-server", settings=Settings(ttft_ms=20, itl_ms=2, engine="llama-server"), seen=asked)
    assert found.vocabulary.base == count_tokens("Note:") == 5
    paths = [request.split(b" ")[1] for request in asked]
    # The bare text of the probe, of the lead and of all words; the template is what usage counts beyond that.
    assert paths.count(b"/tokenize") == 3
    assert paths.count(b"/v1/chat/completions") == 2  # the template, and the stream that is probed


def test_a_tokenise_endpoint_of_another_form_is_not_believed() -> None:
    # The emulator answers vLLM's form; asked in llama-server's it gives no tokens, so usage counts.
    found = checked("llama-server")
    assert found.vocabulary.base == 5
    assert any("generation_tokens is not on the metrics page" in f for f in found.findings)


def test_a_prompt_shorter_than_the_template_is_said() -> None:
    found = checked("vllm", input_tokens=3)
    assert any(
        f.startswith("template: the shortest prompt has 5 tokens, more than the 3 asked for") for f in found.findings
    )


class Telling(AnsweringServer):
    """States a model's root and counts prompt tokens as it is told to, in JSON."""

    def __init__(self, root: str, prompt_tokens: str) -> None:
        super().__init__(lambda body: ["w "] * body["max_tokens"])
        self._root, self._prompt_tokens = root, prompt_tokens

    def _response(self, path: str, body: dict[str, Any]) -> list[bytes]:
        told = f'{{"data": [{{"id": "emulated", "root": "{self._root}"}}]}}'
        if path == "/v1/chat/completions":
            if body.get("stream") or not self._prompt_tokens:
                return super()._response(path, body)
            told = f'{{"usage": {{"prompt_tokens": {self._prompt_tokens}}}}}'
        return [f"HTTP/1.1 200 OK\r\nContent-Length: {len(told)}\r\n\r\n{told}".encode()]


def told_by(telling: Telling) -> Preflight:
    async def use() -> Preflight:
        listening = await telling.start()
        server = Server(Launch(url=f"http://127.0.0.1:{telling.port}"), dialect("openai"), None)
        pool = Pool(server.origin)
        try:
            return await preflight(Target(pool, dialect("openai"), server, "emulated", {}, 5.0), 50)
        finally:
            pool.close()
            listening.close()

    return asyncio.run(use())


@pytest.mark.parametrize("prompt_tokens", ["1e999", "-5", "5000000000", "12.5", '"12"', "null"])
def test_a_prompt_count_that_cannot_be_is_no_count(prompt_tokens: str) -> None:
    with pytest.raises(ServerError, match="does not count prompt tokens in usage"):
        told_by(Telling("here", prompt_tokens))


def test_what_a_server_says_of_itself_fits_into_a_manifest() -> None:
    assert told_by(Telling("half \\ud800 a pair", "")).settings["root"] == "half ? a pair"
