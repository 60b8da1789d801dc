"""Quality sets of a case: rates, pairs, the answers behind them, and where a missing result is said."""

from __future__ import annotations

import json

import pytest

from bundle.folder import open_bundle, seal
from bundle.quality import Judged, write_quality
from planner.conditions import Kind
from planner.contract import Contract
from planner.errors import BundleError
from planner.loads import LoadPoint
from planner.poc import Stage
from services.arrivals import bring_in
from services.decisions import begin_draft
from services.exporting import export_markdown
from services.quality import differing, pairs, precision_warnings, rates
from services.quality_items import with_items
from services.verdicts import case_state, judge_hypotheses
from tests.bundle.made import POINT, bundle, request
from tests.planner.made import ASKED, SEEN, SHARED
from tests.services.made import CASE, asking, with_plan

SET = LoadPoint(name="set", shape="quality", in_flight=1, quality_file="q.jsonl", file_sha256="a" * 64,
                input_tokens=64, output_tokens=11, requests=40)  # fmt: skip
RATIO = "vllm over ollama: output_tok_s >= 1 x at parallel-2"
LOSS = "vllm over ollama: quality_loss <= 5 % at set"


@pytest.fixture
def crossing(shipped):
    """A plan of two candidates in FP8 and Q8_0, declared."""
    small = asking(RATIO, LOSS)
    vllm = small.candidates[0].model_copy(update={"contract": {}})
    with_plan(shipped, small.model_copy(update={
        "candidates": (vllm, vllm.model_copy(update={"id": "ollama", "role": "baseline"})),
        "load_points": (POINT, SET), "stages": (Stage(name="A", points=(POINT.name, SET.name)),),
        "shared_contract": SHARED,
    }))  # fmt: skip
    return shipped


def brought(ws, folder, candidate, quantization, *, passed=None, failing=0, start=1, **more):
    """A start of a candidate: speed at parallel-2, or with `passed` the set, of whose items the first ones fail."""
    declared = ("weight_format", "quantization")
    asked = ASKED | {"engine": candidate, "quantization": quantization, "weight_format": quantization}
    contract = Contract(shared=SHARED, candidate=asked, observed=SEEN, declared_differences=declared)
    fields = {"candidate": candidate, "kind": Kind.MEASURED, "contract": contract, "start": start, **more}
    if passed:
        folder.mkdir(parents=True)
        judged = [Judged(id=f"i{i}", expects="exact", passed=i >= failing, answer=f"{candidate} {i}")
                  for i in range(passed)]  # fmt: skip
        write_quality(folder / "q.json", judged)
        fields |= {"point": SET, "quality": "q.json"}
    bundle(folder, [request(i, i * 0.35) for i in range(40)], **fields)
    ended = open_bundle(folder)
    seal(folder, ended.model_copy(update={"id": f"{ended.id}-{folder.name}"}))
    bring_in(ws, CASE, folder, "Kim")


def both_speeds(ws, tmp_path):
    for start in (1, 2, 3):
        brought(ws, tmp_path / f"v{start}", "vllm", "fp8", start=start)
        brought(ws, tmp_path / f"o{start}", "ollama", "q8_0", start=start)


def both_sets(ws, tmp_path, failing=0, **more):
    brought(ws, tmp_path / "vq", "vllm", "fp8", passed=40, failing=failing, **more)
    brought(ws, tmp_path / "oq", "ollama", "q8_0", passed=40, **more)


MISSING = "vllm and ollama differ in quantization (fp8 -> q8_0), and no quality result stands beside their speeds"


def test_a_speed_across_precisions_warns_wherever_it_is_told(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    state = case_state(crossing, CASE)
    ratio = judge_hypotheses(state)[0].verdict
    assert MISSING in ratio.warning and MISSING in ratio.sentence
    assert len(precision_warnings(state)) == 1
    draft = begin_draft(crossing, CASE, "Kim").adr
    assert MISSING in draft.confirmation and any(MISSING in bad for bad in draft.consequences.bad)
    assert "no quality result stands beside their speeds" in export_markdown(crossing, draft.id)[1].split("###")[0]


def test_with_a_quality_result_the_warning_is_gone_and_the_loss_is_judged(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    both_sets(crossing, tmp_path)
    state = case_state(crossing, CASE)
    ratio, loss = (v.verdict for v in judge_hypotheses(state))
    assert ratio.warning == "" and "no loss shown" in ratio.sentence
    assert precision_warnings(state) == ()
    # 40 of 40 alike: up to 1 - 0.025^(1/40) = 8.81 % could be lost, 5 % are allowed.
    assert (loss.state, loss.interval[1]) == ("undecided", pytest.approx(0.0881, abs=1e-4))
    assert "no quality result" not in export_markdown(crossing, begin_draft(crossing, CASE, "Kim").adr.id)[1]


def test_rates_and_pairs_name_items_and_answers(crossing, tmp_path):
    both_sets(crossing, tmp_path, failing=6)
    state = case_state(crossing, CASE)
    ours, theirs = rates(state)
    assert [(r.candidate, r.value, r.items) for r in (ours, theirs)] == [("vllm", 0.85, 40), ("ollama", 1.0, 40)]
    assert ours.interval == pytest.approx((0.7016, 0.9429), abs=1e-4)  # R: binom.test(34, 40)
    (pair,) = pairs(state)
    assert (pair.found.outcome, pair.found.only) == ("loss shown", (0, 6))
    assert [d.item for d in differing(crossing, state, pair)] == [f"i{i}" for i in range(6)]
    assert differing(crossing, state, pair)[0][2:] == ("ollama", "vllm 0", "ollama 0")


def test_simulated_answers_are_no_quality_result(crossing, tmp_path):
    both_speeds(crossing, tmp_path)
    both_sets(crossing, tmp_path, kind=Kind.SIMULATED)
    state = case_state(crossing, CASE)
    assert len(precision_warnings(state)) == 1
    assert [p.left.kind for p in pairs(state)] == [Kind.SIMULATED]


def test_items_that_an_older_store_does_not_hold_come_from_the_bundle(crossing, tmp_path):
    both_sets(crossing, tmp_path)
    state = case_state(crossing, CASE)
    bare = type(state.evidence)(e.model_copy(update={"items": ()}) for e in state.evidence)
    again = with_items(crossing, state.runs, bare)
    assert [e.items for e in again] == [e.items for e in state.evidence]
    assert with_items(crossing, (), bare) is bare  # no bundle, no items


def test_answers_that_were_altered_since_are_refused(crossing, tmp_path):
    both_sets(crossing, tmp_path, failing=6)
    state = case_state(crossing, CASE)
    (pair,) = pairs(state)
    run = next(r for r in state.runs if r.candidate == "vllm")
    kept = crossing.runs / run.path / "q.json"
    kept.write_text(json.dumps(json.loads(kept.read_text())[:1]))
    with pytest.raises(BundleError, match="missing or were altered"):
        differing(crossing, state, pair)
