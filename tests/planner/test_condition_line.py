"""A condition is one line, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.condition_line import EVERY_POINT, format_condition, parse_condition
from planner.conditions import Condition
from planner.errors import InputError, UnknownName
from planner.metrics import METRICS, Level


@pytest.mark.parametrize(
    ("line", "metric", "statistic", "comparison", "threshold", "points"),
    [
        ("ttft p95 <= 2 s at peak", "ttft_ms", "p95", "<=", 2000.0, ("peak",)),
        ("vllm: user_tok_s p5 >= 20 tok/s at parallel-16", "user_tok_s", "p5", ">=", 20.0, ("parallel-16",)),
        ("vllm over ollama: output_tok_s >= 3 x at parallel-16", "output_tok_s", "value", ">=", 3.0, ("parallel-16",)),
        ("vllm: started is true", "started", "value", "is", 1.0, ()),
        ("error_share <= 1 % at overload", "error_share", "value", "<=", 0.01, ("overload",)),
        ("peak_in_flight max <= 5 over 28 days -> go simpler", "peak_in_flight", "max", "<=", 5.0, ()),
        (
            "ttft_ms p95 <= 1,500 ms at every of peak, parallel-50",
            "ttft_ms",
            "p95",
            "<=",
            1500.0,
            ("peak", "parallel-50"),
        ),
        ("startup_s <= 5 min", "startup_s", "value", "<=", 300.0, ()),
    ],
)
def test_a_line_reads_as_the_object(line, metric, statistic, comparison, threshold, points):
    c = parse_condition(line)
    assert (c.metric, c.statistic, c.comparison, c.threshold, c.load_points) == (
        metric, statistic, comparison, threshold, points,
    )  # fmt: skip
    assert parse_condition(format_condition(c)) == c


def test_the_promise_prints_as_people_write_it():
    c = Condition(metric="ttft_ms", statistic="p95", comparison="<=", threshold=2000, load_points=("peak",), near=0.1)
    assert format_condition(c) == "ttft p95 <= 2 s at peak near 10 %"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tfft p95 <= 2 s at peak", "Did you mean 'ttft'?"),
        ("ttft p96 <= 2 s at peak", "Did you mean 'p9"),
        ("ttft p95 <= 2 tok/s at peak", "Use ms or s"),
        ("ttft p95 at peak", "no comparison"),
        ("ttft p95 <= 2 s at peak tomorrow", "'tomorrow' not understood"),
        ("ttft p95 <= 2 s at peak over 28 days", "only demand metrics"),
        ("measured_over_bound between 0.9 and 0.3 x at peak", "from small to large"),
        ("over ollama: output_tok_s >= 3 x", "unknown metric 'over'"),
        ("", "Write it like"),
        ("ttft p95 <= 1,5 s at peak", "no comparison"),
        ("ttft p95 <= 2 at peak", "Write 2 s or 2 ms."),
        ("user_tok_s p5 >= 20 at peak", "Write 20 tok/s."),
        ("error_share <= 5 at peak", "write 5 %"),
        ("ttft p95 <= -2 s at peak", "no comparison"),
        ("ttft p95 <= 2 s at peak near 1,5 %", "not understood"),
    ],
)
def test_a_wrong_line_says_what_and_what_would_be_right(line, says):
    with pytest.raises(InputError) as error:
        parse_condition(line)
    assert says in str(error.value)


def test_an_unknown_metric_is_an_unknown_name():
    with pytest.raises(UnknownName):
        parse_condition("velocity >= 3")


_names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(lambda n: n not in ("every", "any"))
_numbers = st.floats(0.001, 1e6).map(lambda x: float(f"{x:.6g}"))


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    metric = draw(st.sampled_from(sorted(METRICS)))
    row = METRICS[metric]
    comparison = draw(st.sampled_from(["<=", ">=", "between"] if row.unit != "bool" else ["is", "<=", ">="]))
    threshold = draw(st.sampled_from([0.0, 1.0])) if row.unit == "bool" else draw(_numbers)
    if row.unit == "share":
        threshold = min(threshold, 0.5) if comparison == "between" else min(threshold, 1.0)
    upper = None
    if comparison == "between":  # a sum may have more digits than a line carries
        upper = float(f"{min(threshold + draw(_numbers), 1.0 if row.unit == 'share' else 1e9):.6g}")
    candidate = draw(_names if row.paired else st.none() | _names)
    return Condition(
        metric=metric,
        statistic=draw(st.sampled_from(row.statistics)),
        comparison=comparison,
        threshold=threshold,
        upper=upper,
        candidate=candidate,
        over=draw(_names if row.paired else st.none() | _names) if candidate and row.unit != "bool" else None,
        load_points=draw(
            st.just(()) | st.just((EVERY_POINT,)) | st.lists(_names, min_size=1, max_size=3, unique=True).map(tuple)
        ),
        near=draw(st.sampled_from([0.0, 0.05, 0.1])),
        window_days=draw(st.none() | st.integers(1, 90)) if row.level is Level.DEMAND else None,
        max_age_days=draw(st.none() | st.integers(1, 400)),
        tolerance=draw(st.sampled_from(["exact", "patch", "minor", "any"])),
        consequence=draw(st.sampled_from(["", "go simpler", "zurück, 戻す"])),
    )


@settings(max_examples=100)
@given(conditions())
def test_every_condition_reads_back_from_its_own_line(c: Condition):
    assert parse_condition(format_condition(c)) == c
