"""What is proved on the live server before anything counts, and what is learned from it for the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.dialects import read_labels
from bench.outcome import judge
from bench.prompts import Counter, Prompt, PromptMaker, Vocabulary, learn_vocabulary
from bench.sse import Answer, read_answer, token_count
from bench.target import Target
from bench.telemetry import fetch_page
from bench.transport import error_message, fetch_json, request_bytes
from planner.errors import ServerError, UnknownName

PROBE_TOKENS = 8
_EMULATOR = "emulator/"


class Preflight(NamedTuple):
    """What the server is and does: version, whether it is our emulator, settings it resolved, and faults found."""

    version: str | None
    simulated: bool
    vocabulary: Vocabulary
    kv_capacity_tokens: int | None
    settings: dict[str, str]
    findings: tuple[str, ...]

    @property
    def identity(self) -> dict[str, str]:
        """Contract fields that the server states itself, as far as it does."""
        return _identity(self.version, self.settings)


async def preflight(target: Target, input_tokens: int, local: Callable[[str], int] | None = None) -> Preflight:
    """Check model, stream shape, usage, bounded length, prompt length and metrics with one short request.

    With `local` the tokens of a text are counted by a tokenizer on this machine instead of by the server.
    Raises ServerError when the server cannot be measured: unknown model, refusal, broken stream.
    """
    settings = await _model_settings(target)
    version, told = await _version(target)
    settings |= told
    vocabulary = await learn_vocabulary(await _counter(target, local))
    maker = PromptMaker(vocabulary, seed=0, salt="preflight", spell_salt=True, shared_prefix=0.0)
    prompt = maker.make("preflight", 0, input_tokens)
    answer, server_header = await _probe(target, prompt)
    page, findings = await _metrics_page(target)
    findings = [*_shape_findings(target, answer, prompt, input_tokens), *findings]
    for name in target.dialect.series.get("kv_capacity", ()):
        settings |= read_labels(page, name)
    return Preflight(
        version=version,
        simulated=any((text or "").startswith(_EMULATOR) for text in (version, server_header)),
        vocabulary=vocabulary,
        kv_capacity_tokens=target.dialect.kv_capacity(target.server.read_log(), page),
        settings=settings,
        findings=tuple(findings),
    )


async def identity(target: Target) -> dict[str, str]:
    """What `Preflight.identity` is now; raises ServerError when the server lists the model no longer."""
    settings = await _model_settings(target)
    version, _ = await _version(target)
    return _identity(version, settings)


def _identity(version: str | None, settings: dict[str, str]) -> dict[str, str]:
    found = {"engine_version_reported": version, "max_model_len": settings.get("max_model_len")}
    return {field: value for field, value in found.items() if value is not None}


async def _model_settings(target: Target) -> dict[str, str]:
    found = await fetch_json(target.pool, "GET", "/v1/models")
    rows = [m for m in (found or {}).get("data") or () if isinstance(m, dict)]
    names = [str(m.get("id")) for m in rows]
    if names and target.model not in names:
        raise ServerError(str(UnknownName.from_known("model", target.model, names)), where=str(target.pool.origin))
    row = next((m for m in rows if m.get("id") == target.model), {})
    return _scalars({k: v for k, v in row.items() if k in ("max_model_len", "root", "meta")})


async def _version(target: Target) -> tuple[str | None, dict[str, str]]:
    """The version; our emulator says what it is on /version whatever dialect it is asked in."""
    plain = (await fetch_json(target.pool, "GET", "/version") or {}).get("version")
    if isinstance(plain, str) and plain.startswith(_EMULATOR):
        return plain, {}
    told = await fetch_json(target.pool, "GET", target.dialect.version) if target.dialect.version else None
    version = (told or {}).get(target.dialect.version_key)
    return (str(version) if version is not None else None), _scalars(told or {})


def _scalars(found: dict[str, Any]) -> dict[str, str]:
    """Plain values of an answer, as text; templates and lists stay out."""
    kept = {k: v for k, v in found.items() if isinstance(v, str | int | float | bool)}
    return {k: text for k, v in kept.items() if len(text := str(v)) <= 200}


async def _counter(target: Target, local: Callable[[str], int] | None) -> Counter:
    """A function that counts the tokens of a chat prompt: locally, by the tokenise endpoint, or by usage."""

    async def by_usage(text: str) -> int:
        body = target.dialect.chat_body(target.model, text, 1, target.sampling, stream=False)
        request = request_bytes(target.pool.origin, "POST", "/v1/chat/completions", body)
        exchange = await target.pool.exchange(request, timeout_s=target.timeout_s)
        if exchange.error_kind:
            raise ServerError(f"a chat request failed: {exchange.error}.", where=str(target.pool.origin))
        if exchange.status != 200:
            raise ServerError(f"a chat request was answered {exchange.status}: {error_message(exchange)}",
                              where=str(target.pool.origin))  # fmt: skip
        try:
            counted = token_count(json.loads(exchange.body)["usage"]["prompt_tokens"])
        except (ValueError, KeyError, TypeError, RecursionError):
            counted = None
        if counted is None:
            raise ServerError("the server does not count prompt tokens in usage.", where=str(target.pool.origin),
                              fix="Lengths cannot be set on it.")  # fmt: skip
        return counted

    async def by_messages(text: str) -> int | None:
        body = {"model": target.model, "messages": [{"role": "user", "content": text}], "add_generation_prompt": True}
        found = await fetch_json(target.pool, "POST", "/tokenize", body)
        count = (found or {}).get("count")
        return count if isinstance(count, int) else None

    async def by_content(text: str) -> int | None:
        found = await fetch_json(target.pool, "POST", "/tokenize", {"content": text})
        tokens = (found or {}).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    async def by_local(text: str) -> int | None:
        return local(text) if local else None

    known = {"messages": by_messages, "content": by_content}
    tokenise = by_local if local else known.get(target.dialect.tokenize)
    probe = "Note: time"
    plain = await tokenise(probe) if tokenise else None
    if tokenise is None or plain is None:
        return by_usage
    template = await by_usage(probe) - plain  # what the chat template adds beyond what the endpoint counts

    async def by_endpoint(text: str) -> int:
        count = await tokenise(text)
        return template + count if count is not None else await by_usage(text)

    return by_endpoint


async def _probe(target: Target, prompt: Prompt) -> tuple[Answer, str]:
    exchange = await target.pool.exchange(target.chat_request(prompt, PROBE_TOKENS, ""), timeout_s=target.timeout_s)
    answer = read_answer(exchange.reads) if exchange.status == 200 else read_answer(())
    outcome, _, error = judge(exchange, answer)
    if outcome != "ok":
        raise ServerError(f"a first streaming request failed: {error}.", where=str(target.pool.origin),
                          fix="Check the server and the model's name in the plan.")  # fmt: skip
    return answer, exchange.headers.get("server", "")


def _shape_findings(target: Target, answer: Answer, prompt: Prompt, input_tokens: int) -> list[str]:
    found = []
    if answer.output_tokens is None:
        found.append("usage-missing: the stream carries no usage, so output tokens are not known.")
    elif answer.output_tokens > PROBE_TOKENS:
        found.append(f"unbounded: {PROBE_TOKENS} output tokens were asked for and {answer.output_tokens} came.")
    elif answer.output_tokens < PROBE_TOKENS and target.dialect.ignore_eos:
        found.append(f"short: {PROBE_TOKENS} output tokens were asked for and {answer.output_tokens} came.")
    if not target.dialect.ignore_eos:
        found.append(f"free-length: {target.dialect.id} cannot hold the output length; compare per token only.")
    if answer.prompt_tokens is not None and answer.prompt_tokens != prompt.tokens:
        found.append(f"prompt-length: a prompt of {prompt.tokens} tokens was counted as {answer.prompt_tokens}.")
    if prompt.tokens > input_tokens:
        found.append(
            f"template: the shortest prompt has {prompt.tokens} tokens, more than the {input_tokens} asked for."
        )
    return found


async def _metrics_page(target: Target) -> tuple[str, list[str]]:
    dialect = target.dialect
    if not dialect.metrics_path:
        return "", [f"no-server-metrics: {dialect.id} has no metrics page; queue, batch and KV use are not measured."]
    try:
        page = await fetch_page(target.pool, dialect.metrics_path)
    except ServerError as e:
        need = f" It needs {dialect.metrics_need}." if dialect.metrics_need else ""
        return "", [f"no-server-metrics: {e}{need}"]
    missing = [role for role in ("running", "waiting", "generation_tokens") if role not in dialect.read_metrics(page)]
    return page, [f"no-server-metrics: {role} is not on the metrics page." for role in missing]
