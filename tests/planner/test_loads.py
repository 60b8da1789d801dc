"""Load points: which shape states what, what the hash counts, and how a sweep reads."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.errors import InputError
from planner.loads import LoadPoint
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Plan


def point(**more: object) -> LoadPoint:
    return LoadPoint.model_validate({"name": "p", "input_tokens": 100, "output_tokens": 50} | more)


def test_the_hash_of_points_that_stand_in_bundles_never_changes() -> None:
    # Computed when closed and open loops were all there was.
    closed = LoadPoint(name="a", in_flight=8, input_tokens=3596, output_tokens=500, shared_prefix=0.2)
    assert closed.load_hash() == "11040d4927a797b54074dc35b2c617f6f32a42eef2651300c0c57eca968f1af9"
    bursts = LoadPoint(name="b", shape="open", rate_per_s=0.8, arrival="gamma", burstiness=0.5, input_tokens=100,
                       output_tokens=50)  # fmt: skip
    assert bursts.load_hash() == "53215581864a17ede0a31ce40f24fc88be348e7eb360a4a127ca50d1d2eadf96"


def test_a_file_counts_by_its_checksum_and_not_by_its_place() -> None:
    here = point(shape="trace", trace_file="day.csv", file_sha256="a" * 64)
    moved = point(shape="trace", trace_file="data/day.csv", file_sha256="a" * 64)
    other = point(shape="trace", trace_file="day.csv", file_sha256="b" * 64)
    assert here.load_hash() == moved.load_hash() != other.load_hash()


def test_a_schema_is_another_load_and_a_pairs_name_is_not() -> None:
    plain = point(in_flight=2)
    asked = point(in_flight=2, json_schema={"type": "object"})
    named = point(in_flight=2, json_schema={"type": "object"}, pair_of="p0")
    assert plain.load_hash() != asked.load_hash() == named.load_hash()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"shape": "open"}, "an open loop rate_per_s"),
        ({"shape": "ramp", "rate_per_s": 1.0}, "shape ramp states rate_per_s, rate_to_per_s, ramp_s"),
        ({"shape": "trace", "trace_file": "t.csv", "in_flight": 2}, "shape trace states trace_file, and no other"),
        ({"shape": "closed", "in_flight": 2, "aggressors": 3}, "a closed loop states in_flight"),
        ({"shape": "trace", "trace_file": "t.csv", "prompts_file": "p.jsonl"}, "which has a file already"),
        ({"shape": "quality", "quality_file": "q.jsonl", "in_flight": 1, "json_schema": {}}, "json_schema does not go"),
        ({"in_flight": 1, "pair_of": "x"}, "there is no json_schema"),
        # From 2 to 6 req/s in 30 s: 4 on average, 120 in all.
        ({"shape": "ramp", "rate_per_s": 2, "rate_to_per_s": 6, "ramp_s": 30}, "write requests: 120 or more"),
    ],
)  # fmt: skip
def test_an_amount_that_does_not_fit_the_shape_is_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        point(**fields)


PLAN = """
schema_version: 1
case: test
title: Sweep
shared_contract: {model: m}
candidates:
- {id: vllm, role: favourite, engine: vllm, model_name: m, launch: {url: 'http://127.0.0.1:8000'}}
load_points:
- {name: up, shape: sweep, in_flight: 6, input_tokens: 64, output_tokens: 32, requests: 10}
- {name: one, in_flight: 1, input_tokens: 64, output_tokens: 32}
stages:
- {name: A, points: [one, up]}
"""


def test_a_sweep_reads_as_its_closed_points_each_with_four_rounds() -> None:
    plan = plan_from_yaml(PLAN)
    steps = [(p.name, p.shape, p.in_flight, p.requests) for p in plan.load_points]
    assert steps == [("up-1", "closed", 1, 10), ("up-2", "closed", 2, 10), ("up-4", "closed", 4, 16),
                     ("up-6", "closed", 6, 24), ("one", "closed", 1, 16)]  # fmt: skip
    assert plan.stages[0].points == ("one", "up-1", "up-2", "up-4", "up-6")


def test_a_step_of_a_sweep_is_the_same_load_as_the_closed_point_alone() -> None:
    plan = plan_from_yaml(PLAN)
    assert plan.point("up-4").load_hash() == LoadPoint(name="x", in_flight=4, input_tokens=64,
                                                       output_tokens=32).load_hash()  # fmt: skip


def test_a_plan_with_every_shape_survives_its_file() -> None:
    points = [
        point(name="ramp", shape="ramp", rate_per_s=1, rate_to_per_s=3, ramp_s=5),
        point(name="trace", shape="trace", trace_file="t.csv", file_sha256="a" * 64),
        point(name="long", shape="interference", in_flight=2, aggressors=1, aggressor_at_s=1, aggressor_input_tokens=9),
        point(name="set", shape="quality", in_flight=1, quality_file="q.jsonl"),
        point(name="plain", in_flight=2),
        point(name="json", in_flight=2, json_schema={"type": "object"}, pair_of="plain"),
    ]  # fmt: skip
    raw = plan_from_yaml(PLAN).model_dump() | {"load_points": points, "stages": [{"name": "A", "points": ["ramp"]}]}
    plan = Plan.model_validate(raw)
    assert plan_from_yaml(plan_to_yaml(plan)) == plan


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("pair_of: nobody", "pair_of names 'nobody', which is no load point"),
        ("pair_of: one, in_flight: 2", "must offer the same load"),
    ],
)
def test_a_pair_offers_the_same_load(change: str, sentence: str) -> None:
    point = f"- {{name: json, in_flight: 1, input_tokens: 64, output_tokens: 32, json_schema: {{}}, {change}}}"
    point = point.replace("in_flight: 1, ", "") if "in_flight: 2" in change else point
    with pytest.raises(InputError, match=sentence):
        plan_from_yaml(PLAN.replace("stages:", f"{point}\nstages:"))


def test_a_sweep_that_is_wrong_is_named_like_any_other_point() -> None:
    with pytest.raises(InputError, match="shape sweep states in_flight"):
        plan_from_yaml(PLAN.replace("in_flight: 6, ", ""))
