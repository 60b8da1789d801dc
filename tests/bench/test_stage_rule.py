"""Stage B's setting, from bundles whose every speed can be computed on paper."""

from __future__ import annotations

from pathlib import Path

from bench.stage_rule import Setting, setting_from
from planner.condition_line import parse_condition
from planner.poc import StageRule
from tests.bundle.made import POINT, bundle, closed_loop, request

PROMISE = "vllm: user_tok_s p5 >= 20 tok/s"


def rule(keeps: str = PROMISE) -> StageRule:
    return StageRule(setting="max_num_seqs", from_stage="A", keeps=parse_condition(keeps))


def rung(folder: Path, n: int, itl_s: float = 0.04, schema: dict[str, str] | None = None, **more: object) -> Path:
    """A bundle with `n` in flight, whose users each get a token every `itl_s`: 25 tok/s at 0.04 s, 10 at 0.1 s."""
    fields = {"name": f"parallel-{n}", "in_flight": n, "requests": 5 * n, "json_schema": schema}
    records = closed_loop(slots=n, itl_s=itl_s)
    return bundle(folder / f"{n}", records, point=POINT.model_copy(update=fields), **more)


def test_the_setting_is_the_last_point_below_the_first_that_breaks_the_promise(tmp_path: Path) -> None:
    rungs = [rung(tmp_path, n, itl_s) for n, itl_s in ((8, 0.04), (4, 0.1), (2, 0.04), (1, 0.04))]
    assert setting_from(rungs, rule()) == Setting(2, f"{PROMISE} holds up to parallel-2")


def test_where_no_point_keeps_it_the_smallest_is_used(tmp_path: Path) -> None:
    rungs = [rung(tmp_path, n, 0.1) for n in (2, 1)]
    assert setting_from(rungs, rule()) == Setting(1, f"{PROMISE} holds at no point: the smallest, parallel-1, is used")


def test_a_point_whose_figures_are_spoiled_keeps_nothing(tmp_path: Path) -> None:
    rungs = [rung(tmp_path, 1), rung(tmp_path, 2, loop_lag_p99_ms=80.0), rung(tmp_path, 4)]
    assert setting_from(rungs, rule()) == Setting(1, f"{PROMISE} holds up to parallel-1")


def test_only_the_statistic_that_is_promised_counts(tmp_path: Path) -> None:
    late = closed_loop()
    late[4] = request(4, 1.4, ttft_s=2.0)  # p50 stays 0.2 s, p95 does not
    folder = bundle(tmp_path / "late", late)
    assert setting_from([folder], rule("vllm: ttft p50 <= 0.3 s")).why.endswith("holds up to parallel-2")
    assert "holds at no point" in setting_from([folder], rule("vllm: ttft p95 <= 0.3 s")).why


def test_answers_that_end_by_themselves_are_no_rung(tmp_path: Path) -> None:
    free = rung(tmp_path, 2, schema={"type": "object"})
    assert setting_from([rung(tmp_path, 1), free], rule()).value == 1
    assert setting_from([free], rule()) is None
