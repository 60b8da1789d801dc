"""The schema of one server in catalog/engines/*.yaml: what is started, asked, read from its log and made safe."""

from __future__ import annotations

import re
from datetime import date
from math import prod
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from planner.frozen import Frozen

Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Parameter(Frozen):
    """The flag or variable of a role, the one that switches it off, the default; `together` are set alike."""

    flag: str
    default: str
    switch_off: str = ""
    also: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    note: str = ""


class Endpoint(Frozen):
    """An HTTP route and what must be set for it to answer."""

    method: Literal["GET", "POST"]
    path: str
    needs: str = ""
    note: str = ""


class MetricReading(Frozen):
    """How a role's value comes from its series: a label of an info series, or combined with a second series."""

    label: str | None = None
    times: str | None = None
    over: str | None = None
    plus: str | None = None


class MetricsPage(Frozen):
    """What the metrics page needs, roles that are not read plainly, and which versions spell a series how.

    `versions` names, for a series of `metrics` that not every version has, the versions that do.
    """

    needs: str = ""
    read: dict[str, MetricReading] = {}
    versions: dict[str, Text] = {}
    note: str = ""
    source: str


class LogPattern(Frozen):
    """A line of the start log; the value is the product of the groups in `multiply`."""

    regex: str
    multiply: tuple[str, ...] = Field(min_length=1)
    example: str
    expect: float
    source: str
    note: str = ""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as e:
            raise ValueError(f"is not a regular expression: {e}.") from None
        return value

    def read(self, text: str) -> float | None:
        """The value in the last matching line of a log, or None."""
        matches = list(re.finditer(self.regex, text))
        return prod(float(matches[-1][g].replace(",", "")) for g in self.multiply) if matches else None


class Streaming(Frozen):
    """How answers arrive: what the first chunk holds, where reasoning and usage stand, how tokens are counted."""

    first_chunk: str
    first_chunk_has_token: bool
    reasoning_field: str
    usage: str
    continuous_usage: str
    cached_tokens: str
    counting: str
    source: str


class RequestFields(Frozen):
    """Names that a request may use; `unknown_fields` says what the server does with others."""

    max_tokens: str
    also_max_tokens: tuple[str, ...] = ()
    ignore_eos: bool
    min_tokens: bool
    cache_salt: bool
    unknown_fields: str


class FairRun(Frozen):
    """One default that skews a comparison: made equal by a flag, declared beforehand, or beyond reach."""

    topic: str
    default: str
    by: Literal["equalised", "declared", "cannot"]
    how: str
    effect: str


class Trap(Frozen):
    """Something that cost others a day, and where it was reported."""

    text: str
    source: str


class LaunchFacts(Frozen):
    """The start command, where the model goes in it, the image and the default port.

    `image_digest` (sha256:...) is empty where nobody read it, and `image_digest_basis` says who did; `image_command` is
    the command inside the image where it differs, `image_needs` what has to be done to the image first;
    `cache_variable` names the folder of downloaded models; `config_flag` takes a YAML file with settings that have no
    flag.
    """

    command: tuple[str, ...] = Field(min_length=1)
    model: str
    image: str
    image_digest: str = Field(default="", pattern=r"^(sha256:[0-9a-f]{64})?$")
    image_digest_basis: str = ""
    image_basis: str = ""
    image_command: tuple[str, ...] = ()
    image_needs: tuple[Text, ...] = ()
    cache_variable: str = ""
    shared_memory_gb: float | None = Field(default=None, gt=0)
    shared_memory_basis: str = ""
    config_flag: str = ""
    port: int


class SafeSetting(Frozen):
    """A flag (empty value: a switch) or variable that closes what stands open; `only` names the one purpose for it."""

    flag: str
    value: str = ""
    why: str
    only: Literal["benchmark", "production"] | None = None


class Security(Frozen):
    """What stands open by default, what an API key covers and what not, and the settings that close it.

    `keys` are environment variables that hold a key, each with the flag that takes it, or nothing where the server
    reads the variable itself. `remains` is what no setting closes, and what has to stand in front of it.
    """

    bind: str
    keys: dict[str, str]
    key_covers: str
    open_routes: tuple[str, ...]
    cors: str
    telemetry: str
    logging: str
    settings: tuple[SafeSetting, ...] = ()
    remains: tuple[str, ...] = ()
    source: tuple[str, ...] = Field(min_length=1)


class Server(Frozen):
    """A server that can be started and measured; `section_sources` is where its sections were read."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    name: str
    version: str
    date: date
    section_sources: dict[str, tuple[Text, ...]] = {}
    launch: LaunchFacts
    parameters: dict[str, Parameter]
    endpoints: dict[str, Endpoint]
    metrics_page: MetricsPage
    metrics: dict[str, tuple[str, ...]] = {}
    log_patterns: dict[str, LogPattern] = {}
    streaming: Streaming
    request: RequestFields
    fair_run: tuple[FairRun, ...]
    security: Security | None = None
    traps: tuple[Trap, ...] = ()

    def kv_capacity_tokens(self, log: str) -> int | None:
        """KV tokens that the start log states, or None when no line says so."""
        pattern = self.log_patterns.get("kv_capacity")
        found = pattern.read(log) if pattern else None
        return None if found is None else int(found)
