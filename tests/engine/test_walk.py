"""A whole PoC on a real server: drafted, edited, run, taken in, judged, decided, exported, calibrated, reported."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from bundle.folder import bundle_sha256, find_bundles
from decisions.flips import FlipState
from decisions.record import People, Status
from planner.conditions import Kind, State
from planner.poc import Plan
from services.adr_form import flip_from
from services.arrivals import bring_in
from services.calibrations import calibration
from services.cases import load_sizing
from services.decisions import accept, begin_draft, checklist, open_adr, propose_draft, save
from services.exporting import export_markdown
from services.plans import Drafted, draft_plan
from services.results import theory_of
from services.verdicts import CaseState, case_state, judge_adr, judge_hypotheses, users_served
from services.workspace import Workspace, now
from tests.engine.conftest import AUTHOR, HYPOTHESES, OVERLOAD, STARTS, SWEEP
from tests.engine.drafted import REQUIREMENTS
from ui.report import report_of
from ui.report_html import as_html
from ui.report_markdown import as_markdown

pytestmark = pytest.mark.engine

DECIDES = "Sato"
# Drafted hypotheses on closed loads whose limits lie as far away (tests/engine/drafted.py).
DRAFTED = {"H1": State.HOLDS, "H3": State.HOLDS, "H5": State.HOLDS, "H-kv": State.HOLDS}


@pytest.fixture(scope="module")
def poc(workspace: Workspace, case: str, bundle_folder: Path) -> str:
    """The case with every bundle that the real server left, taken in and judged."""
    arrived = bring_in(workspace, case, bundle_folder, AUTHOR)
    assert (len(arrived.taken), arrived.broken) == (STARTS, ())
    return case


def judged_by(state: CaseState, hypothesis: str) -> tuple[str, ...]:
    """The evidence that a hypothesis was judged by: a start that a rule of validity spoiled, on a busy machine, is not
    among it; some of three are left."""
    [used] = [v.verdict.used for v in judge_hypotheses(state) if v.hypothesis.id == hypothesis]
    assert 1 <= len(used) <= STARTS
    return used


def test_the_plan_that_ran_is_the_draft_of_the_page_for_this_machine(drafted: Drafted, measured_plan: Plan) -> None:
    assert [(c.id, c.role) for c in drafted.plan.candidates] == [("vllm", "favourite"), ("ollama", "baseline")]
    assert measured_plan.title == drafted.plan.title
    assert measured_plan.requirements_sha256 == REQUIREMENTS.sha256()
    assert measured_plan.service_levels == drafted.plan.service_levels == REQUIREMENTS.service_levels()
    assert [p.name for p in measured_plan.load_points] == [p.name for p in drafted.plan.load_points]
    kept = {h.id: h.statement for h in drafted.plan.hypotheses if h.id != "H2"}  # H2 asks for the other candidate
    assert kept.items() <= {h.id: h.statement for h in measured_plan.hypotheses}.items()


def test_what_was_taken_in_is_what_the_server_left(workspace: Workspace, poc: str, bundle_folder: Path) -> None:
    state = case_state(workspace, poc)
    assert {r.sha256 for r in state.runs} == {bundle_sha256(f) for f in find_bundles(bundle_folder)}
    assert {(r.kind, r.status, r.candidate) for r in state.runs} == {(Kind.MEASURED, "complete", "vllm")}
    assert state.findings == ()
    measured = {e.load_point for e in state.evidence if e.kind is Kind.MEASURED and e.metric == "output_tok_s"}
    assert measured == {*SWEEP, OVERLOAD}


def test_hypotheses_are_decided_by_what_was_measured(workspace: Workspace, poc: str) -> None:
    """Their limits lie far beyond what any machine of two cores could come near (tests/engine/conftest.py)."""
    judged = {v.hypothesis.id: v for v in judge_hypotheses(case_state(workspace, poc))}
    known = DRAFTED | {"H-starts": State.HOLDS, "H-slow": State.HOLDS, "H-fast": State.FAILS}
    assert {name: judged[name].verdict.state for name in known} == known
    assert judged["H4"].verdict.state is State.UNMEASURED  # its peak is a load that no stage ran
    for v in (judged[name] for name in known):
        assert v.verdict.kind is Kind.MEASURED, v.verdict.sentence
        assert v.verdict.used, v.verdict.sentence


def test_the_users_who_get_the_promise_are_counted_from_the_sweep(workspace: Workspace, poc: str) -> None:
    served = users_served(case_state(workspace, poc))
    assert (served.users, served.kind) == (12, "measured"), served.sentence  # the largest closed point of the plan


def test_the_decision_is_accepted_and_its_export_says_measured(workspace: Workspace, poc: str) -> None:
    """No engine of the catalogue passes the gates on this machine, so a person chooses, with a flip condition."""
    opened = open_adr(workspace, begin_draft(workspace, poc, AUTHOR).adr.id)
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
    [judged] = judge_adr(case_state(workspace, poc), adr)
    assert (judged.condition, judged.state) == ("too-slow", FlipState.ARMED), judged.sentence

    name, text = export_markdown(workspace, adr.id)
    assert name.startswith("0001-")
    assert yaml.safe_load(text.split("---")[1])["status"] == "accepted"
    assert "12 simultaneous users get the promise on one unit (vllm, measured)" in text
    speeds = [e for e in adr.evidence if e.says.startswith("vllm: user_tok_s p50 at parallel-4")]
    assert {e.id for e in speeds} == set(judged_by(case_state(workspace, poc), "H3"))
    machine = yaml.safe_load(text.split("```yaml")[1].split("```")[0])
    assert {e["kind"] for e in machine["evidence"]} == {"measured"}
    assert {e["run"] for e in machine["evidence"]} == {r.sha256 for r in case_state(workspace, poc).runs}


def test_the_measured_ratios_calibrate_the_next_sizing_and_the_next_draft(
    workspace: Workspace, poc: str, drafted: Drafted
) -> None:
    """Twelve in flight on eight slots are eight at once, so that point counts to the band of eight.

    A start that a rule of validity spoiled, on a busy machine, calibrates nothing; some of three are left.
    """
    found = theory_of(calibration(workspace), case_state(workspace, poc))
    assert [r.batches for r in found.regimes] == ["1", "2 to 7", "8 to 31"]
    assert all((r.kind, r.calibrates) == (Kind.MEASURED, True) and 1 <= r.starts <= STARTS for r in found.regimes)
    before, after = (load_sizing(workspace, REQUIREMENTS, by_team=team).inputs for team in (False, True))
    assert before is not None and after is not None
    assert before.measured == ()
    assert [m.n for m in after.measured] == [r.n for r in found.regimes]
    again = draft_plan(workspace, "two-cores", REQUIREMENTS).plan
    expected = {h.id: h.expectation for h in again.hypotheses}
    assert expected["H3"] != {h.id: h.expectation for h in drafted.plan.hypotheses}["H3"]
    # What the next plan expects of four in flight lies in the band of what was measured at two and four.
    predicted = float(expected["H3"].partition("predicted to hold: ")[2].partition(" tok/s")[0].replace(",", ""))
    assert predicted == pytest.approx(found.regimes[1].measured_tok_s, rel=0.5)


def test_the_report_says_what_was_measured_and_nothing_else(workspace: Workspace, poc: str) -> None:
    state = case_state(workspace, poc)
    report = report_of(workspace, state)
    html, markdown = as_html(report), as_markdown(report)
    assert {m.key for m in report.marks()} & {"measured", "simulated", "imported", "entered"} == {"measured"}
    assert "12 simultaneous users get the promise on one unit (vllm, measured); you need 4 to 8." in html
    assert "simulated" not in html + markdown
    for run in state.runs:
        assert run.sha256 in html and run.sha256 in markdown
    assert all(id in html for id in judged_by(state, "H3"))
    assert html.count("<figure>") == 4  # speed per user, total output, first token, measured over theory
