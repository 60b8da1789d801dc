"""Plans: derived from the case, edited outside, brought back or refused."""

from __future__ import annotations

import pytest

from planner.contract_edit import Edit
from planner.errors import InputError, SchemaTooNew
from planner.offered import run_points
from planner.plan_file import plan_from_yaml, plan_to_yaml
from services.plans import PlanChoices, choices_of, draft_plan, save_plan, upload_plan
from services.verdicts import case_state
from services.workspace import now
from tests.services.made import CASE


@pytest.fixture
def state(shipped):
    return case_state(shipped, CASE)


def test_the_plan_follows_from_the_case(state):
    plan = state.plan
    assert [(c.id, c.role) for c in plan.candidates] == [("vllm", "favourite"), ("ollama", "baseline")]
    assert [h.id for h in plan.hypotheses][:5] == ["H1", "H2", "H3", "H4", "H5"]
    # 1, 2, 4 ... up to the peak of 50; then the peak rate, 50 x 1 / 60, and twice the limit
    assert [p.in_flight for p in run_points(plan)] == [1, 2, 4, 8, 16, 32, 50, None, 100]
    assert plan.point("peak").rate_per_s == pytest.approx(50 / 60, rel=1e-3)
    assert [s.name for s in plan.stages] == ["A", "B"]


def test_a_plan_comes_back_as_it_went_out(shipped, state):
    body = state.stored_plan.body.decode()
    assert plan_from_yaml(body) == state.plan
    assert upload_plan(shipped, state.case.id, "plan.yaml", body, "Kim").sha256 == state.stored_plan.sha256
    assert len(shipped.store.plans.of_case(state.case.id)) == 1


def test_an_edited_plan_is_the_plan_from_now_on(shipped, state):
    edited = state.plan.model_copy(update={"starts": 5})
    text = "# edited on the box\n" + plan_to_yaml(edited)
    stored = upload_plan(shipped, state.case.id, "plan.yaml", text, "Kim")
    assert stored.body.decode() == text  # byte for byte, comments too
    assert case_state(shipped, CASE).plan.starts == 5


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("schema_version: 1", "schema_version: 2", SchemaTooNew, "schema version 2 is newer than 1"),
        ("engine: vllm", "engine: vlm", InputError, "unknown engine 'vlm'.*Did you mean 'vllm'"),
        ("schema_version: 1\n", "", InputError, "schema_version is missing"),
        ("title:", "titel:", InputError, "tit"),
        (
            "vllm: started is true",
            "vlm: started is true",
            InputError,
            r"hypothesis H1: unknown candidate 'vlm'\. Did you mean 'vllm'",
        ),
        (
            "vllm over ollama:",
            "vllm over olama:",
            InputError,
            r"hypothesis H2: unknown candidate 'olama'\. Did you mean 'ollama'",
        ),
        (
            "oom <= 0 at overload",
            "oom <= 0 at overlod",
            InputError,
            r"hypothesis H5: unknown load point 'overlod'\. Did you mean 'overload'",
        ),
        ("keeps: 'vllm:", "keeps: 'vlm:", InputError, r"rule of stage B: unknown candidate 'vlm'"),
        ("from_stage: A", "from_stage: C", InputError, r"rule of stage B: unknown stage 'C'"),
        (
            "- ttft p95 <= 2 s\n",
            "- 'ttft p95 <= 2 s at pek'\n",
            InputError,
            r"service levels: unknown load point 'pek'\. Did you mean 'peak'",
        ),
    ],
)
def test_a_faulty_plan_is_refused_and_the_old_one_stands(shipped, state, old, new, error, message):
    text = state.stored_plan.body.decode()
    assert old in text
    with pytest.raises(error, match=f"plan.yaml: .*{message}"):
        upload_plan(shipped, state.case.id, "plan.yaml", text.replace(old, new, 1), "Kim")
    assert case_state(shipped, CASE).stored_plan == state.stored_plan


def test_a_plan_of_another_case_is_refused(shipped, state):
    other = plan_to_yaml(state.plan.model_copy(update={"case": "acme"}))
    with pytest.raises(InputError, match="belongs to 'acme'"):
        upload_plan(shipped, state.case.id, "plan.yaml", other, "Kim")


def test_what_is_not_stated_is_said(shipped, state):
    drafted = draft_plan(shipped, CASE, state.requirements)
    assert "model_revision" in drafted.unstated
    assert drafted.cost.minutes > 60
    assert save_plan(shipped, state.case.id, drafted.plan, "Kim").sha256 == drafted.plan.sha256()


def test_a_stored_plan_that_is_no_longer_read_is_a_finding(shipped, state):
    odd = state.plan.hypotheses[0].conditions[0].model_copy(update={"candidate": "vlm"})
    h = state.plan.hypotheses[0].model_copy(update={"conditions": (odd,)})
    shipped.store.plans.add(state.case.id, state.plan.model_copy(update={"hypotheses": (h,)}), at=now(), author="Lee")
    again = case_state(shipped, CASE)
    assert again.plan is None
    (finding,) = again.findings
    assert "hypothesis H1: unknown candidate 'vlm'. Did you mean 'vllm'? Make it anew on the PoC" in finding


@pytest.mark.parametrize("n", [4, 24, 200])
def test_what_was_stated_is_read_back_from_the_plan_as_it_was(shipped, state, n):
    stated = PlanChoices("ad44e777", "model.gguf", "another machine", starts=5, repeats=2, requests_per_point=n)
    again = choices_of(draft_plan(shipped, CASE, state.requirements, stated).plan)
    assert again == stated._replace(declared=("weight_format", "quantization"))


def test_a_proposal_that_is_taken_in_brings_its_engine_its_load_point_and_a_stage(shipped, state):
    r = state.requirements
    plan = draft_plan(shipped, CASE, r, PlanChoices(proposals=("P-sglang-prefix",))).plan
    assert [(c.id, c.role) for c in plan.candidates][2:] == [("sglang", "challenger")]
    assert plan.hypotheses[-1].id == "P-sglang-prefix"
    assert plan.stages[-1].points == ("shared-prefix",)
    assert plan.point("shared-prefix").shared_prefix == 0.6
    assert plan_from_yaml(plan_to_yaml(plan)) == plan
    assert choices_of(plan).proposals == ("P-sglang-prefix",)


def test_a_proposal_that_the_case_no_longer_makes_is_left_out(shipped, state):
    settled = state.requirements.model_copy(update={"shared_prefix_share": 0.0})
    plan = draft_plan(shipped, CASE, settled, PlanChoices(proposals=("P-sglang-prefix",))).plan
    assert not [h for h in plan.hypotheses if h.id.startswith("P-")]


def test_the_sample_sizes_follow_from_the_levels_percentiles(shipped, state):
    # p99: 0.99^299 < 0.05, so 100 counted requests in each of three starts; a closed loop's first two rounds on top
    strict = state.requirements.model_copy(update={"ttft_percentile": 99})
    assert draft_plan(shipped, CASE, strict).plan.point("parallel-16").requests == 100 + 2 * 16
    assert draft_plan(shipped, CASE, strict, PlanChoices(starts=5)).plan.point("parallel-16").requests == 60 + 2 * 16


def test_what_the_contract_states_by_hand_is_in_the_command_and_comes_back_from_the_plan(shipped, state):
    edits = (Edit("vllm", "max_model_len", "8192"), Edit("vllm", "image", "vllm/vllm-openai:v0.33.0"))
    stated = PlanChoices(contract=edits, declared=("prefix_caching",))
    plan = draft_plan(shipped, CASE, state.requirements, stated).plan
    command = plan.candidates[0].launch.command
    assert command[command.index("--max-model-len") + 1] == "8192"
    assert plan.candidates[0].contract["image"] == "vllm/vllm-openai:v0.33.0"
    assert plan.declared_differences == ("weight_format", "quantization", "prefix_caching")
    assert choices_of(plan_from_yaml(plan_to_yaml(plan))).contract == edits
    save_plan(shipped, state.case.id, plan, "Kim")
    again = draft_plan(shipped, CASE, state.requirements, choices_of(case_state(shipped, CASE).plan))
    assert again.plan.sha256() == plan.sha256()
    assert again.contracts["vllm"]["max_model_len"] == "4096"  # as derived, to go back to


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_model_len: '4096'", "max_model_len: '2048'", r"vllm, max_model_len: 2,048 .* 3,596 \+ 500 .* at single"),
        ("max_num_seqs: '50'", "max_num_seqs: '8'", "vllm, max_num_seqs: 8 at once .* 16 in flight at parallel-16"),
    ],
)
def test_a_plan_whose_points_contradict_its_contract_is_refused(shipped, state, old, new, message):
    text = state.stored_plan.body.decode()
    assert old in text
    with pytest.raises(InputError, match=f"plan.yaml: candidate {message}"):
        upload_plan(shipped, state.case.id, "plan.yaml", text.replace(old, new, 1), "Kim")
    with pytest.raises(InputError, match=f"plan: candidate {message}"):
        save_plan(shipped, state.case.id, plan_from_yaml(text.replace(old, new, 1)), "Kim")
    assert case_state(shipped, CASE).stored_plan == state.stored_plan


def test_a_plan_cannot_ask_of_a_candidate_what_it_skips(shipped, state):
    text = state.stored_plan.body.decode()
    at = text.index("load_points:")
    skipping = text[:at] + "  skips: [single]\n" + text[at:]
    with pytest.raises(InputError, match="hypothesis H1: it asks for ollama at single, which ollama skips"):
        upload_plan(shipped, state.case.id, "plan.yaml", skipping, "Kim")
    with pytest.raises(
        InputError, match=r"skips of candidate ollama: unknown load point 'singel'.*Did you mean 'single'"
    ):
        upload_plan(shipped, state.case.id, "plan.yaml", skipping.replace("[single]", "[singel]"), "Kim")


def test_a_machine_that_holds_few_requests_still_gets_a_plan_that_can_be_stored(shipped, state):
    # the other tenants leave room for fewer than the 32 in flight of the ladder
    small = state.requirements.hardware[0].model_copy(update={"other_tenants_gb": 78.0})
    r = state.requirements.model_copy(update={"hardware": (small,)})
    plan = draft_plan(shipped, CASE, r).plan
    limit = int(plan.candidates[0].contract["max_num_seqs"])
    assert limit < 32
    assert max(plan.point(n).in_flight for n in plan.stages[0].points) <= limit
    assert save_plan(shipped, state.case.id, plan, "Kim").sha256 == plan.sha256()
