"""A limit that is asked later is counted with the sample that it belongs to."""

from __future__ import annotations

from services.arrivals import bring_in
from services.recounts import counted_for
from tests.bundle.made import closed_loop, request
from tests.services.made import CASE, asking, measured, with_plan


def test_requests_that_had_waited_beyond_a_limit_asked_later_are_in_its_sample(shipped, tmp_path):
    # Seven answers in the window after 200 ms each; twenty requests were cut off after 700 s without a token.
    waiting = [request(10 + i, 2.0, outcome="undetermined", end_s=702.0) for i in range(20)]
    case = with_plan(shipped, asking("vllm: user_tok_s p5 >= 1 tok/s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a", records=[*closed_loop(), *waiting]), "Lee")
    (asked,) = asking("vllm: ttft p95 <= 250 ms at parallel-2").hypotheses
    (run,), stored = shipped.store.runs.of_case(case), shipped.store.evidence.of_case(case)
    counted = counted_for(shipped, [run], stored, asked.conditions).evidence
    key = f"{run.sha256[:12]}/parallel-2/1/ttft_ms/p95"
    before, after = (next(e for e in figures if e.id == key) for figures in (stored, counted))
    assert (before.n, before.beyond(250, "<=")) == (7, None)
    assert (after.n, after.beyond(250, "<=")) == (27, 20)
    assert after.effective_n == before.effective_n + 20
    assert after.value == before.value  # a stored figure stays
