"""A plan file that anybody may have written: one sentence for what cannot be, however it is made to hang."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Plan

PLAN = """
schema_version: 1
case: x
title: t
shared_contract: {model: m}
candidates:
- {id: vllm, role: favourite, engine: vllm, model_name: m, launch: {url: "http://127.0.0.1:8000"}}
load_points:
- name: p
  in_flight: 2
  input_tokens: 16
  output_tokens: 4
  json_schema: SCHEMA
stages: [{name: A, points: [p]}]
"""
# Each level stands nine times in the next: 9^10 leaves.
BOMB = "{$defs: {l0: &l0 {type: string}" + "".join(
    f", l{i}: &l{i} {{anyOf: [{', '.join([f'*l{i - 1}'] * 9)}]}}" for i in range(1, 11)
) + "}}"  # fmt: skip


def read(schema: str) -> Plan:
    return plan_from_yaml(PLAN.replace("SCHEMA", schema), where="plan.yaml")


def test_aliases_that_unfold_without_end_are_refused() -> None:
    with pytest.raises(InputError, match=r"plan\.yaml: unfolds to more than 1,000,000 values"):
        read(BOMB)


def test_a_few_aliases_are_as_good_as_what_they_stand_for() -> None:
    plan = read("{type: object, properties: {a: &text {type: string}, b: *text}}")
    assert plan.load_points[0].json_schema == {
        "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    }  # fmt: skip
    assert plan_from_yaml(plan_to_yaml(plan)).sha256() == plan.sha256()


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("&a {anyOf: [*a]}", "is nested deeper than 100 levels"),
        ("{x: " * 200 + "1" + "}" * 200, "is nested deeper than 100 levels"),
        ("{x: " * 20_000, "is not YAML"),
        ("{x: 2026-13-45}", "is not YAML: month must be in 1..12"),
        (f"{{x: {'1' * 6000}}}", "is not YAML: Exceeds the limit"),
    ],
    ids=["in itself", "deep", "without end", "no day", "long number"],
)
def test_what_cannot_be_is_one_sentence(schema: str, sentence: str) -> None:
    with pytest.raises(InputError, match=rf"plan\.yaml: {sentence}"):
        read(schema)


def test_a_stage_that_names_a_point_twice_says_how_to_run_it_again() -> None:
    twice = PLAN.replace("SCHEMA", "{}").replace("points: [p]", "points: [p, p]")
    with pytest.raises(InputError, match=r"stage A: it names a load point twice; raise `repeats` to run it again"):
        plan_from_yaml(twice, where="plan.yaml")
