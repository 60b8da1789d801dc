"""The load points of a plan: what is offered to a server, in which shape, and how much of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from planner.frozen import Frozen, sha256_of

Shape = Literal["closed", "open", "ramp", "sweep", "trace", "interference", "quality"]
Arrival = Literal["constant", "poisson", "gamma"]

# What each shape states; none of it may be stated by another shape.
AMOUNT: dict[Shape, tuple[str, ...]] = {
    "closed": ("in_flight",),
    "open": ("rate_per_s",),
    "ramp": ("rate_per_s", "rate_to_per_s", "ramp_s"),
    "sweep": ("in_flight",),
    "trace": ("trace_file",),
    "interference": ("in_flight", "aggressors", "aggressor_at_s", "aggressor_input_tokens"),
    "quality": ("in_flight", "quality_file"),
}
_AMOUNTS = tuple(dict.fromkeys(name for names in AMOUNT.values() for name in names))
FILES = ("trace_file", "quality_file", "prompts_file")
MOST_INPUT_TOKENS, MOST_OUTPUT_TOKENS = 2_000_000, 1_000_000
# Fields that came later: a hash counts them only where they are stated, so that older points keep theirs.
_LATER = ("rate_to_per_s", "ramp_s", "aggressors", "aggressor_at_s", "aggressor_input_tokens",
          "aggressor_output_tokens", "json_schema", "pair_of", *FILES, "file_sha256")  # fmt: skip
_NOT_THE_LOAD = ("name", "requests", "warmup_requests", "pair_of", *FILES)


class LoadPoint(Frozen):
    """One load that is offered to a server: shape, amount, lengths in tokens, requests per repeat.

    closed: `in_flight` at once. open: `rate_per_s`. ramp: from `rate_per_s` to `rate_to_per_s` within `ramp_s`, then
    held. sweep: a plan reads it as the closed points 1, 2, 4, ... `in_flight`. trace: times and lengths of
    `trace_file`; lengths stated here are those of the warm-up. interference: `in_flight` victims decode, and
    `aggressors` long prompts come `aggressor_at_s` after the start. quality: the prompts of `quality_file`.
    `prompts_file` brings own prompts to any other shape but trace; `file_sha256` is the checksum of the point's file.
    With `json_schema` every answer is to fit it; `pair_of` names the point that offers the same load without.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=60)
    shape: Shape = "closed"
    in_flight: int | None = Field(default=None, ge=1, le=10_000)
    rate_per_s: float | None = Field(default=None, gt=0, le=100_000)
    arrival: Arrival = "poisson"
    burstiness: float = Field(default=1.0, gt=0)
    input_tokens: int = Field(ge=1, le=MOST_INPUT_TOKENS)
    output_tokens: int = Field(ge=1, le=MOST_OUTPUT_TOKENS)
    shared_prefix: float = Field(default=0.0, ge=0, le=1)
    requests: int = Field(default=16, ge=1, le=1_000_000)
    warmup_requests: int = Field(default=2, ge=0, le=10_000)
    rate_to_per_s: float | None = Field(default=None, gt=0, le=100_000)
    ramp_s: float | None = Field(default=None, gt=0, le=1_000_000)
    aggressors: int | None = Field(default=None, ge=1, le=10_000)
    aggressor_at_s: float | None = Field(default=None, ge=0, le=1_000_000)
    aggressor_input_tokens: int | None = Field(default=None, ge=1, le=MOST_INPUT_TOKENS)
    aggressor_output_tokens: int = Field(default=16, ge=1, le=MOST_OUTPUT_TOKENS)
    trace_file: str | None = Field(default=None, min_length=1)
    quality_file: str | None = Field(default=None, min_length=1)
    prompts_file: str | None = Field(default=None, min_length=1)
    file_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    json_schema: dict[str, Any] | None = None
    pair_of: str | None = None

    @model_validator(mode="after")
    def _amount_fits_shape(self) -> LoadPoint:
        where = f"load point {self.name!r}: "
        if [n for n in _AMOUNTS if getattr(self, n) is not None] != [n for n in _AMOUNTS if n in AMOUNT[self.shape]]:
            if self.shape in ("closed", "open"):
                raise ValueError(f"{where}a closed loop states in_flight, an open loop rate_per_s.")
            raise ValueError(f"{where}shape {self.shape} states {', '.join(AMOUNT[self.shape])}, and no other amount.")
        if self.prompts_file and self.shape in ("trace", "quality"):
            raise ValueError(f"{where}prompts_file does not go with shape {self.shape}, which has a file already.")
        if self.json_schema is not None and self.shape in ("quality", "interference"):
            raise ValueError(f"{where}json_schema does not go with shape {self.shape}.")
        if self.pair_of is not None and self.json_schema is None:
            raise ValueError(f"{where}pair_of names the same load without json_schema, and there is no json_schema.")
        if self.shape == "ramp" and self.requests < (least := round(self.expected_by(self.ramp_s or 0.0))):
            raise ValueError(f"{where}the ramp alone sends about {least:,} requests: write requests: {least} or more.")
        return self

    @property
    def file(self) -> str | None:
        """The file that the point needs, as the plan names it."""
        return self.trace_file or self.quality_file or self.prompts_file

    @property
    def free_length(self) -> bool:
        """Answers end by themselves: output_tokens is a limit, not a length."""
        return self.json_schema is not None or self.shape == "quality"

    def expected_by(self, t_s: float) -> float:
        """Requests that an open loop or ramp has sent on average by `t_s` seconds: the rate, integrated."""
        start = self.rate_per_s or 0.0
        if self.rate_to_per_s is None or self.ramp_s is None:
            return start * t_s
        inside = min(t_s, self.ramp_s)
        rise = (self.rate_to_per_s - start) / self.ramp_s
        return start * inside + rise * inside**2 / 2 + self.rate_to_per_s * (t_s - inside)

    def stated(self) -> dict[str, Any]:
        """The point as plain values; fields that came later only where they are not the default."""
        data = self.model_dump(mode="json")
        fields = type(self).model_fields
        return {k: v for k, v in data.items() if k not in _LATER or v != fields[k].default}

    def load_hash(self) -> str:
        """SHA-256 of what defines the load.

        Not part of it: the name, the number of requests, and the place of a file, whose checksum counts instead.
        """
        return _load_hash(self) if self.json_schema is None else _hash_of(self)  # a schema cannot be a key

    def in_words(self) -> str:
        """Load and lengths in one short phrase."""
        lengths = f"{self.input_tokens:,} in / {self.output_tokens:,} out"
        if self.shape == "trace":
            return f"trace {self.trace_file}"
        if self.shape == "quality":
            return f"quality set {self.quality_file}, {self.in_flight} in flight"
        amount = f"{self.in_flight} in flight"
        if self.shape == "open":
            amount = f"{self.rate_per_s:g} req/s {self.arrival}"
        elif self.shape == "ramp":
            amount = f"{self.rate_per_s:g} to {self.rate_to_per_s:g} req/s {self.arrival} in {self.ramp_s:g} s"
        elif self.shape == "interference":
            amount += f" against {self.aggressors} prompts of {self.aggressor_input_tokens:,}"
        return f"{amount}, {lengths}" + (", JSON" if self.json_schema is not None else "")

    def steps(self) -> tuple[LoadPoint, ...]:
        """A sweep as its closed points, each with at least four rounds; any other point as it is."""
        if self.shape != "sweep" or self.in_flight is None:
            return (self,)
        amounts = [1 << i for i in range(self.in_flight.bit_length())]
        amounts += [self.in_flight] if self.in_flight not in amounts else []
        return tuple(
            self.model_copy(update={"name": f"{self.name}-{n}", "shape": "closed", "in_flight": n,
                                    "requests": max(self.requests, 4 * n),
                                    "pair_of": self.pair_of and f"{self.pair_of}-{n}"})
            for n in amounts
        )  # fmt: skip


def _hash_of(point: LoadPoint) -> str:
    return sha256_of({k: v for k, v in point.stated().items() if k not in _NOT_THE_LOAD})


_load_hash = lru_cache(maxsize=1024)(_hash_of)  # every figure is held against its load point's, a page asks thousands


def without_sweeps(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The raw fields of a plan with each sweep written out: in load_points, and in the stages that name it.

    What is not of the right form stays as it is, for the plan's own checks.
    """
    found: dict[str, tuple[LoadPoint, ...]] = {}
    points: list[Any] = []
    given = plan.get("load_points")
    for raw in given if isinstance(given, list | tuple) else ():
        shape = raw.get("shape") if isinstance(raw, Mapping) else getattr(raw, "shape", None)
        steps = _steps(raw) if shape == "sweep" else None
        points += [raw] if steps is None else steps
        if steps:
            found[steps[0].name.removesuffix("-1")] = steps
    if not found:
        return dict(plan)

    def names(stage: Any) -> Any:
        if not isinstance(stage, Mapping) or not isinstance(stage.get("points"), list | tuple):
            return stage
        own = [[p.name for p in found[n]] if n in found else [n] for n in stage["points"]]
        return {**stage, "points": [n for group in own for n in group]}

    stages = [s if isinstance(s, Mapping) else s.model_dump() for s in plan.get("stages") or ()]
    return {**plan, "load_points": points, "stages": [names(s) for s in stages]}


def _steps(raw: Any) -> tuple[LoadPoint, ...] | None:
    try:
        return LoadPoint.model_validate(raw).steps()
    except ValidationError:
        return None  # the plan says what is wrong, and where


def fault_in_pairs(points: Iterable[LoadPoint]) -> str:
    """What is wrong with the first pair whose two points do not offer the same load, else nothing."""
    known = {p.name: p for p in points}
    for p in known.values():
        if p.pair_of is None:
            continue
        plain = known.get(p.pair_of)
        if plain is None:
            return f"load point {p.name!r}: pair_of names {p.pair_of!r}, which is no load point of the plan."
        alone = p.model_copy(update={"json_schema": None, "pair_of": None})
        if alone.load_hash() != plain.load_hash() or p.requests != plain.requests:
            return f"load point {p.name!r}: its pair {p.pair_of!r} must offer the same load, json_schema apart."
    return ""
