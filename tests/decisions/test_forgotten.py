"""A log outlives its metrics: a condition whose metric is gone reads as unmeasurable and breaks nothing."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from decisions.edits import ConditionAdded, edit_from_json, edit_to_json
from decisions.flip_condition import FlipCondition
from decisions.flips import judge_flip, judge_flips
from decisions.lint import lint
from decisions.view import current
from tests.decisions.made import NOW, accepted_edits, context, text

GONE = {"metric": "ttft_to_paper_ms", "statistic": "p95", "comparison": "<=", "threshold": 2000.0, "near": 0.1,
        "candidate": "vllm-b", "load_points": ["peak"]}  # fmt: skip
FLIP = {"id": "slow-paper", "condition": GONE, "fires_when": "fails", "owner": "Lee", "recheck_on": "2026-12-01"}


def stored() -> str:
    """An edit as an older Flipline wrote it, when the metric was there."""
    flip = text().conditions[1].model_copy(update={"id": "slow-paper"})
    edit = json.loads(edit_to_json(ConditionAdded(at=NOW + timedelta(days=2), author="Lee", condition=flip)))
    edit["condition"] |= FLIP
    return json.dumps(edit)


def test_the_log_loads_and_the_condition_says_what_is_gone():
    adr = current([*accepted_edits(), edit_from_json(stored())])
    judged = {v.condition: v for v in judge_flips(adr, (), context())}
    assert len(judged) == 5  # the seed's four stand beside it
    gone = judged["slow-paper"]
    assert gone.state == "unmeasurable"
    assert gone.sentence == (
        "Unmeasurable: the metric 'ttft_to_paper_ms' no longer exists. "
        "It was stored as 'vllm-b: ttft_to_paper_ms p95 <= 2000 at peak'."
    )
    assert [f.rule for f in lint(adr, (), context()) if f.condition == "slow-paper"] == ["FL004"]


def test_it_is_written_back_as_it_was_and_read_again_once_the_metric_is_there():
    edit = edit_from_json(stored())
    again = edit_from_json(edit_to_json(edit))
    assert again == edit
    forgotten = json.loads(edit_to_json(again))["condition"]["forgotten"]
    assert forgotten == {"stored": GONE}
    forgotten["stored"]["metric"] = "ttft_ms"  # as if it had come back
    flip = FlipCondition.model_validate(FLIP | {"condition": None, "forgotten": forgotten})
    assert flip.forgotten is None
    assert flip.in_words() == "vllm-b: ttft p95 <= 2 s at peak near 10 %"


def test_a_statistic_that_is_gone_is_unmeasurable_too():
    flip = FlipCondition.model_validate(FLIP | {"condition": GONE | {"metric": "ttft_ms", "statistic": "p42"}})
    seen = judge_flip(flip, current(accepted_edits()), (), context())
    assert seen.state == "unmeasurable"
    assert "ttft has no statistic 'p42'" in seen.sentence


def test_a_metric_that_takes_another_form_today_is_kept_with_the_reason():
    flip = FlipCondition.model_validate(FLIP | {"condition": GONE | {"metric": "ttft_ms", "window_days": 28}})
    seen = judge_flip(flip, current(accepted_edits()), (), context())
    assert seen.sentence.startswith("Unmeasurable: it can no longer be read (ttft is not observed over days")


def test_what_never_was_a_condition_is_refused():
    with pytest.raises(ValidationError):
        FlipCondition.model_validate(FLIP | {"condition": {"metric": "ttft_ms"}})


def test_a_condition_that_can_be_read_keeps_its_bytes():
    assert "forgotten" not in text().conditions[0].model_dump_json()
