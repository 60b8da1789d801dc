"""What templates bring into a plan runs, and gives the figures that their hypotheses are judged on."""

from __future__ import annotations

from pathlib import Path

from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.runner import run_plan
from bundle.summary import summarise
from planner.hypotheses import written
from planner.hypothesis_edits import add
from planner.planning import Roles, case_of, load_points, make_plan
from planner.poc import Plan, PlanCandidate
from services.quality_set import SHIPPED_SET, shipped_quality_set
from tests.bench.helpers import candidate, with_emulator
from tests.planner.test_hypotheses import NOW
from tests.planner.test_scoring import NORTIA

SMALL = NORTIA.model_copy(update={
    "peak_users_min": 2, "peak_users_max": 2, "input_tokens": 40, "output_tokens": 8, "context_tokens": 256,
    "user_tok_s_promise": 40.0, "user_tok_s_target": 40.0,
})  # fmt: skip
ADDED = ("H-prefix", "H-json", "H-gap", "H-answers")


def small_plan(port: int) -> Plan:
    """A plan derived for two users of an emulator, with the four templates that bring load points."""
    emulated = PlanCandidate.model_validate(candidate(port, name="vllm"))
    points = load_points(SMALL, 2, 4)
    roles = Roles("vllm", None)
    plan = make_plan(case="small", title="t", requirements=SMALL, roles=roles, candidates=(emulated,), points=points,
                     shared_contract={"model": "emulated"}, declared_differences=(), now=NOW)  # fmt: skip
    case = case_of(SMALL, roles, plan.candidates, points, plan.stages[0].points, shipped_quality_set())
    for id in ADDED:
        for w in written(id, case):
            plan = add(plan, w.hypothesis, w.points)
    first, _, own = plan.stages
    short = first.model_copy(update={"points": (case.regular, "json")})
    return plan.model_copy(update={"starts": 1, "stages": (short, own)})


def test_every_added_point_gives_what_its_hypothesis_is_judged_on(tmp_path: Path) -> None:
    async def run(emulator: Emulator) -> Plan:
        plan = small_plan(emulator.port)
        result = await run_plan(plan, tmp_path / "out", folder=SHIPPED_SET.parent)
        bundles.extend(result.bundles)
        return plan

    bundles: list[Path] = []
    # As fast as promised and half as fast again: victims still decode when the long prompts come.
    plan = with_emulator(Settings(ttft_ms=10, itl_ms=15), run)
    given = {(e.metric, e.statistic, e.load_point) for b in bundles for e in summarise(b, plan.all_conditions())}
    asked = [c for h in plan.hypotheses if h.id in ADDED for c in h.conditions]
    assert {(c.metric, c.statistic, name) for c in asked for name in c.load_points} <= given
