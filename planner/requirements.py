"""What the team needs: the values that sizing, score and plan are derived from, and what contradicts itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from planner.conditions import Condition
from planner.frozen import Frozen, sha256_of

Level3 = Literal["low", "medium", "high"]


class ModelPlan(Frozen):
    """One model in one precision; `model` is an id of catalog/models.yaml. Bits count what is stored per weight."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,39}$")
    label: str
    model: str
    weight_format: Literal["safetensors", "gguf"] = "safetensors"
    quantization: str = "bf16"
    kv_cache_dtype: Literal["fp16", "bf16", "fp8", "fp32"] = "fp16"
    favourite: bool = False
    note: str = ""


class Hardware(Frozen):
    """A machine at hand or considered; `gpu` is an id of catalog/gpus.yaml."""

    gpu: str
    count: int = Field(default=1, ge=1, le=4096)
    in_house: bool = False
    other_tenants_gb: float = Field(default=0.0, ge=0, le=10_000)
    os: Literal["linux", "windows", "macos"] = "linux"


class Budget(Frozen):
    """Money and power; every amount is optional and stays unknown when it is not stated."""

    currency: str = Field(default="EUR", pattern=r"^[A-Z]{3}$")
    capital: float | None = Field(default=None, ge=0)
    years: float | None = Field(default=None, gt=0, le=20)
    electricity_per_kwh: float | None = Field(default=None, ge=0, le=10)
    hours_per_day: float = Field(default=24.0, gt=0, le=24)


class Requirements(Frozen):
    """Requirements of one case. Times in s, speeds in tok/s, lengths in tokens, shares from 0 to 1."""

    peak_users_min: int = Field(ge=1, le=100_000)
    peak_users_max: int = Field(ge=1, le=100_000)
    user_tok_s_promise: float = Field(gt=0, le=10_000)
    user_tok_s_percentile: int = Field(default=5, ge=1, le=50)
    user_tok_s_target: float = Field(gt=0, le=10_000)
    ttft_s: float = Field(gt=0, le=3600)
    ttft_percentile: int = Field(default=95, ge=50, le=99)
    completion_s: float | None = Field(default=None, gt=0, le=86_400)
    completion_answer_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    input_tokens: int = Field(ge=1, le=2_000_000)
    output_tokens: int = Field(ge=1, le=1_000_000)
    context_tokens: int = Field(ge=16, le=2_000_000)
    shared_prefix_share: float | None = Field(default=None, ge=0, le=1)
    arrival: Literal["constant", "poisson", "gamma"] = "poisson"
    requests_per_user_per_min: float = Field(default=1.0, gt=0, le=600)
    error_share_max: float = Field(default=0.01, ge=0, le=1)
    api: Literal["openai-chat", "openai-completions", "any"] = "openai-chat"
    structured_output: bool = False
    lora: bool = False
    multimodal: bool = False
    metrics_needed: bool = True
    model_plans: tuple[ModelPlan, ...] = Field(min_length=1)
    hardware: tuple[Hardware, ...] = Field(min_length=1)
    current_engine: str | None = None
    operators_full_time: float = Field(default=1.0, ge=0, le=1000)
    operators_part_time: float = Field(default=0.0, ge=0, le=1000)
    upgrade_effort: Level3 = "medium"
    multi_gpu_later: bool = False
    air_gap: bool = False
    data_residency: str = ""
    budget: Budget = Budget()
    notes: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Requirements:
        if self.peak_users_max < self.peak_users_min:
            raise ValueError(
                f"peak users: the upper end {self.peak_users_max} is below the lower end {self.peak_users_min}."
            )
        if self.input_tokens + self.output_tokens > self.context_tokens:
            raise ValueError(
                f"context of {self.context_tokens:,} tokens is smaller than input + output = "
                f"{self.input_tokens + self.output_tokens:,}."
            )
        if self.user_tok_s_target < self.user_tok_s_promise:
            raise ValueError("the target speed is below the promised speed.")
        if sum(p.favourite for p in self.model_plans) > 1:
            raise ValueError("only one model plan can be the favourite.")
        if len({p.id for p in self.model_plans}) != len(self.model_plans):
            raise ValueError("two model plans carry the same id.")
        return self

    @property
    def favourite_plan(self) -> ModelPlan:
        """The model plan marked as favourite, else the first."""
        return next((p for p in self.model_plans if p.favourite), self.model_plans[0])

    def sha256(self) -> str:
        """SHA-256 of the canonical JSON."""
        return sha256_of(self.model_dump(mode="json"))

    def service_levels(self) -> tuple[Condition, ...]:
        """The promise to users as conditions, without a load point.

        The completion target is not among them: it holds for answers of its own length, which load points do not have.
        """
        speed = Condition(
            metric="user_tok_s", statistic=f"p{self.user_tok_s_percentile}", comparison=">=",
            threshold=self.user_tok_s_promise,
        )  # fmt: skip
        first = Condition(
            metric="ttft_ms", statistic=f"p{self.ttft_percentile}", comparison="<=", threshold=self.ttft_s * 1000
        )
        return speed, first


class Contradiction(Frozen):
    """Requirements that cannot all be true: one sentence, the fields, and what would resolve it."""

    fields: tuple[str, ...]
    sentence: str
    way_out: str


def contradictions(r: Requirements) -> tuple[Contradiction, ...]:
    """Requirements that exclude each other, by arithmetic alone."""
    found = []
    if r.completion_s is not None:
        tokens = r.completion_answer_tokens or r.output_tokens
        left_s = r.completion_s - r.ttft_s
        at_target_s = tokens / r.user_tok_s_target
        reachable = int(r.user_tok_s_target * max(0.0, left_s))
        if left_s <= 0:
            found.append(Contradiction(
                fields=("completion_s", "ttft_s"),
                sentence=f"Complete within {r.completion_s:g} s leaves no time after a first token at {r.ttft_s:g} s.",
                way_out="Raise the completion time or lower the time to first token.",
            ))  # fmt: skip
        elif tokens / left_s > r.user_tok_s_target * 1.0001:
            found.append(Contradiction(
                fields=("completion_s", "completion_answer_tokens", "user_tok_s_target"),
                sentence=(
                    f"{tokens:,} tokens within {r.completion_s:g} s need {tokens / left_s:.0f} tok/s after a first "
                    f"token at {r.ttft_s:g} s ({tokens / r.completion_s:.0f} without the wait); at "
                    f"{r.user_tok_s_target:g} tok/s they take {at_target_s:.0f} s."
                ),
                way_out=(
                    f"State the answer length that the {r.completion_s:g} s apply to: about {reachable} tokens fit "
                    f"at {r.user_tok_s_target:g} tok/s."
                ),
            ))  # fmt: skip
    if r.peak_users_max > 1 and r.requests_per_user_per_min * r.output_tokens / r.user_tok_s_target > 60:
        busy_s = r.output_tokens / r.user_tok_s_target
        found.append(Contradiction(
            fields=("requests_per_user_per_min", "output_tokens", "user_tok_s_target"),
            sentence=(
                f"{r.requests_per_user_per_min:g} requests a minute per user, each {busy_s:.0f} s long at "
                f"{r.user_tok_s_target:g} tok/s, is more than one user can read."
            ),
            way_out="Lower the requests per minute or the answer length.",
        ))  # fmt: skip
    return tuple(found)


PRESETS: dict[str, dict[str, object]] = {
    "internal chat": {"input_tokens": 1024, "output_tokens": 400, "context_tokens": 4096, "shared_prefix_share": 0.2,
                      "ttft_s": 2.0, "requests_per_user_per_min": 1.0, "arrival": "poisson"},
    "RAG": {"input_tokens": 6000, "output_tokens": 400, "context_tokens": 8192, "shared_prefix_share": 0.5,
            "ttft_s": 3.0, "requests_per_user_per_min": 1.0, "arrival": "poisson"},
    "agent, multi-turn": {"input_tokens": 12_000, "output_tokens": 600, "context_tokens": 32_768,
                          "shared_prefix_share": 0.8, "ttft_s": 2.0, "requests_per_user_per_min": 2.0,
                          "arrival": "gamma"},
    "batch": {"input_tokens": 2000, "output_tokens": 800, "context_tokens": 4096, "shared_prefix_share": 0.3,
              "ttft_s": 60.0, "requests_per_user_per_min": 1.0, "arrival": "constant"},
}  # fmt: skip
