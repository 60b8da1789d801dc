"""What is typed about flip conditions: the margin of "near" has a field, and what cannot be read any more stays."""

from __future__ import annotations

import pytest

from decisions.flip_condition import FlipCondition
from planner.errors import InputError
from services.adr_form import flip_from, flip_rows, flips_from, text_from
from tests.decisions.made import nortia

SLOW = FlipCondition.from_line("slow", "vllm: ttft p95 <= 2 s at peak near 10 % -> add a unit", fires_when="fails")
GONE = FlipCondition.model_validate({
    "id": "gone", "condition": {"metric": "ttft_to_paper_ms", "comparison": "<=", "threshold": 2.0}, "owner": "Lee",
})  # fmt: skip
REST = {"manual": False, "fires_when": "fails", "owner": "Kim", "recheck_on": None, "action": "reopen",
        "consequence": ""}  # fmt: skip


def test_the_margin_stands_beside_the_line():
    (row,) = flip_rows([SLOW])
    assert (row["line"], row["near_percent"]) == ("vllm: ttft p95 <= 2 s at peak", 10)
    assert flips_from([SLOW], [row]) == (SLOW,)
    (wider,) = flips_from([SLOW], [row | {"near_percent": 25.0}])
    assert wider.in_words() == "vllm: ttft p95 <= 2 s at peak near 25 %"
    (none,) = flips_from([SLOW], [row | {"near_percent": None}])
    assert none.in_words() == "vllm: ttft p95 <= 2 s at peak"


def test_a_margin_in_the_line_comes_before_the_field():
    flip = flip_from("slow", "vllm: ttft p95 <= 2 s at peak near 5 %", **REST, near_percent=20.0)
    assert flip.condition.near == 0.05


def test_what_cannot_be_read_any_more_is_kept_until_its_line_is_written_anew():
    (row,) = flip_rows([GONE])
    assert row["line"] == "ttft_to_paper_ms <= 2"
    assert flips_from([GONE], [row]) == (GONE,)
    (owned,) = flips_from([GONE], [row | {"owner": "Kim"}])
    assert (owned.owner, owned.forgotten) == ("Kim", GONE.forgotten)
    (anew,) = flips_from([GONE], [row | {"line": "vllm: ttft p95 <= 2 s at peak"}])
    assert anew.forgotten is None
    with pytest.raises(InputError, match=r"flip condition 'gone': unknown metric 'ttft_to_paper'"):
        flips_from([GONE], [row | {"line": "ttft_to_paper <= 3"}])


@pytest.mark.parametrize("title", ["", "  ", "\u202e\x00"])
def test_a_decision_needs_a_title_that_can_be_seen(title):
    nobody = dict.fromkeys(("good", "neutral", "bad", "decided", "consulted", "informed"), "")
    with pytest.raises(InputError, match="decision: title: is empty"):
        text_from(nortia(), {"title": title}, **nobody, conditions=())
