"""What a first start shows: the Nortia case, honestly."""

from __future__ import annotations

import shutil
import threading

import pytest

from planner.conditions import Kind
from planner.errors import FliplineError
from services.shipped import CASES, install_shipped
from services.verdicts import case_state, judge_hypotheses, judge_levels, missing, users_served
from services.workspace import open_workspace
from tests.services.made import CASE


@pytest.fixture
def state(shipped):
    return case_state(shipped, CASE)


def test_hypotheses_of_a_machine_that_nobody_measured(state):
    verdicts = {v.hypothesis.id: v for v in judge_hypotheses(state)}
    assert {id: v.verdict.state.value for id, v in verdicts.items()} == {
        "H1": "unmeasured", "H2": "unmeasured", "H3": "unmeasured", "H4": "fails", "H5": "unmeasured",
        "H6-1": "unmeasured", "H6-2": "unmeasured", "H6-3": "unmeasured", "H6-4": "unmeasured", "H-kv": "unmeasured",
    }  # fmt: skip


def test_h3_is_doubtful_beforehand(state):
    h3 = next(v for v in judge_hypotheses(state) if v.hypothesis.id == "H3")
    assert h3.hypothesis.warning.startswith("Already doubtful: predicted to fail")
    assert "predicted to fail" in h3.verdict.expectation
    assert "(planning)" in h3.verdict.expectation


def test_h4_fails_as_imported(state):
    h4 = next(v for v in judge_hypotheses(state) if v.hypothesis.id == "H4").verdict
    assert (h4.side, h4.kind) == ("fails", Kind.IMPORTED)
    assert h4.value == pytest.approx(8130.86, abs=0.01)  # djangodevreng/dgx-spark-benchmarks@5636536, 0.7 req/s
    assert "fails at 8.13 s; as imported, n = 175" in h4.sentence


def test_units_by_bound_coverage_and_planning(state):
    # 50 users at 25 tok/s: the case's integers, shared by seed and sizing
    for figure in ("3 units by the bound", "13 ", "17 "):
        assert figure in state.sizing.sentence


def test_nothing_in_it_claims_to_be_measured(shipped, state):
    assert not [e for e in state.evidence if e.kind in (Kind.MEASURED, Kind.OBSERVED)]
    assert users_served(state).sentence == (
        "How many users get the promise on one unit is not measured; you need 20 to 50."
    )
    assert {v.state.value for v in judge_levels(state).values()} == {"unmeasured", "fails"}


def test_what_is_missing_is_said_with_the_page_that_mends_it(state):
    assert missing(state) == (
        ("H1, H2, H3, H5, H6-1, H6-2, H6-3, H6-4, H-kv: not measured, or not enough.", "measure"),
        ("The decision is not accepted.", "decision"),
    )


def test_a_store_that_has_a_case_is_left_alone(ws):
    install_shipped(ws)
    before = [c.slug for c in ws.store.cases.all()]
    assert len(before) == len(list(CASES.glob("*.yaml")))
    install_shipped(ws)
    assert [c.slug for c in ws.store.cases.all()] == before


def test_two_that_start_an_empty_workspace_at_once_both_find_the_cases(tmp_path, monkeypatch):
    (tmp_path / "cases").mkdir()
    shutil.copy(CASES / "nortia.yaml", tmp_path / "cases")  # the one without bundles
    monkeypatch.setattr("services.shipped.CASES", tmp_path / "cases")
    at_once = threading.Barrier(2)
    found: list[object] = []

    def start(ws):
        all_cases, asked = ws.store.cases.all, []

        def both_see_none():
            seen = all_cases()
            if not asked:  # both have looked before either begins
                asked.append(seen)
                at_once.wait(60)
            return seen

        ws.store.cases.all = both_see_none
        try:
            install_shipped(ws)
            found.append([c.slug for c in all_cases()])
        except FliplineError as e:
            found.append(str(e))
        finally:
            ws.store.close()

    threads = [threading.Thread(target=start, args=(open_workspace(tmp_path / "home"),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["nortia"]] * 2
