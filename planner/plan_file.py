"""A plan as the file that bench runs: YAML with its conditions as one line each, and a schema version."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import ValidationError

from planner.condition_line import format_condition, parse_condition
from planner.errors import InputError, SchemaTooNew
from planner.faults import first_fault
from planner.poc import Plan
from planner.yaml_files import must_not_unfold

PLAN_SCHEMA = 1


def _lines(value: Any) -> Any:
    if isinstance(value, str):
        return parse_condition(value)
    return [parse_condition(v) if isinstance(v, str) else v for v in value]


def plan_to_yaml(plan: Plan) -> str:
    """Write a plan as YAML, conditions as one line each."""
    data = plan.model_dump(mode="json", exclude_defaults=True)
    data = {"schema_version": PLAN_SCHEMA, **{k: v for k, v in data.items() if k != "schema_version"}}
    if plan.hypotheses:
        for raw, h in zip(data["hypotheses"], plan.hypotheses, strict=True):
            raw["conditions"] = [format_condition(c) for c in h.conditions]
    if plan.service_levels:
        data["service_levels"] = [format_condition(c) for c in plan.service_levels]
    for raw, stage in zip(data["stages"], plan.stages, strict=True):
        if stage.rule:
            raw["rule"]["keeps"] = format_condition(stage.rule.keeps)
    return yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=110)


def plan_from_yaml(text: str, *, where: str = "plan") -> Plan:
    """Read a plan file.

    Raises SchemaTooNew for a file of a newer Flipline, InputError with the field and the fault otherwise.
    """
    try:
        data = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:  # ValueError: a date such as 2026-13-01
        raise InputError(f"is not YAML: {str(e).splitlines()[0]}.", where=where) from None
    must_not_unfold(data, where)
    if not isinstance(data, dict):
        raise InputError(
            "is not a plan file: it has no fields.", where=where, fix="Download it from the PoC plan page."
        )
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError("schema_version is missing.", where=where, fix=f"Write schema_version: {PLAN_SCHEMA}.")
    if version > PLAN_SCHEMA:
        raise SchemaTooNew(
            f"schema version {version} is newer than {PLAN_SCHEMA}, which this Flipline reads.", where=where,
            fix="Update Flipline on this machine.",
        )  # fmt: skip
    try:
        for h in data.get("hypotheses") or []:
            h["conditions"] = _lines(h["conditions"])
        data["service_levels"] = _lines(data.get("service_levels") or [])
        for s in data.get("stages") or []:
            if s.get("rule"):
                s["rule"]["keeps"] = _lines(s["rule"]["keeps"])
        return Plan.model_validate(data)
    except (KeyError, TypeError, AttributeError) as e:
        raise InputError(f"a field is missing or of the wrong form: {e}.", where=where) from None
    except ValidationError as e:
        raise InputError(first_fault(e), where=where) from None
