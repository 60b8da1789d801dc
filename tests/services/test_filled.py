"""Figures that a person types in: with load and lengths, or not at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.errors import InputError, UnknownName
from services.arrivals import bring_in_table
from services.filled import Filled, Machine, as_planned, blank_table, columns_of, outdated, rows_of
from services.plans import choices_of, draft_plan, save_plan
from services.verdicts import case_state, judge_hypotheses
from services.workspace import now
from tests.services.made import CASE

ROW = Filled("vllm", "parallel-16", 16, None, 3596, 500, "user_tok_s", "p5", 12.0, 64)
DAY = (now() - timedelta(days=60)).date()


def bring(ws, *rows, by="Kim", source="gpu-box.xlsx", day=DAY, machine=None):
    return bring_in_table(ws, CASE, rows, by=by, source=source, measured_at=day, machine=machine)


def h(ws, id):
    return next(v.verdict for v in judge_hypotheses(case_state(ws, CASE)) if v.hypothesis.id == id)


def test_a_row_decides_with_the_words_as_entered(shipped):
    bring(shipped, ROW)
    verdict = h(shipped, "H3")
    assert (verdict.state, verdict.value, verdict.kind) == ("fails", 12.0, "entered")
    assert "as entered, n = 64 (entered by Kim from gpu-box.xlsx)" in verdict.sentence


def test_at_the_threshold_it_holds_but_is_near(shipped):
    bring(shipped, ROW._replace(value=20.0))
    verdict = h(shipped, "H3")
    assert (verdict.state, verdict.side, verdict.distance) == ("near", "holds", 0.0)


@pytest.mark.parametrize(
    "row",
    [
        ROW._replace(input_tokens=None),
        ROW._replace(output_tokens=None),
        ROW._replace(in_flight=None),
    ],
    ids=["no input length", "no output length", "no load"],
)
def test_a_speed_without_load_and_lengths_is_refused_and_nothing_is_stored(shipped, row):
    before = case_state(shipped, CASE).evidence
    with pytest.raises(InputError, match="row 2: a speed without requests in flight"):
        bring(shipped, ROW, row)
    assert [e.id for e in case_state(shipped, CASE).evidence] == [e.id for e in before]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"load_point": "parallel-17"}, "no load point 'parallel-17' in the plan"),
        ({"statistic": "p42"}, "no statistic 'p42'"),
        ({"value": -1.0}, "-1 tok/s cannot be"),
        ({"value": 0.0}, "0 tok/s cannot be. Leave empty what nobody measured"),
        ({"metric": "error_share", "statistic": "value", "value": 1.5}, "1.5 share cannot be"),
        ({"value": float("inf")}, "inf is no value"),
        ({"value": float("nan")}, "nan is no value"),
        ({"candidate": "vlm"}, "unknown candidate 'vlm'. Did you mean 'vllm'"),
        ({"candidate": ""}, "unknown candidate ''"),
        ({"n": 0}, "n: 0 is less than 1"),
        ({"in_flight": 0}, "in_flight: 0 is less than 1"),
        ({"input_tokens": -3}, "input_tokens: -3 is less than 1"),
        ({"output_tokens": 0}, "output_tokens: 0 is less than 1"),
        ({"in_flight": None, "rate_per_s": 0.0}, "rate_per_s: 0.0 is no rate"),
    ],
)
def test_an_impossible_row_is_refused_by_its_number(shipped, change, message):
    with pytest.raises(InputError, match=f"row 1[:,] .*{message}"):
        bring(shipped, ROW._replace(**change))


def test_an_unknown_metric_names_the_nearest(shipped):
    with pytest.raises(UnknownName, match="'user_tok_s'"):
        bring(shipped, ROW._replace(metric="user_toks"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"by": " "}, "who filled this in is missing"),
        ({"source": ""}, "where the figures come from is missing"),
        ({"day": (now() + timedelta(days=2)).date()}, "lies ahead"),
    ],
)
def test_who_from_where_and_when_are_asked_for(shipped, fields, message):
    with pytest.raises(InputError, match=message):
        bring(shipped, ROW, **fields)


def test_an_empty_table_is_refused(shipped):
    with pytest.raises(InputError, match="no row is filled in"):
        bring(shipped)


def test_another_load_under_the_same_name_decides_nothing(shipped):
    bring(shipped, ROW._replace(input_tokens=128))  # the plan's parallel-16 asks for 3,596
    verdict = h(shipped, "H3")
    assert verdict.state == "unmeasured"
    assert verdict.passed_over[0].reason == "the load called 'parallel-16' was another one"


def test_the_table_to_fill_in_carries_the_plans_load(shipped):
    plan = case_state(shipped, CASE).plan
    assert [(c.metric, c.statistic) for c in columns_of(plan)] == [
        ("ttft_ms", "p95"), ("user_tok_s", "p5"), ("output_tok_s", "value"),
    ]  # fmt: skip
    table = blank_table(plan)
    assert len(table) == len(plan.candidates) * len(plan.load_points)
    assert rows_of(plan, table) == ()
    row = next(r for r in table if (r["candidate"], r["load_point"]) == ("vllm", "parallel-16"))
    filled = row | {"tok/s per user p5": 12, "n": 64, "TTFT p95 (ms)": float("nan")}
    assert rows_of(plan, [filled]) == (ROW,)


@pytest.mark.parametrize("metric", ["oom", "restarts"])
def test_what_happened_at_a_load_point_stays_with_it(shipped, metric):
    row = Filled("vllm", "overload", None, None, None, None, metric, "value", 2.0)
    (piece,) = bring(shipped, row).evidence
    assert (piece.load_point, piece.n) == ("overload", None)
    assert h(shipped, "H5").state == "fails"  # H5: no out of memory and no restart at overload


def test_a_start_has_no_load_point(shipped):
    (piece,) = bring(shipped, ROW._replace(metric="started", statistic="value", value=1.0, n=None)).evidence
    assert piece.load_point is None


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"tok/s per user p5": "fast"}, "row 2, tok/s per user p5: 'fast' is not a number"),
        ({"tok/s per user p5": "1,5"}, "row 2, tok/s per user p5: '1,5' is not a number. Write it with a point"),
        ({"tok/s per user p5": "12", "n": 2.5}, "row 2, n: 2.5 is not a whole number"),
    ],
)
def test_a_cell_that_is_no_number_is_named(shipped, cells, message):
    plan = case_state(shipped, CASE).plan
    table = blank_table(plan)
    table[1] |= cells
    with pytest.raises(InputError, match=message):
        rows_of(plan, table)


def test_starts_and_repeats_are_pieces_of_their_own_and_show_their_spread(shipped):
    rows = [
        ROW._replace(value=value, start=start, repeat=repeat)
        for start, repeat, value in ((1, 1, 21.0), (1, 2, 22.0), (2, 1, 30.0))
    ]
    pieces = bring(shipped, *rows).evidence
    assert [(p.start, p.repeat, p.source.split("/")[-1]) for p in pieces] == [
        (1, 1, "start-1"), (1, 2, "start-1"), (2, 1, "start-2"),
    ]  # fmt: skip
    assert len({p.run for p in pieces}) == 1
    verdict = h(shipped, "H3")
    assert (verdict.side, verdict.value, verdict.interval) == ("holds", 22.0, (21.0, 30.0))


def test_starts_that_disagree_decide_nothing(shipped):
    bring(shipped, ROW._replace(value=12.0, start=1), ROW._replace(value=30.0, start=2))
    verdict = h(shipped, "H3")
    assert verdict.state == "undecided"
    assert "the values disagree" in verdict.sentence


def test_the_ends_of_a_spread_say_so(shipped):
    rows = [ROW._replace(value=v, spread=end) for end, v in (("min", 21.0), ("mean", 25.0), ("max", 29.0))]
    notes = [p.note.split("; ")[1] for p in bring(shipped, *rows).evidence]
    assert notes == ["the smallest of its repeats", "the middle of its repeats", "the largest of its repeats"]
    assert h(shipped, "H3").value == 25.0


def test_a_row_of_a_sheet_brings_its_own_day(shipped):
    at = now() - timedelta(days=9)
    (piece,) = bring(shipped, ROW._replace(at=at)).evidence
    assert piece.at == at
    with pytest.raises(InputError, match=r"row 7: .* lies ahead"):
        bring(shipped, ROW._replace(at=now() + timedelta(days=2), row=7))


def test_a_load_that_is_stated_in_part_is_refused(shipped):
    row = Filled("vllm", "overload", 16, None, None, None, "oom", "value", 2.0)
    with pytest.raises(InputError, match="row 1: load and lengths are stated in part"):
        bring(shipped, row)


TOTAL = ROW._replace(metric="output_tok_s", statistic="value")
BOTH = (TOTAL._replace(value=400.0), TOTAL._replace(candidate="ollama", value=100.0))


def test_figures_that_state_no_contract_compare_with_no_others(shipped):
    bring(shipped, *BOTH)
    assert "not comparable: a side states no contract" in h(shipped, "H2").sentence


def test_runs_that_kept_to_the_plan_compare_once_it_is_whole(shipped):
    state = case_state(shipped, CASE)
    bring(shipped, *BOTH, machine=Machine("NVIDIA GB10"))
    assert "not comparable: model_revision: stated by neither" in h(shipped, "H2").sentence
    whole = choices_of(state.plan)._replace(model_revision="ad44e777")
    save_plan(shipped, state.case.id, draft_plan(shipped, CASE, state.requirements, whole).plan, "Kim")
    arrived = bring(shipped, *BOTH, machine=Machine(" NVIDIA GB10 "))
    verdict = h(shipped, "H2")
    assert (verdict.state, verdict.value, verdict.kind) == ("holds", 4.0, "entered")  # 400 / 100
    assert "quantization: fp8 -> q8_0" in verdict.sentence  # declared in the plan, named in the sentence
    contracts = case_state(shipped, CASE).context.contracts
    stated = [contracts[e.contract].stated() for e in arrived.evidence if e.metric == "output_tok_s"]
    assert [(c["engine"], c["gpu"], c["gpu_count"], c["model_revision"]) for c in stated] == [
        ("vllm", "NVIDIA GB10", "1", "ad44e777"), ("llama-server", "NVIDIA GB10", "1", "ad44e777"),
    ]  # fmt: skip
    assert "engine_version_reported" not in stated[0]  # nobody read it from the server


def test_figures_without_a_contract_are_told_to_outdate_those_that_state_one(shipped):
    bring(shipped, *BOTH[:1])
    assert outdated(case_state(shipped, CASE).evidence, BOTH, DAY) == ()  # those before state none either
    bring(shipped, *BOTH[:1], machine=Machine("NVIDIA GB10"))
    evidence = case_state(shipped, CASE).evidence
    assert outdated(evidence, BOTH, DAY) == ("vllm",)
    assert outdated(evidence, BOTH, DAY - timedelta(days=9)) == ()  # older ones do not speak
    assert outdated(evidence, [ROW], DAY) == ()  # nor those of another figure


def test_what_a_stages_rule_sets_is_not_said_to_have_been_kept(shipped):
    plan = case_state(shipped, CASE).plan
    (setting,) = {s.rule.setting for s in plan.stages if s.rule}  # stage B serves at stage A's knee
    kept = as_planned(plan, Machine("NVIDIA GB10"))["vllm"].candidate
    assert setting == "max_num_seqs" and setting in plan.candidates[0].contract
    assert kept == {k: v for k, v in plan.candidates[0].contract.items() if k != "max_num_seqs"}


def test_runs_on_two_machines_do_not_compare(shipped):
    bring(shipped, BOTH[0], machine=Machine("NVIDIA GB10"))
    bring(shipped, BOTH[1], machine=Machine("NVIDIA H100", 2))
    assert "gpu: NVIDIA GB10 -> NVIDIA H100; gpu_count: 1 -> 2" in h(shipped, "H2").sentence


@pytest.mark.parametrize(
    ("machine", "message"), [(Machine("  "), "which GPU the runs took place on is missing"),
                             (Machine("G" * 201), "that is no name of a GPU"),
                             (Machine("NVIDIA\x1b[2J"), "that is no name of a GPU"),
                             (Machine("NVIDIA GB10", 0), "0 GPUs cannot be")],
)  # fmt: skip
def test_whoever_kept_to_the_plan_says_on_what(shipped, machine, message):
    with pytest.raises(InputError, match=message):
        bring(shipped, ROW, machine=machine)
    assert not [e for e in case_state(shipped, CASE).evidence if e.kind == "entered"]


def test_a_total_speed_is_held_against_the_plans_bound_as_a_bundles_is(shipped):
    bound = next(c for c in case_state(shipped, CASE).plan.candidates if c.id == "vllm").bound_tok_s["single"]
    single = TOTAL._replace(load_point="single", in_flight=1, value=bound / 2)
    arrived = bring(shipped, single, single._replace(input_tokens=16), single._replace(candidate="ollama"))
    (ratio,) = [e for e in arrived.evidence if e.metric == "measured_over_bound"]  # another length, no bound: no ratio
    assert (ratio.candidate, ratio.value, ratio.kind) == ("vllm", pytest.approx(0.5), "entered")
    verdict = h(shipped, "H6-1")  # between 0.4 and 0.95
    assert (verdict.state, verdict.side) == ("holds", "holds")
    assert f"over the plan's coverage bound of {bound:,.0f} tok/s" in verdict.sentence


def test_the_bound_of_a_ratio_is_the_one_that_counts_experts_and_is_called_so(shipped):
    # At 16 in flight 128 x (1 - (1 - 8/128)^16) = 82 of 128 experts are read, not 8. 48 layers x 82.4 x 3 x 2048 x 768
    # and 1.5 G others at one byte, and 16 x 4,096 tokens x 96 KiB: 26.7 GB a step at 273 GB/s are 164 tok/s. The bound
    # without experts is the seed's 463.
    arrived = bring(shipped, TOTAL._replace(value=463.0))
    (ratio,) = [e for e in arrived.evidence if e.metric == "measured_over_bound"]
    assert ratio.value == pytest.approx(463 / 164, rel=0.02)
    assert "over the plan's coverage bound of 16" in ratio.note


def test_a_ratio_that_was_typed_in_stands(shipped):
    typed = ROW._replace(metric="measured_over_bound", statistic="value", value=0.7)
    arrived = bring(shipped, TOTAL._replace(value=400.0), typed)
    assert [e.value for e in arrived.evidence if e.metric == "measured_over_bound"] == [0.7]
