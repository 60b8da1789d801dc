"""Hypotheses from requirements: which a case asks, what each says, and which points they bring."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import format_condition
from planner.errors import NotAllowed, UnknownName
from planner.hypotheses import BY_ID, TEMPLATES, generate, offer, written
from planner.hypothesis_case import Case, QualitySet, interference_point
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.planning import Roles, case_of, load_points, make_plan, stages
from planner.poc import Hypothesis, Launch, Plan, PlanCandidate
from planner.requirements import Hardware, Requirements
from tests.planner.test_scoring import NORTIA

NOW = datetime(2026, 11, 30, tzinfo=UTC)
SET = QualitySet("set.jsonl", "0" * 64, 16)


def candidate(id: str, role: str = "favourite", quantization: str = "fp8", engine: str = "vllm") -> PlanCandidate:
    return PlanCandidate.model_validate({
        "id": id, "role": role, "engine": engine, "model_name": "m", "contract": {"quantization": quantization},
        "launch": Launch(command=("serve",)),
    })  # fmt: skip


PAIR = (candidate("vllm"), candidate("ollama", "baseline", engine="llama-server"))


def case(candidates: tuple[PlanCandidate, ...] = PAIR, **more: object) -> Case:
    r = NORTIA.model_copy(update=more)
    points = load_points(r, 16)
    baseline = next((c.id for c in candidates if c.role == "baseline"), None)
    return case_of(r, Roles("vllm", baseline), candidates, points, stages(r, points, "vllm")[0].points, SET)


def asked(c: Case) -> dict[str, Hypothesis]:
    return {w.hypothesis.id: w.hypothesis for w in generate(c)}


def lines(h: Hypothesis) -> list[str]:
    return [format_condition(c) for c in h.conditions]


def plan(r: Requirements = NORTIA) -> Plan:
    points = load_points(r, 16)
    return make_plan(
        case="nortia", title="t", requirements=r, roles=Roles("vllm", "ollama"), candidates=PAIR, points=points,
        shared_contract={}, declared_differences=(), expectations=(), now=NOW, quality=SET,
    )  # fmt: skip


def test_the_seeds_six_come_out_for_nortia() -> None:
    """Section 9 of the seed: starts, 3x at 16, 20 tok/s at 16, 2 s at peak, overload, a band a regime."""
    found = asked(case())
    assert lines(found["H1"]) == [
        "vllm: started is true", "ollama: started is true",
        "vllm: completed_share is 1 at single", "ollama: completed_share is 1 at single",
    ]  # fmt: skip
    assert lines(found["H2"]) == ["vllm over ollama: output_tok_s >= 3 x at parallel-16 near 10 %"]
    assert lines(found["H3"]) == ["vllm: user_tok_s p5 >= 20 tok/s at parallel-16 near 10 %"]
    assert lines(found["H4"]) == ["vllm: ttft p95 <= 2 s at every of parallel-50, peak near 10 %"]
    assert "vllm: oom <= 0 at overload" in lines(found["H5"])
    assert found["H1"].stakes == "ends the plan" and found["H1"].depends_on == ()
    assert all(h.depends_on == ("H1",) for h in found.values() if h.id != "H1")


def test_the_band_is_asked_once_a_regime_at_one_point_each() -> None:
    """Sweep 1, 2, 4, 8, 16, 32 falls into the batch bands 1, 2-7, 8-31, 32+ of planner.calibration."""
    found = asked(case())
    assert [lines(found[f"H6-{i}"])[0].split(" at ")[1] for i in (1, 2, 3, 4)] == [
        "single", "parallel-4", "parallel-16", "parallel-32",
    ]  # fmt: skip
    assert "8 to 31 in flight, prefill-heavy, contexts 1k to 8k" in found["H6-3"].statement  # 3,596 in, 500 out


def test_one_user_is_one_regime_and_no_name_is_invented() -> None:
    alone = asked(case(peak_users_min=1, peak_users_max=1))
    assert lines(alone["H6"]) == ["vllm: measured_over_bound between 0.4 and 0.95 x at single"]
    assert lines(alone["H4"]) == ["vllm: ttft p95 <= 2 s at every of single, peak near 10 %"]


def test_without_a_baseline_nothing_is_compared_with_it() -> None:
    assert "H2" not in asked(case((candidate("vllm"),)))


@pytest.mark.parametrize(
    ("change", "id", "line"),
    [
        ({"shared_prefix_share": 0.5}, "H-prefix", "vllm: prefix_hit >= 0.4 at parallel-16"),  # 0.8 of a half
        ({"structured_output": True}, "H-json", "vllm: structured_cost <= 1.2 x at json"),
        ({"input_tokens": 12_000, "context_tokens": 16_384}, "H-gap",
         "vllm: itl_disturbed p99 <= 200 ms at interference near 10 %"),  # 4 tokens at 20 tok/s
        ({"hardware": (Hardware(gpu="nvidia-gb10-dgx-spark", other_tenants_gb=4),)}, "H-beside",
         "vllm: kv_capacity >= 81920 tokens"),  # 20 users x 4,096
    ],
)  # fmt: skip
def test_what_the_requirements_ask_for_is_in_the_plan_and_what_they_hint_at_is_offered(
    change: dict[str, object], id: str, line: str
) -> None:
    assert id not in asked(case())
    assert id in [w.template.id for w in offer(case())]  # Nortia hints at each
    assert line in lines(asked(case(**change))[id])


def test_two_precisions_ask_for_the_loss_between_them_and_one_for_a_pass_rate() -> None:
    two = (*PAIR, candidate("vllm-bf16", "challenger", "bf16"))
    assert lines(asked(case(two))["H-quality"]) == ["vllm over vllm-bf16: quality_loss <= 0.05 at quality"]
    (alone,) = (w.hypothesis for w in offer(case()) if w.template.id == "H-answers")
    assert lines(alone) == ["vllm: pass_rate >= 0.9 at quality"]


def test_with_two_precisions_the_loss_is_asked_and_no_pass_rate_is_offered() -> None:
    two = (*PAIR, candidate("vllm-bf16", "challenger", "bf16"))
    assert "H-answers" not in [w.template.id for w in offer(case(two))]


def test_more_than_one_in_flight_has_a_band_of_its_own() -> None:
    bands = {id: lines(h)[0].split(": ")[1] for id, h in asked(case()).items() if id.startswith("H6")}
    assert bands["H6-1"] == "measured_over_bound between 0.4 and 0.95 x at single"
    assert bands["H6-3"] == "measured_over_bound between 0.3 and 1.1 x at parallel-16"


def test_a_prompt_that_fits_one_step_is_no_reason_to_ask_for_pauses() -> None:
    """vLLM takes 8,192 prompt tokens a step: the next token is the first that spans two."""
    fits, spans = (case(input_tokens=n, output_tokens=500, context_tokens=16_384) for n in (8192, 8193))
    assert "H-gap" not in asked(fits) and "H-gap" in [w.template.id for w in offer(fits)]
    assert "H-gap" in asked(spans)


def test_the_regular_point_speaks_for_its_regime_though_a_larger_one_lies_in_it() -> None:
    few = asked(case(peak_users_min=8))  # 8 and 16 in flight are both of the band 8 to 31
    assert lines(few["H6-3"])[0].endswith("at parallel-8")


@pytest.mark.parametrize(
    ("answer_tokens", "at_s"),
    [(20, 1.0), (500, 10.0)],  # 64 requests in 16 slots: 4 rounds of 20 tokens at 20 tok/s are 4 s; of 500, 100 s
)
def test_long_prompts_come_while_victims_decode_in_short_runs_too(answer_tokens: int, at_s: float) -> None:
    (point,) = interference_point(case(output_tokens=answer_tokens))
    assert point.aggressor_at_s == at_s


def test_the_kv_spread_costs_no_load_point() -> None:
    (kv,) = (w for w in generate(case()) if w.template.id == "H-kv")
    assert (lines(kv.hypothesis), kv.points) == (["vllm: kv_capacity_spread <= 0.1"], ())


def test_points_that_a_hypothesis_brings_stand_in_the_plan_a_pair_in_one_start() -> None:
    made = plan(NORTIA.model_copy(update={"structured_output": True, "shared_prefix_share": 0.5}))
    json = made.point("json")
    assert json.pair_of == "parallel-16" and json.shared_prefix == 0.5
    assert "json" in made.stages[0].points  # with its pair, in the same start
    assert [s.name for s in made.stages] == ["A", "B"]
    assert plan_from_yaml(plan_to_yaml(made)) == made


def test_a_template_nobody_knows_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'H-prefix'"):
        written("H-prefx", case())


@pytest.mark.parametrize("id", ["H2", "H-quality"])
def test_a_comparison_with_a_candidate_that_the_plan_lacks_is_refused(id: str) -> None:
    with pytest.raises(NotAllowed, match="compares with a candidate that the plan lacks"):
        written(id, case((candidate("vllm"),)))


@settings(max_examples=25)
@given(
    st.integers(1, 200), st.integers(0, 200), st.integers(1, 20_000), st.integers(1, 2000), st.booleans(),
    st.sampled_from([None, 0.0, 0.3, 1.0]), st.sampled_from([0.0, 8.0]),
)  # fmt: skip
def test_every_template_makes_a_plan_that_holds_together_whatever_is_required(
    low: int, more: int, asks: int, answers: int, json: bool, share: float | None, tenants: float
) -> None:
    r = NORTIA.model_copy(update={
        "peak_users_min": low, "peak_users_max": low + more, "input_tokens": asks, "output_tokens": answers,
        "context_tokens": asks + answers + 16, "structured_output": json, "shared_prefix_share": share,
        "hardware": (Hardware(gpu="nvidia-gb10-dgx-spark", other_tenants_gb=tenants),),
    })  # fmt: skip
    made = plan(r)
    again = plan_from_yaml(plan_to_yaml(made))
    assert again == made and again.sha256() == made.sha256()
    known = {h.id for h in made.hypotheses}
    assert all(set(h.depends_on) <= known for h in made.hypotheses)
    assert len(known) == len(made.hypotheses)


def test_the_table_is_whole() -> None:
    assert len(BY_ID) == len(TEMPLATES) == 13
    assert {d for t in TEMPLATES for d in t.depends_on} <= BY_ID.keys()
