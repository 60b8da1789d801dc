"""What a launch is made from: settings out of the sizing, the purpose, and the reason for each value."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from planner.frozen import Frozen

PurposeId = Literal["benchmark", "production"]
Accelerator = Literal["NVIDIA", "AMD", "Apple", "CPU"]
LOOPBACK = "127.0.0.1"

WHY: dict[str, str] = {
    "host": "reachable from this machine only",
    "port": "where the client sends",
    "served_name": "the name that requests use, the same for every engine",
    "max_model_len": "tokens of one request, input plus output",
    "max_num_seqs": "largest number of requests in one step",
    "step_tokens": "tokens in one step, stated because every engine has a default of its own",
    "gpu_memory_utilization": "share of the memory budget",
    "kv_cache_dtype": "precision of the KV cache in the sizing",
    "quantization": "converts the weights at load",
    "tensor_parallel": "devices that share the model",
    "prefix_caching": "stated, so that every candidate has the same",
    "queue_limit": "requests that may wait; more are refused at once and do not time out",
    "revision": "the weights that were chosen, whatever is uploaded later",
}


class LaunchSettings(Frozen):
    """What sizing decided for one candidate; `because` says per field which number it came from.

    `model` is a repository or path, for llama-server the GGUF file. The memory split (GiB on one device) is needed by
    engines whose fraction is not the one of vLLM. `config_file` is where a server finds settings that have no flag.
    `accelerator` and `os` are the machine's. `stored_as` is the format that the checkpoint has to bring along, empty
    where the engine converts it at load or nothing is to be converted.
    """

    model: str = Field(min_length=1)
    max_model_len: int = Field(ge=16)
    max_num_seqs: int = Field(ge=1)
    purpose: PurposeId = "benchmark"
    served_name: str = ""
    revision: str = ""
    image_digest: str = Field(default="", pattern=r"^(sha256:[0-9a-f]{64})?$")
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    kv_cache_dtype: Literal["fp16", "bf16", "fp8", "fp32"] = "fp16"
    quantization: str | None = None
    stored_as: str = ""
    tensor_parallel: int = Field(default=1, ge=1)
    prefix_caching: bool = True
    step_tokens: int = Field(default=2048, ge=64)
    queue_limit: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    host: str = LOOPBACK
    port: int | None = Field(default=None, ge=1, le=65_535)
    config_file: str = ""
    accelerator: Accelerator = "NVIDIA"
    os: Literal["linux", "windows", "macos"] = "linux"
    weights_gib: float | None = Field(default=None, gt=0)
    kv_pool_gib: float | None = Field(default=None, gt=0)
    reserve_gib: float | None = Field(default=None, ge=0)
    device_total_gib: float | None = Field(default=None, gt=0)
    because: dict[str, str] = {}

    def why(self, field: str) -> str:
        """The sentence for a field: the caller's, else the general one."""
        return self.because.get(field) or WHY[field]


class Flag(Frozen):
    """One argument (empty value: a switch), environment variable or line of a configuration file, and why."""

    flag: str
    value: str
    why: str


class PurposeRow(NamedTuple):
    """One thing that a measurement and daily use are started with differently, and why."""

    topic: str
    benchmark: str
    production: str
    why: str


PURPOSES: tuple[PurposeRow, ...] = (
    PurposeRow("Requests in one step", "the largest point of the sweep", "the most that keep the promise",
               "A measurement has to find the limit; daily use must stay below it."),
    PurposeRow("Requests that wait", "as many as come", "as many as the peak holds",
               "An overload point must show the queue; users are better refused than left until they time out."),
    PurposeRow("Prefix cache", "as the plan states, reset between runs", "on",
               "Repeated prompts make a measurement look fast and a service be fast."),
    PurposeRow("Cache reset over HTTP", "open where the engine has it", "closed",
               "It lets anyone who reaches the port slow down everyone."),
    PurposeRow("Sampling defaults and seed", "neutral and fixed", "the model's own",
               "Engines compare at equal sampling; the model's makers recommend theirs."),
    PurposeRow("API key", "none, reachable from this machine only", "required where the engine has one",
               "The measured path has no proxy and no key; nobody else can reach it."),
    PurposeRow("After a crash", "stays down", "starts again",
               "A crash is a result and a hidden restart would falsify it."),
    PurposeRow("Access log and route list", "no line per request", "kept without probes, route list hidden",
               "A line per request costs time at high rates; operators need to see who asked."),
)  # fmt: skip
