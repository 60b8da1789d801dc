"""What the starts of a candidate hold against what a load asks for, and when two sides' figures are of one load."""

from __future__ import annotations

import pytest

from planner.condition_line import parse_condition
from planner.conditions import Kind
from planner.pairing import KvCapacity, Refused, pair, spread
from tests.planner.made import context, speed


@pytest.mark.parametrize(
    ("lowest", "highest", "binds", "unlike"),
    [
        (10_240, 10_240, False, False),  # 16 x (512 + 128) fit to the last token
        (10_239, 10_239, True, False),
        (8_000, 12_000, True, True),  # all fit in one start and not in another
        (8_000, 8_400, True, False),  # 5 % apart, which repeats of one start are too
        (8_000, 8_401, True, True),
        (12_000, 16_000, False, False),
    ],
)
def test_kv_capacity_binds_where_one_start_cannot_hold_the_load(lowest, highest, binds, unlike):
    held = KvCapacity("vllm", lowest, highest, needed=16 * (512 + 128))
    assert (held.binds, held.unlike) == (binds, unlike)


def test_a_range_around_a_figure_counts_only_where_a_foreign_source_states_it():
    measured = [speed(v, i, interval=(v - 50, v + 50)) for i, v in enumerate((100.0, 110.0), 1)]
    assert spread(measured)[1:] == (100.0, 110.0, False)  # our own interval is within a start, not over starts
    stated = [p.model_copy(update={"kind": Kind.IMPORTED}) for p in measured]
    assert spread(stated)[1:] == (50.0, 160.0, True)


def test_without_a_plan_two_sides_still_have_to_be_of_one_load():
    ratio = parse_condition("vllm over ollama: output_tok_s >= 3 x at parallel-16")
    sides = [speed(400.0), speed(100.0, candidate="ollama", load_hash="another")]
    assert pair(ratio, "parallel-16", sides, context(points=None)) == Refused("the load differs")
