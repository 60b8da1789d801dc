"""Which input moves the answer most: hand-checked on Nortia, and what must hold of every tornado."""

import pytest

from planner.capacity import SizingSettings, size
from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.errors import InputError
from planner.requirements import Hardware, ModelPlan
from planner.tornado import RANGES, Leg, Swing, tornado
from tests.planner.test_capacity import GX10, PLANS, THOR, nortia, without_bandwidth

CATALOG = load_catalog()


def swings(plan: ModelPlan = PLANS[1]) -> dict[str, Swing]:
    return {s.key: s for s in tornado(nortia(), plan, GX10, CATALOG).swings}


def test_nortia_asks_for_17_units_and_the_target_speed_moves_it_most_but_one() -> None:
    found = tornado(nortia(), PLANS[1], GX10, CATALOG)
    assert found.base.units == 17
    spreads = [s.spread(found.base) for s in found.swings]
    assert spreads == sorted(spreads, reverse=True)
    assert found.swings[0].key in ("weights", "users", "target")
    # The same question asked of a sizing: 20 tok/s each allow a batch of 4 (the launch advice): ceil(50 / 4) = 13.
    target = swings()["target"]
    assert (target.low.label, target.low.units) == ("20 tok/s", 13)
    # Half of 50 users at a batch of 3: ceil(25 / 3) = 9; one and a half: ceil(75 / 3) = 25.
    users = swings()["users"]
    assert (users.low.units, users.high.units) == (9, 25)


@pytest.mark.parametrize("changed", [{"context_tokens": 8192, "input_tokens": 7192}])
def test_a_leg_is_the_sizing_with_that_input(changed: dict[str, object]) -> None:
    sized = size(nortia(**changed), PLANS[1], GX10, CATALOG).units_for(Kind.PLANNING, 50)
    leg = swings()["context"].high
    assert sized is not None
    assert (leg.label, leg.units, leg.user_tok_s) == ("8,192 tokens", sized.units, sized.unit_user_tok_s)


def test_half_the_matrix_use_is_twice_the_prefill_time() -> None:
    mfu = swings()["mfu"]
    assert (mfu.low.label, mfu.high.label) == ("MFU 0.2", "MFU 0.4")
    assert mfu.low.user_tok_s is not None and mfu.high.user_tok_s is not None
    assert mfu.low.user_tok_s < mfu.high.user_tok_s


def test_a_dense_model_has_no_experts_and_out_of_reach_is_the_farthest() -> None:
    # 15 GB a step at 273 GB/s: 25 tok/s are out of reach in 16 bit, not in INT4.
    found = tornado(nortia(), PLANS[0], GX10, CATALOG)
    assert found.base.units is None
    assert "experts" not in {s.key for s in found.swings}
    assert found.swings[0].key == "weights"
    assert found.swings[0].low.units is not None
    assert found.swings[0].spread(found.base)[0] == float("inf")


def test_an_end_that_does_not_fit_says_so() -> None:
    # 61 GB of 16-bit weights do not fit 24 GiB.
    plan = ModelPlan(id="D", label="30B INT4", model="Qwen/Qwen3-30B-A3B", quantization="int4")
    found = tornado(nortia(), plan, Hardware(gpu="RTX 4090"), CATALOG)
    weights = next(s for s in found.swings if s.key == "weights")
    assert weights.high == Leg(label="bf16", problem="not one request fits")


def test_the_case_itself_must_be_sizable() -> None:
    with pytest.raises(InputError, match="bandwidth is unknown"):
        tornado(nortia(), PLANS[1], THOR, without_bandwidth())


def test_settings_count_in_every_leg() -> None:
    whole = tornado(nortia(), PLANS[1], GX10, CATALOG)
    shared = tornado(nortia(), PLANS[1], GX10, CATALOG, SizingSettings(tenant_bandwidth_share=0.3))
    assert shared.base.user_tok_s == pytest.approx(0.7 * (whole.base.user_tok_s or 0), rel=0.25)
    assert (shared.base.user_tok_s or 0) < (whole.base.user_tok_s or 0)


def test_every_range_has_a_reason() -> None:
    assert all(r.why and r.title and r.ends[0] != r.ends[1] for r in RANGES)
