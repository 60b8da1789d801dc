"""What a person changes in a candidate's contract: each field's choices, and the launch setting that follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.contract import FIELD
from planner.errors import InputError, UnknownName
from planner.launch_settings import LaunchSettings
from planner.poc import Plan


class Edit(NamedTuple):
    """One field of one candidate's contract that reads otherwise than derived; an empty value is not stated."""

    candidate: str
    field: str
    value: str


class Editable(NamedTuple):
    """How a field is edited: one of `choices` (none: free text), and the launch setting that it changes, if any.

    With `least` it is a whole number, and that the smallest.
    """

    choices: tuple[str, ...] = ()
    setting: str = ""
    least: int | None = None


# The engine is the candidate itself; every other field of a candidate's part is a text unless it stands here.
LOCKED = ("engine",)
EDITABLE: dict[str, Editable] = {
    "weight_format": Editable(("safetensors", "gguf")),
    "kv_cache_dtype": Editable(("fp16", "bf16", "fp8", "fp32"), "kv_cache_dtype"),
    "output_length": Editable(("fixed", "free")),
    "prefix_caching": Editable(("on", "off"), "prefix_caching"),
    "max_model_len": Editable((), "max_model_len", 16),
    "max_num_seqs": Editable((), "max_num_seqs", 1),
    "prefill_chunk": Editable((), "step_tokens", 64),
    "tensor_parallel": Editable((), "tensor_parallel", 1),
}
_READ = {"on": True, "off": False}


def editable(field: str) -> Editable:
    """How a field of a candidate's part is edited. Raises UnknownName for one that is not, or is locked."""
    known = [f.name for f in FIELD.values() if f.part == "candidate" and f.name not in LOCKED]
    if field not in known:
        raise UnknownName.from_known("contract field", field, known)
    return EDITABLE.get(field, Editable())


def check_edit(edit: Edit) -> None:
    """Raise InputError for a value that its field cannot have."""
    how, where = editable(edit.field), f"candidate {edit.candidate}, {edit.field}"
    if how.choices and edit.value not in ("", *how.choices):
        raise InputError(f"{edit.value!r} is none of {', '.join(how.choices)}.", where=where)
    if how.least is not None and edit.value and not (edit.value.isdecimal() and int(edit.value) >= how.least):
        what = f"{edit.value!r} is not a whole number of {how.least} or more."
        raise InputError(what, where=where, fix="Write it without units.")


def edited_contract(contract: Mapping[str, str], candidate: str, edits: tuple[Edit, ...]) -> dict[str, str]:
    """A candidate's contract with its edits; what is edited to nothing is not stated. Raises InputError."""
    changed = dict(contract)
    for e in edits:
        if e.candidate == candidate:
            check_edit(e)
            changed[e.field] = e.value
    return {k: v for k, v in changed.items() if v}


def edited_settings(settings: LaunchSettings, candidate: str, edits: tuple[Edit, ...]) -> LaunchSettings:
    """The launch settings that follow the edits, with that as the reason, so that contract and command agree."""
    update: dict[str, object] = {}
    because = dict(settings.because)
    for e in edits:
        how = EDITABLE.get(e.field, Editable())
        if e.candidate == candidate and how.setting and e.value:
            check_edit(e)
            update[how.setting] = int(e.value) if how.least is not None else _READ.get(e.value, e.value)
            because[how.setting] = "stated in the contract by hand"
    return settings.model_copy(update={**update, "because": because}) if update else settings


def edits_of(plan: Plan) -> tuple[Edit, ...]:
    """What a person stated by hand in the contracts of a plan."""
    return tuple(Edit(c.id, field, c.contract.get(field, "")) for c in plan.candidates for field in c.by_hand)
