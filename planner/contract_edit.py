"""What a person changes in a candidate's contract: each field's choices, and the launch setting that follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from planner.contract import FIELD
from planner.errors import InputError, UnknownName
from planner.faults import first_fault
from planner.launch_settings import LaunchSettings
from planner.poc import Plan


class Edit(NamedTuple):
    """One field of one candidate's contract that reads otherwise than derived; an empty value is not stated."""

    candidate: str
    field: str
    value: str


class Editable(NamedTuple):
    """How a field is edited: one of `choices` (none: free text), and the launch setting that it changes, if any."""

    choices: tuple[str, ...] = ()
    setting: str = ""
    whole_number: bool = False


# The engine is the candidate itself; every other field of a candidate's part is a text unless it stands here.
LOCKED = ("engine",)
EDITABLE: dict[str, Editable] = {
    "weight_format": Editable(("safetensors", "gguf")),
    "kv_cache_dtype": Editable(("fp16", "bf16", "fp8", "fp32"), "kv_cache_dtype"),
    "output_length": Editable(("fixed", "free")),
    "prefix_caching": Editable(("on", "off"), "prefix_caching"),
    "max_model_len": Editable((), "max_model_len", True),
    "max_num_seqs": Editable((), "max_num_seqs", True),
    "prefill_chunk": Editable((), "step_tokens", True),
    "tensor_parallel": Editable((), "tensor_parallel", True),
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
    if how.whole_number and edit.value and not (edit.value.isdigit() and int(edit.value)):
        raise InputError(f"{edit.value!r} is not a whole number above 0.", where=where, fix="Write it without units.")


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
            update[how.setting] = int(e.value) if how.whole_number else _READ.get(e.value, e.value)
            because[how.setting] = "stated in the contract by hand"
    if not update:
        return settings
    try:
        return LaunchSettings.model_validate({**settings.model_dump(), **update, "because": because})
    except ValidationError as e:
        raise InputError(first_fault(e), where=f"candidate {candidate}, contract") from None


def edits_of(plan: Plan) -> tuple[Edit, ...]:
    """What a person stated by hand in the contracts of a plan."""
    return tuple(Edit(c.id, field, c.contract.get(field, "")) for c in plan.candidates for field in c.by_hand)
