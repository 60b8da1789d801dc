"""The reasons for a weight speak of this case."""

from __future__ import annotations

import pytest

from planner.weighting import weights
from tests.planner.test_scoring import NORTIA


@pytest.mark.parametrize(("ttft_s", "words"), [(2.0, "within 2 s"), (1.5, "within 1.5 s")])
def test_a_reason_carries_the_cases_own_number(ttft_s, words):
    found = {w.criterion: w for w in weights(NORTIA.model_copy(update={"ttft_s": ttft_s}))}
    assert found["chunked_prefill"].why == (f"2: first token {words} while others run",)
