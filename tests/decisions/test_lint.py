"""What the lint finds, each by an example that has it and one that has not."""

from datetime import date

import pytest

from decisions.flip_condition import Action, FlipCondition
from decisions.flips import from_template
from decisions.lint import RULES, definition_of_done, lint, speed_warnings
from decisions.markdown import to_markdown
from decisions.record import EvidenceRef, Option
from planner.conditions import Evidence, Kind
from planner.contract import Contract
from planner.loads import LoadPoint
from tests.decisions.made import NOW, context, nortia, observed_peak

LATER = date(2027, 1, 1)


def flip(line, id="c", fires_when="holds", owner="ops", recheck_on=LATER, action=Action.REOPEN):
    return FlipCondition.from_line(id, line, fires_when=fires_when, owner=owner, recheck_on=recheck_on, action=action)


def rules(*flips, evidence=(), **fields):
    adr = nortia().model_copy(update={"conditions": flips})
    return [f.rule for f in lint(adr, evidence, context(**fields))]


def test_the_seeds_four_are_clean():
    assert lint(nortia(), (), context()) == ()


def test_no_condition_at_all():
    assert rules() == ["FL001"]


@pytest.mark.parametrize(
    ("line", "fires_when", "found"),
    [
        ("peak_in_flight max <= 5 over 28 days", "holds", []),
        ("vllm-b: error_share <= 100 % at peak", "fails", ["FL002"]),
        ("vllm-b: error_share >= 0 % at peak", "holds", ["FL003"]),
        ("peak_in_flight max >= 0 over 28 days", "holds", ["FL003"]),
        ("vllm-b: started is 2", "holds", ["FL002"]),
        ("vllm-b: started is 2", "fails", ["FL003"]),
        ("vllm-b: ttft p95 <= 2 s at peak", "fails", []),
        ("vllm-b: ttft p95 <= 2 s", "fails", ["FL004"]),
        ("vllm-b: ttft p95 <= 2 s at pekk", "fails", ["FL005"]),
        ("vllm-b: ttft p95 <= 2 s at every point", "fails", []),
    ],
)  # fmt: skip
def test_conditions_that_cannot_work(line, fires_when, found):
    peak = LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500)
    assert rules(flip(line, fires_when=fires_when), points={"peak": peak}) == found


def test_a_threshold_out_of_reach_from_an_older_record_is_still_found():
    old = flip("vllm-b: error_share >= 100 % at peak")  # a line no longer says 150 %, a stored condition may
    beyond = old.model_copy(update={"condition": old.condition.model_copy(update={"threshold": 1.5})})
    peak = LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500)
    assert rules(beyond, points={"peak": peak}) == ["FL002"]


def test_a_candidate_that_nothing_here_is_called_by_is_an_error():
    slow = flip("vlm-b: ttft p95 <= 2 s at peak", fires_when="fails")
    peak = LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500)
    (found,) = lint(nortia().model_copy(update={"conditions": (slow,)}), (), context(points={"peak": peak}))
    assert (found.rule, found.severity) == ("FL013", "error")
    assert found.sentence == "c: unknown candidate 'vlm-b'. Did you mean 'vllm-b'?"


def test_a_ratio_is_checked_on_both_sides():
    ratio = flip("vllm-b over olama-b: output_tok_s >= 3 x at peak", fires_when="fails")
    peak = LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500)
    (found,) = lint(nortia().model_copy(update={"conditions": (ratio,)}), (), context(points={"peak": peak}))
    assert "unknown candidate 'olama-b'. Did you mean 'ollama-b'?" in found.sentence


def test_a_candidate_of_the_plan_is_known_though_it_is_no_option():
    third = flip("sglang-b: ttft p95 <= 2 s at peak", fires_when="fails")
    peak = LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500)
    assert rules(third, points={"peak": peak}, decided={"sglang-b": Contract()}) == []


def test_demand_that_nobody_observes_is_unmeasurable():
    assert rules(flip("peak_in_flight max <= 5 over 28 days"), observes_demand=False) == ["FL004"]


def test_already_fired_at_acceptance():
    assert rules(flip("peak_in_flight max <= 5 over 28 days"), evidence=[observed_peak(5)]) == ["FL006"]
    assert rules(flip("peak_in_flight max <= 5 over 28 days"), evidence=[observed_peak(6)]) == []


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        # whole numbers: nothing lies between 5 and 6
        ("peak_in_flight max <= 5 over 28 days", "peak_in_flight max >= 6 over 28 days", ["FL007"]),
        ("peak_in_flight max <= 5 over 28 days", "peak_in_flight max >= 7 over 28 days", []),
        # a mean may lie between
        ("peak_in_flight mean <= 5 over 28 days", "peak_in_flight mean >= 6 over 28 days", []),
        ("vllm-b: ttft p95 <= 2 s at peak", "vllm-b: ttft p95 >= 2 s at peak", ["FL007"]),
        # one that always fires is named once, and contradicts nothing
        ("peak_in_flight max >= 0 over 28 days", "peak_in_flight max >= 7 over 28 days", ["FL003"]),
        ("vllm-b: ttft p95 <= 2 s at peak", "vllm-b: ttft p95 >= 3 s at peak", []),
        ("vllm-b: ttft p95 <= 2 s at peak", "vllm-b: ttft p95 >= 2 s at single", []),
        ("vllm-b: ttft p95 <= 2 s at peak", "ollama-b: ttft p95 >= 2 s at peak", []),
    ],
)
def test_two_conditions_of_which_one_always_fires(left, right, found):
    assert rules(flip(left, "a"), flip(right, "b")) == found


def test_two_that_fire_together_should_ask_for_the_same():
    left = flip("peak_in_flight max <= 5 over 28 days", "a", action=Action.SIMPLIFY)
    right = flip("peak_in_flight max <= 3 over 28 days", "b", action=Action.CHANGE_MODEL_PLAN)
    assert rules(left, right) == ["FL008"]
    assert rules(left, right.model_copy(update={"action": Action.SIMPLIFY})) == []


def test_duties():
    line = "peak_in_flight max <= 5 over 28 days"
    assert rules(flip(line, owner=" ")) == ["FL009"]
    assert rules(flip(line, recheck_on=date(2026, 8, 31))) == ["FL010"]
    assert rules(flip(line, recheck_on=NOW.date())) == []
    assert rules(flip(line, recheck_on=None)) == ["FL012"]
    assert rules(FlipCondition(id="p", statement="the price doubles", owner="finance")) == ["FL011"]


def test_every_rule_explains_itself():
    assert list(RULES) == [f"FL{i:03d}" for i in range(1, len(RULES) + 1)]
    assert all(r.title and r.explanation.endswith(".") for r in RULES.values())


def open_checks(adr, evidence=()):
    return [c.id for c in definition_of_done(adr, evidence, context()) if not c.done]


def test_the_checklist_of_a_complete_draft_is_done():
    assert open_checks(nortia()) == []


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"options": (Option(title="vLLM"),)}, "options"),
        ({"chosen": "SGLang"}, "outcome"),
        ({"outcome": " "}, "outcome"),
        ({"headline": ""}, "headline"),
        ({"evidence": ()}, "evidence"),
        ({"people": {"decided": ()}}, "people"),
        ({"conditions": ()}, "conditions"),
        ({"review_on": None}, "review"),
        ({"review_on": NOW.date()}, "review"),
    ],
)
def test_each_thing_that_is_missing_is_named(change, check):
    adr = type(nortia()).model_validate({**nortia().model_dump(), **change})
    assert open_checks(adr) == [check]


def test_stated_absence_of_evidence_is_enough():
    silent = nortia().model_copy(update={"evidence": (), "evidence_absent": "The machine is not in house yet."})
    assert open_checks(silent) == []


def test_a_warning_does_not_block():
    flips = (from_template("few-users", owner="ops"),)
    assert open_checks(nortia().model_copy(update={"conditions": flips})) == []


CROSSING = "Warning: ollama-b and vllm-b differ in quantization (q8_0 -> fp8)"


def speeds_in(*quantizations):
    """The speed of each option in its precision, and the contracts by hash."""
    named = dict(zip(("vllm-b", "ollama-b"), quantizations, strict=True))
    contracts = {c: Contract(candidate={"quantization": q}) for c, q in named.items()}
    pieces = [
        Evidence(id=f"speed-{c}", metric="output_tok_s", value=100, unit="tok/s", kind=Kind.MEASURED, source=c, at=NOW,
                 candidate=c, load_point="peak", contract=k.full_hash()) for c, k in contracts.items()
    ]  # fmt: skip
    return pieces, {k.full_hash(): k for k in contracts.values()}


@pytest.mark.parametrize(("quantizations", "found"), [(("fp8", "q8_0"), ["FL014"]), (("fp8", "fp8"), [])])
def test_speeds_of_two_precisions_that_a_decision_rests_on_want_a_quality_result(quantizations, found):
    pieces, contracts = speeds_in(*quantizations)
    cited = tuple(EvidenceRef(id=e.id, sha256="e" * 64, kind=e.kind) for e in pieces)
    adr = nortia().model_copy(update={"evidence": cited})
    findings = lint(adr, pieces, context(contracts=contracts))
    assert [f.rule for f in findings] == found
    assert [f.severity for f in findings] == ["warning" for _ in found]
    assert all(CROSSING in f.sentence for f in findings)
    assert lint(nortia(), pieces, context(contracts=contracts)) == ()  # it cites neither
    text = to_markdown(adr, warnings=speed_warnings(adr, pieces, context(contracts=contracts)))
    assert ("\n> Warning: ollama-b and vllm-b differ in quantization" in text) == bool(found)
