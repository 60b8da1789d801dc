"""The measurement contract: what must be written down before a number means something, and when two numbers compare.

Every field is data in FIELDS: who states it, whether a change voids older evidence (material) or is only
noted (context), and what a difference between two candidates means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from planner.frozen import Frozen, sha256_of

Part = Literal["shared", "candidate", "observed"]
Difference = Literal["must match", "may be declared", "is compared", "context"]


class Field(NamedTuple):
    """One contract field: `between` says what a difference between two candidates means.

    Where `one_side` is stated, a difference can be declared only if one of the two reads so: an engine that cannot hold
    the output length compares per token, two fixed lengths that differ are two loads.
    """

    name: str
    part: Part
    material: bool
    between: Difference
    meaning: str
    one_side: str = ""

    def declarable(self, left: str, right: str) -> bool:
        """Whether these two values may differ by declaration."""
        if self.between != "may be declared" or not (left and right):
            return False
        return not self.one_side or self.one_side in (left, right)


FIELDS: tuple[Field, ...] = (
    Field("model", "shared", True, "must match", "base model, whatever the weight format"),
    Field("model_revision", "shared", True, "must match", "commit or checksum of the weights"),
    Field("tokenizer", "shared", True, "must match", "tokenizer that counts prompt and output tokens"),
    Field("sampling", "shared", True, "must match", "temperature, top_p, seed"),
    Field("load_generator", "shared", True, "must match", "where the client runs: same machine or another"),
    Field("engine", "candidate", True, "is compared", "engine id of the catalogue"),
    Field("engine_version", "candidate", True, "is compared", "version that was asked for"),
    Field("image", "candidate", False, "context", "container image digest or package set"),
    Field("weight_format", "candidate", True, "may be declared", "safetensors, GGUF, ..."),
    Field("quantization", "candidate", True, "may be declared", "none, FP8, Q8_0, AWQ, ..."),
    Field("kv_cache_dtype", "candidate", True, "may be declared", "precision of the KV cache"),
    Field("output_length", "candidate", True, "may be declared",
          "fixed or free: whether the engine can hold it", one_side="free"),
    Field("max_model_len", "candidate", True, "may be declared", "tokens that one request may use"),
    Field("max_num_seqs", "candidate", True, "is compared", "most requests in one batch, or slots"),
    Field("gpu_memory_share", "candidate", True, "is compared", "share of the GPU memory that the engine may take"),
    Field("prefill_chunk", "candidate", True, "is compared",
          "most prompt tokens in one step, and whether decoding shares that step"),
    Field("prefix_caching", "candidate", True, "may be declared", "on or off"),
    Field("tensor_parallel", "candidate", True, "must match", "number of devices that share the model"),
    Field("gpu", "observed", True, "must match", "device as the driver names it"),
    Field("gpu_count", "observed", True, "must match", "devices that the engine used"),
    Field("engine_version_reported", "observed", True, "is compared", "version that the server reported"),
    Field("driver", "observed", False, "context", "driver version"),
    Field("runtime", "observed", False, "context", "CUDA or ROCm version"),
    Field("os", "observed", False, "context", "operating system"),
    Field("cpu", "observed", False, "context", "processor"),
    Field("memory_limit", "observed", False, "context", "memory the engine may use"),
)  # fmt: skip
FIELD: dict[str, Field] = {f.name: f for f in FIELDS}

UNSTATED = ("", "unknown", "b0-unknown")  # the last is what llama.cpp says of itself when built outside git
Tolerance = Literal["exact", "patch", "minor", "any"]
_KEPT_PARTS = {"exact": 99, "patch": 2, "minor": 1, "any": 0}


class Moved(NamedTuple):
    """A field and its two values; an unstated value is the empty string."""

    field: str
    left: str
    right: str

    def __str__(self) -> str:
        """Read as `field: left -> right`, or as `field: stated by neither`."""
        if not (self.left or self.right):
            return f"{self.field}: stated by neither"
        return f"{self.field}: {self.left or 'not stated'} -> {self.right or 'not stated'}"


class Contract(Frozen):
    """Three parts, hashed apart: agreed for all candidates, asked of one, and what was really there."""

    shared: dict[str, str] = {}
    candidate: dict[str, str] = {}
    observed: dict[str, str] = {}
    declared_differences: tuple[str, ...] = ()

    def stated(self) -> dict[str, str]:
        """All stated fields of the three parts; what is called unknown is not stated."""
        parts = (self.shared, self.candidate, self.observed)
        return {k: v for part in parts for k, v in part.items() if v.strip().lower() not in UNSTATED}

    def material(self) -> dict[str, str]:
        """Stated fields that void older evidence when they change; unknown fields count as context."""
        return {k: v for k, v in self.stated().items() if k in FIELD and FIELD[k].material}

    def full_hash(self) -> str:
        """SHA-256 of all of it, declared differences and context too: what a contract is stored under."""
        return sha256_of(self.model_dump(mode="json"))


ParityState = Literal["comparable", "comparable with a declared difference", "refused"]
# The classes of parity and what each allows, as they are published in docs/definitions.md.
PARITY: dict[ParityState, str] = {
    "comparable": "every field that must match is stated on both sides and equal: every figure compares",
    "comparable with a declared difference": "what differs may be declared and was declared beforehand: only figures "
    "per token compare, and every sentence names the difference",
    "refused": "anything else differs, or is not stated: nothing compares, and the fields are named",
}


class Parity(NamedTuple):
    """Whether two contracts compare; `differences` are the declared ones, or those that refuse."""

    state: ParityState
    differences: tuple[Moved, ...]


def parity(left: Contract, right: Contract) -> Parity:
    """Compare the contracts of two candidates; an unstated field is not equal to anything."""
    a, b = left.stated(), right.stated()
    declared = set(left.declared_differences) | set(right.declared_differences)
    refused, named = [], []
    for field in FIELDS:
        if field.between in ("is compared", "context"):
            continue
        moved = Moved(field.name, a.get(field.name, ""), b.get(field.name, ""))
        if moved.left == moved.right and moved.left:
            continue
        if field.name in declared and field.declarable(moved.left, moved.right):
            named.append(moved)
        else:
            refused.append(moved)
    if refused:
        return Parity("refused", tuple(refused))
    return Parity("comparable with a declared difference" if named else "comparable", tuple(named))


def moved_fields(decided: Contract, seen: Contract, tolerance: Tolerance = "minor") -> tuple[Moved, ...]:
    """Material fields stated in both contracts that differ by more than the version tolerance.

    `patch` lets 0.33.0 -> 0.33.1 pass, `minor` 0.33 -> 0.34, `any` every version; other fields must be equal. Versions
    are compared without what only decorates them: a leading v or b, a commit, a local build label.
    """
    a, b = decided.material(), seen.material()
    return tuple(
        Moved(name, a[name], b[name])
        for name in sorted(a.keys() & b.keys())
        if a[name] != b[name] and not _version_tolerated(name, a, b, tolerance)
    )


def _version_tolerated(name: str, a: Mapping[str, str], b: Mapping[str, str], tolerance: Tolerance) -> bool:
    if not name.startswith("engine_version"):
        return False
    kept = _KEPT_PARTS[tolerance]
    return version_parts(a[name])[:kept] == version_parts(b[name])[:kept]


# v0.33.0 (tags), 0.33.0+cpu (PEP 440 local label), b11434-abc1234 and 11434 (abc1234) (llama.cpp's build_info)
_DECORATION = re.compile(r"^(?:version:?\s*)?[vb]?(?=\d)|\+[\w.]+$|-g?[0-9a-f]{6,40}$|\s*\([^)]*\)$")


def version_parts(text: str) -> tuple[str, ...]:
    """The parts of a version between its dots; a text that is no version is one part, itself."""
    return tuple(_DECORATION.sub("", text.strip().lower()).split("."))
