"""Capacity per unit and units from evidence, by hand calculation beside each figure."""

from __future__ import annotations

import pytest

from planner.conditions import Evidence, Kind
from planner.errors import InputError
from planner.measured_capacity import UnitCapacity, capacity_words, unit_capacity, units_measured
from planner.requirements import Hardware, ModelPlan, Requirements
from tests.planner.made import ttft
from tests.planner.test_knee import TTFT_P95_MS, at, closed_knee, imported, rate_knee

NORTIA = Requirements(
    peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2, input_tokens=3596,
    output_tokens=500, context_tokens=4096, requests_per_user_per_min=1,
    model_plans=(ModelPlan(id="B", label="B", model="Qwen/Qwen3-30B-A3B"),), hardware=(Hardware(gpu="gb10"),),
)  # fmt: skip


def test_imported_rates_give_units_at_5_s_as_imported() -> None:
    unit = unit_capacity("vllm", None, rate_knee(5), [])
    assert (unit.rate_per_s, unit.rate_kind) == (0.3, Kind.IMPORTED)
    assert capacity_words(unit) == ("0.3 req/s",)
    # A Poisson schedule of 8 req/s brought 7.65 of them in the window, and all were good.
    counted = unit.model_copy(update={"rate_per_s": 8.0, "good_per_s": 7.65})
    assert capacity_words(counted) == ("8 req/s offered, 7.65 done and good",)
    # 50 users x 1 a minute = 0.833 req/s; a unit loaded to 70 % takes 0.21: 3.97 -> 4 units, 5 with the spare.
    # 20 users: 0.333 / 0.21 = 1.59 -> 2, 3 with the spare.
    assert [
        (u.units, u.units_with_spare, u.decides)
        for u in (units_measured(NORTIA, unit, users, 0.7) for users in (20, 50))
    ] == [(2, 3, "request rate"), (4, 5, "request rate")]


def test_at_2_s_no_number_of_units_is_known_to_be_enough() -> None:
    needed = units_measured(NORTIA, unit_capacity("vllm", None, rate_knee(2), []), 50, 0.7)
    assert needed.units is None and needed.units_with_spare is None
    assert needed.sentence.startswith("No number of units is known to be enough for 50 users")


def total(tok_s: float, id: str, **more: object) -> Evidence:
    """Total output that was seen at eight in flight, beside the first tokens of `at`."""
    return ttft(metric="output_tok_s", statistic="value", unit="tok/s", value=tok_s, id=id, source=id, exceedances=(),
                **{"load_point": "parallel-8", "load_hash": None} | more)  # fmt: skip


def test_users_and_total_speed_both_count_and_the_larger_decides() -> None:
    evidence = [
        at(8, 900), at(16, 9000),
        total(170.0, "total"),
        # Neither an older contract nor another load of that name speaks for the unit of today.
        total(900.0, "older", contract="another"), total(800.0, "shorter", load_hash="another"),
        total(700.0, "spoiled", spoiled_by=("loop-lag: the client's event loop lagged by 80 ms at p99",)),
    ]  # fmt: skip
    unit = unit_capacity("vllm", closed_knee([8, 16], evidence), None, evidence)
    assert (unit.users, unit.output_tok_s) == (8, 170.0)
    needed = units_measured(NORTIA, unit, 50, 0.7)
    # 50 / 8 -> 7 units by users; 50 x 25 = 1,250 tok/s over 170 -> 8 units by the total.
    assert (needed.by_users, needed.by_total, needed.units, needed.decides) == (7, 8, 8, "total throughput")


def test_the_cost_rests_on_the_closed_knee_and_on_the_open_one_only_without_it() -> None:
    both = UnitCapacity(candidate="vllm", users_tok_s=170.0, rate_tok_s=90.0)
    assert both.output_tok_s == 170.0
    assert UnitCapacity(candidate="vllm", rate_tok_s=90.0).output_tok_s == 90.0


def test_goodput_counts_where_it_was_counted_under_the_same_levels() -> None:
    knee = rate_knee(5)
    figures = {"request_rate": 0.29, "goodput": 0.9}
    evidence = [
        ttft(metric=m, statistic="value", unit="share", value=v, id=m, kind=Kind.IMPORTED, load_point="rate-0.3",
             service_levels="these", exceedances=(), contract=None, load_hash=None)
        for m, v in figures.items()
    ] + [imported(r, v) for r, v in TTFT_P95_MS.items()]  # fmt: skip
    good = unit_capacity("vllm", None, knee, evidence, "these").good_per_s
    assert good == pytest.approx(0.261)  # 0.29 x 0.9
    assert unit_capacity("vllm", None, knee, evidence, "others").good_per_s is None


def test_nothing_judged_is_not_known_rather_than_zero() -> None:
    needed = units_measured(NORTIA, UnitCapacity(candidate="vllm"), 20, 0.7)
    assert needed.units is None and not needed.out_of_reach
    assert needed.sentence == "Units for 20 users are not known: no load is decided."


def test_a_utilisation_above_all_is_refused() -> None:
    unit = unit_capacity("vllm", None, rate_knee(5), [])
    with pytest.raises(InputError, match="utilisation"):
        units_measured(NORTIA, unit, 20, 1.5)
