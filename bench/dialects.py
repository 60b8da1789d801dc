"""What differs between engines for a client: request fields, paths, metric series by role.

Nearly all of it comes from catalog/engines/*.yaml, or from the facts that a plan carries; here stands only what a
catalogue of facts does not say: one class per engine that deviates, and how a role becomes one number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from bundle.manifest import LARGEST
from planner.engine_facts import server
from planner.engine_files import SHIPPED, load_engines
from planner.engine_schema import Engine
from planner.errors import UnknownName
from planner.frozen import Frozen
from planner.poc import DIALECTS
from planner.server_schema import MetricReading, Server

Tokenize = Literal["messages", "content", "none"]
# What bench itself puts into a request, and what makes one request several answers: none of it is a plan's sampling.
NOT_SAMPLING = frozenset({
    "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos",
    "cache_salt", "response_format", "n", "best_of", "n_predict", "truncate_prompt_tokens",
})  # fmt: skip
# Roles as a manifest names them: the catalogue's role, and the part of a histogram.
ROLES: dict[str, tuple[str, str]] = {
    "running": ("running", ""),
    "waiting": ("waiting", ""),
    "kv_use": ("kv_use", ""),
    "preemptions": ("preemptions", ""),
    "prefix_hits": ("prefix_hits", ""),
    "prefix_queries": ("prefix_queries", ""),
    "prompt_tokens": ("prompt_tokens", ""),
    "generation_tokens": ("generation_tokens", ""),
    "ttft_sum_s": ("ttft", "_sum"),
    "ttft_count": ("ttft", "_count"),
}
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# What follows a name (Prometheus text format 0.0.4): labels or none, the value, and it may be a time in ms.
_SAMPLE = re.compile(r'(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+(\S+)')


class Dialect(Frozen):
    """One engine as a client sees it. `tokenize` says what POST /tokenize takes, if there is one."""

    id: str
    max_tokens: str = "max_tokens"
    ignore_eos: bool = False
    min_tokens: bool = False
    cache_salt: bool = False
    health: str = "/v1/models"
    version: str | None = None
    version_key: str = "version"
    metrics_path: str | None = None
    metrics_need: str = ""
    tokenize: Tokenize = "none"
    series: dict[str, tuple[str, ...]] = {}
    reading: dict[str, MetricReading] = {}
    facts: Server | None = None

    @classmethod
    def of(cls, facts: Server) -> Dialect:
        """The dialect that an engine's catalogue entry describes."""
        paths = {name: e.path for name, e in facts.endpoints.items()}
        return cls(
            id=facts.id, max_tokens=facts.request.max_tokens, ignore_eos=facts.request.ignore_eos,
            min_tokens=facts.request.min_tokens, cache_salt=facts.request.cache_salt,
            health=paths.get("health", "/v1/models"), version=paths.get("version"),
            metrics_path=paths.get("metrics"), metrics_need=facts.metrics_page.needs,
            series=facts.metrics, reading=facts.metrics_page.read, facts=facts,
        )  # fmt: skip

    def chat_body(self, model: str, text: str, output_tokens: int, sampling: dict[str, float], *,
                  salt: str = "", stream: bool = True, schema: dict[str, Any] | None = None,
                  free: bool = False) -> dict[str, Any]:  # fmt: skip
        """Body of a chat request with one user message, with fields this engine knows.

        The output length is fixed unless `free`, which makes it a limit; an answer is to fit `schema`.
        """
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            self.max_tokens: output_tokens,
            **{k: int(v) if k in ("seed", "top_k") else v for k, v in sampling.items()},
        }
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if schema is not None:
            answer = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": answer}
        if self.ignore_eos and not free:
            body["ignore_eos"] = True
        if self.min_tokens and not free:
            body["min_tokens"] = output_tokens
        if salt and self.cache_salt:
            body["cache_salt"] = salt
        return body

    def read_metrics(self, page: str) -> dict[str, float]:
        """Values by role from a Prometheus page; a role whose series is not on the page is absent."""
        found = {}
        for role, (name, part) in ROLES.items():
            value = _first(page, [s + part for s in self.series.get(name, ())], average=role == "kv_use")
            if value is not None:
                found[role] = _combined(page, value, self.reading.get(name))
        return found

    def kv_capacity(self, log: str, page: str) -> int | None:
        """KV capacity in tokens: from the start log, else from the metrics page; None for what no cache can hold."""
        stated = self.facts.kv_capacity_tokens(log) if self.facts and log else None
        found = self._capacity_on(page) if stated is None else stated
        return int(found) if found is not None and 0 <= found <= LARGEST else None

    def _capacity_on(self, page: str) -> float | None:
        reading = self.reading.get("kv_capacity")
        for name in self.series.get("kv_capacity", ()):
            if reading and reading.label:
                labels = read_labels(page, name)
                text = labels.get(reading.label, "")
                if text.isascii() and text.isdigit():
                    return int(text)
                continue
            value = read_series(page, name)
            if value is not None:
                return _combined(page, value, reading)
        return None


def read_series(page: str, name: str, *, average: bool = False) -> float | None:
    """Sum (or average) over the label sets of one series, or None when it is not on the page.

    Looks the name up instead of parsing the page: a page has hundreds of lines, and this runs beside the load.
    """
    samples = (_SAMPLE.match(line, len(name)) for line in _lines(page, name))
    values = [v for found in samples if found and (v := _number(found[1])) is not None]
    if not values:
        return None
    return sum(values) / len(values) if average else sum(values)


def read_labels(page: str, name: str) -> dict[str, str]:
    """Labels of the first sample of a series, or nothing; for info series, whose labels are the values."""
    for line in _lines(page, name):
        return dict(_LABEL.findall(line))
    return {}


def _lines(page: str, name: str) -> list[str]:
    found, at = [], 0
    while (at := page.find(name, at)) >= 0:
        end = page.find("\n", at)
        end = len(page) if end < 0 else end
        after = page[at + len(name) : at + len(name) + 1]
        if (at == 0 or page[at - 1] == "\n") and after in ("{", " ", "\t"):
            found.append(page[at:end].rstrip())
        at = end
    return found


def _number(text: str) -> float | None:
    """A sample; NaN and infinity, which the format allows, say nothing that can be kept."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _first(page: str, names: list[str], *, average: bool) -> float | None:
    """Value of the first spelling that is on the page."""
    return next((v for n in names if (v := read_series(page, n, average=average)) is not None), None)


def _combined(page: str, value: float, reading: MetricReading | None) -> float:
    if reading is None:
        return value
    plus, over, times = (read_series(page, n) if n else None for n in (reading.plus, reading.over, reading.times))
    value = value + plus if plus is not None else value
    value = value / over if over else value
    return value * times if times is not None else value


_CLASSES: dict[str, type[Dialect]] = {}


def speaks(engine: str) -> Callable[[type[Dialect]], type[Dialect]]:
    """Register a class as the dialect of an engine that deviates from its facts' plain reading."""

    def register(spoken: type[Dialect]) -> type[Dialect]:
        _CLASSES[engine] = spoken
        return spoken

    return register


@speaks("vllm")
class Vllm(Dialect):
    """POST /tokenize takes the messages and applies the model's template."""

    tokenize: Tokenize = "messages"


@speaks("llama-server")
class LlamaServer(Dialect):
    """POST /tokenize takes bare text; the version stands in /props under another name."""

    tokenize: Tokenize = "content"
    version_key: str = "build_info"


@cache
def _engines() -> dict[str, Engine]:
    return load_engines(SHIPPED)


def dialect(engine: str, facts: Server | None = None) -> Dialect:
    """The dialect of an engine id, from a plan's facts where it carries them; raises UnknownName."""
    if engine == "openai":
        return Dialect(id="openai")
    if facts is None and engine not in DIALECTS:
        raise UnknownName.from_known("engine", engine, DIALECTS)
    return _CLASSES.get(engine, Dialect).of(facts or server(_engines(), engine))
