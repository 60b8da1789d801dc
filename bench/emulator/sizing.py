"""Step times, slots and KV cache of a sizing, as `python cli.py size --json` prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from planner.errors import InputError, UnknownName
from planner.faults import first_fault
from planner.step_time import StepTime
from planner.throughput import ThroughputInputs


class FromSizing(NamedTuple):
    """What a sizing says about the server that is emulated."""

    plan: str
    step: StepTime
    slots: int
    kv_tokens: int


def read_sizing(path: Path, plan: str = "") -> FromSizing:
    """One model plan of the file: the named one, else the favourite.

    Raises InputError when the file is not such a sizing, or its plan has no speed; UnknownName for a plan it lacks.
    """
    rows = {str(row.get("plan")): row.get("sizing") or {} for row in _rows(path)}
    if plan and plan not in rows:
        raise UnknownName.from_known("model plan", plan, rows, where=path.name)
    favourites = [name for name, sizing in rows.items() if (sizing.get("plan") or {}).get("favourite")]
    chosen = plan or next(iter([*favourites, *rows]), "")
    sizing = rows.get(chosen) or {}
    if not sizing.get("inputs"):
        raise InputError(f"model plan {chosen!r} has no speed, so no step takes a known time.", where=path.name,
                         fix="Choose a plan that fits a machine of known bandwidth.")  # fmt: skip
    try:
        inputs = ThroughputInputs.model_validate(sizing["inputs"])
        context, seqs = int(sizing["memory"]["settings"]["context_tokens"]), int(sizing["launch"]["max_num_seqs"])
    except ValidationError as e:
        raise InputError(first_fault(e), where=path.name) from None
    except (KeyError, TypeError, ValueError):
        raise _foreign(path) from None
    if not inputs.kv_capacity:
        raise InputError(f"model plan {chosen!r} holds not one request.", where=path.name)
    return FromSizing(chosen, StepTime.of(inputs, context - inputs.output_tokens), seqs, inputs.kv_capacity * context)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path)) from None
    except ValueError:
        raise _foreign(path) from None
    if not isinstance(found, list) or not all(isinstance(r, dict) and "plan" in r for r in found):
        raise _foreign(path)
    return found


def _foreign(path: Path) -> InputError:
    return InputError("is not a sizing.", where=path.name,
                      fix="Write one with `python cli.py size --case NAME --json > FILE`.")  # fmt: skip
