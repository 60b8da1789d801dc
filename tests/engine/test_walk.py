"""The second half of the walk on what a real server left: taken in, judged, decided, exported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from bundle.folder import bundle_sha256, find_bundles
from decisions.flips import FlipState
from decisions.record import People, Status
from planner.conditions import Kind, State
from planner.poc import Plan
from planner.requirements import Hardware, ModelPlan, Requirements
from services.adr_form import flip_from
from services.cases import begin_case
from services.decisions import accept, begin_draft, checklist, open_adr, propose_draft, save
from services.evidence import take_in_all
from services.exporting import export_markdown
from services.plans import save_plan
from services.rejudging import rejudge
from services.verdicts import asked_conditions, case_state, judge_adr, judge_hypotheses, users_served
from services.workspace import Workspace, now, open_workspace
from tests.engine.conftest import HYPOTHESES, OVERLOAD, STARTS, SWEEP
from tests.engine.tiny_model import NAME

pytestmark = pytest.mark.engine

AUTHOR, DECIDES = "Kim", "Sato"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = tmp_path_factory.mktemp("walk")
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    yield ws
    ws.store.close()


@pytest.fixture(scope="module")
def case(workspace: Workspace, measured_plan: Plan, bundle_folder: Path) -> str:
    """A case with its plan, and every bundle that the real server left, taken in."""
    requirements = Requirements(
        peak_users_min=2, peak_users_max=4, user_tok_s_promise=1, user_tok_s_target=2, ttft_s=30, input_tokens=64,
        output_tokens=32, context_tokens=2048,
        model_plans=(ModelPlan(id="T", label="tiny", model=NAME, quantization="fp32", kv_cache_dtype="fp32",
                               favourite=True),),
        hardware=(Hardware(gpu="two-cpu-cores", in_house=True),),
    )  # fmt: skip
    case = begin_case(workspace, "Two cores", requirements, AUTHOR, slug=measured_plan.case)
    save_plan(workspace, case.id, measured_plan, AUTHOR)
    asked = asked_conditions(measured_plan, ())
    taken = take_in_all(workspace, case.id, bundle_folder, AUTHOR, asked, measured_plan.service_levels)
    assert len(taken) == STARTS
    rejudge(workspace, case.id)
    return case.id


def test_what_was_taken_in_is_what_the_server_left(workspace: Workspace, case: str, bundle_folder: Path) -> None:
    state = case_state(workspace, case)
    assert {r.sha256 for r in state.runs} == {bundle_sha256(f) for f in find_bundles(bundle_folder)}
    assert {(r.kind, r.status, r.candidate) for r in state.runs} == {(Kind.MEASURED, "complete", "vllm")}
    assert state.findings == ()
    measured = {e.load_point for e in state.evidence if e.kind is Kind.MEASURED and e.metric == "output_tok_s"}
    assert measured == {*SWEEP, OVERLOAD}


def test_hypotheses_are_decided_by_what_was_measured(workspace: Workspace, case: str) -> None:
    """Their limits lie far beyond what any machine of two cores could come near (tests/engine/conftest.py)."""
    judged = {v.hypothesis.id: v for v in judge_hypotheses(case_state(workspace, case))}
    assert {name: v.verdict.state for name, v in judged.items()} == {
        "H-starts": State.HOLDS, "H-slow": State.HOLDS, "H-fast": State.FAILS,
    }  # fmt: skip
    for v in judged.values():
        assert v.verdict.kind is Kind.MEASURED, v.verdict.sentence
        assert v.verdict.used, v.verdict.sentence


def test_the_users_who_get_the_promise_are_counted_from_the_sweep(workspace: Workspace, case: str) -> None:
    served = users_served(case_state(workspace, case))
    assert (served.users, served.kind) == (12, "measured"), served.sentence  # the largest closed point of the plan


def test_the_decision_is_accepted_and_its_export_says_measured(workspace: Workspace, case: str) -> None:
    """No engine of the catalogue passes the gates on this machine, so a person chooses, with a flip condition."""
    opened = open_adr(workspace, begin_draft(workspace, case, AUTHOR).adr.id)
    assert {e.kind for e in opened.adr.evidence} == {Kind.MEASURED}
    in_90_days = (now() + timedelta(days=90)).date()
    flip = flip_from("too-slow", HYPOTHESES["H-slow"], manual=False, fires_when="fails", owner=DECIDES,
                     recheck_on=in_90_days, action="reopen", consequence="choose again")  # fmt: skip
    written = {"title": "vLLM on two cores", "chosen": "vLLM", "outcome": "It was measured here.",
               "people": People(decided=(DECIDES,)), "conditions": (flip,), "review_on": in_90_days}  # fmt: skip
    saved = save(workspace, opened, opened.adr.text.model_copy(update=written), AUTHOR)
    propose_draft(workspace, saved.adr.id, saved.version, AUTHOR)
    proposed = workspace.store.adrs.get(saved.adr.id)
    assert [c.sentence for c in checklist(workspace, proposed) if not c.done] == []
    adr = accept(workspace, saved.adr.id, DECIDES)
    assert (adr.status, adr.number, adr.accepted_by) == (Status.ACCEPTED, 1, DECIDES)
    [judged] = judge_adr(case_state(workspace, case), adr)
    assert (judged.condition, judged.state) == ("too-slow", FlipState.ARMED), judged.sentence

    name, text = export_markdown(workspace, adr.id)
    assert name.startswith("0001-")
    assert yaml.safe_load(text.split("---")[1])["status"] == "accepted"
    assert "12 simultaneous users get the promise on one unit (vllm, measured)" in text
    speeds = [e for e in adr.evidence if e.says.startswith("vllm: user_tok_s p50 at parallel-4")]
    assert [e.kind for e in speeds] == [Kind.MEASURED] * STARTS
    machine = yaml.safe_load(text.split("```yaml")[1].split("```")[0])
    assert {e["kind"] for e in machine["evidence"]} == {"measured"}
    assert {e["run"] for e in machine["evidence"]} == {r.sha256 for r in case_state(workspace, case).runs}
