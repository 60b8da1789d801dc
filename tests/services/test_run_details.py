"""One repeat on demand: the same gaps and latencies as the definitions, what is shown of many, what is lost."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle import samples
from bundle.records import SCHEMA, Record, Sample
from planner.errors import BundleError
from services.evidence import manifest_of, take_in
from services.run_columns import CHUNKS, gaps, requests, server_metrics
from services.run_details import (
    BARS,
    gap_details,
    metric_lines,
    outliers,
    phases,
    request_details,
    thin,
    with_longest_gap,
    with_reasons,
)
from tests.bundle.made import POINT, bundle, closed_loop, request
from tests.services.made import small_plan, with_plan


@pytest.fixture
def case(shipped):
    return with_plan(shipped, small_plan(POINT))


def taken(ws, case, folder):
    run = take_in(ws, case, folder, "Kim").run
    return ws, run, manifest_of(run).repeats[0]


def read(ws, case, folder):
    return request_details(*taken(ws, case, folder))


def table(records):
    return pa.table(
        {n: [getattr(r, n) for r in records] for n in CHUNKS}, schema=pa.schema([SCHEMA.field(n) for n in CHUNKS])
    )


@st.composite
def chunked(draw: st.DrawFn) -> Record:
    steps = draw(st.lists(st.floats(0, 2, width=32), max_size=6))
    at, times = 0.0, []
    for step in steps:
        at += step
        times.append(at)
    bound = draw(st.lists(st.booleans(), max_size=len(times)))
    fields = {"chunk_s": times, "chunk_tokens": [1] * len(times), "chunk_bound": tuple(bound)}
    return request(0, 0.0)._replace(cohort=draw(st.sampled_from(["load", "victim", "aggressor"])), **fields)


@settings(max_examples=60, deadline=None)
@given(st.lists(chunked(), max_size=5))
def test_gaps_of_columns_are_those_of_the_definition(records: list[Record]) -> None:
    numbered = [r._replace(request=i) for i, r in enumerate(records)]
    found, left_out = gaps(table(numbered))
    defined = {r.request: samples.gaps(r) for r in numbered if r.is_load}
    assert sorted(zip(found.request, found.end_s, found.gap_ms, strict=True)) == sorted(
        (i, g.end_s, g.ms) for i, several in defined.items() for g in several
    )
    assert left_out == sum(max(0, len(r.chunk_s) - 1) - len(defined[r.request]) for r in numbered if r.is_load)


def test_latencies_of_columns_are_those_of_the_definitions(shipped, case, tmp_path):
    records = [*closed_loop(), request(10, 4.0, outcome="failed")]
    run = take_in(shipped, case, bundle(tmp_path / "a", records), "Kim").run
    frame = requests(shipped, run, manifest_of(run).repeats[0]).set_index("request")
    for r in records[:-1]:
        assert frame.ttft_ms[r.request] == samples.ttft_ms(r)
        assert frame.e2e_ms[r.request] == samples.e2e_ms(r)
    assert frame.ttft_ms.isna()[10]


def test_of_a_thousand_requests_every_outlier_is_shown(shipped, case, tmp_path):
    # 1,000 requests, one of them failed, one with a first token after 3 s, one whose tokens are 0.9 s apart
    odd = {7: {"outcome": "failed"}, 400: {"ttft_s": 3.0}, 800: {"itl_s": 0.9}}
    records = [request(i, i * 0.35, **odd.get(i, {})) for i in range(1000)]
    seen = read(shipped, case, bundle(tmp_path / "a", records))
    shown = seen.waterfall.frame
    assert len(shown) <= BARS + 1
    assert set(odd) <= set(shown.request)
    assert (seen.waterfall.total, seen.waterfall.every) == (1000, 10)  # 979 unremarkable ones in 99 places
    table = outliers(seen.requests)
    assert (table.request[0], table.why[0]) == (7, "failed")
    assert (table.request[1], table.why[1]) == (400, "slow first token")
    stalled = table.set_index("request").loc[800]
    assert "long gap" in stalled.why
    assert stalled.longest_gap_ms == pytest.approx(900)


def test_the_longest_gap_of_a_request_is_named_with_the_moment_at_which_it_first_ended():
    frame = pd.DataFrame({"request": [1, 2, 3]})
    gaps = pd.DataFrame({"request": [2, 2, 2, 1], "end_s": [1.0, 2.0, 3.0, 2.5], "gap_ms": [5.0, 90.0, 90.0, 7.0]})
    found = with_longest_gap(frame, gaps).set_index("request")
    assert found.longest_gap_ms[[1, 2]].tolist() == [7.0, 90.0]
    assert found.longest_gap_at_s[[1, 2]].tolist() == [2.5, 2.0]
    assert found.loc[3].isna().all()  # one token has no gap


def test_bars_of_a_request_follow_each_other_and_one_without_answer_has_its_own(shipped, case, tmp_path):
    # scheduled at 1 s, sent at 1.1 s, first token at 1.2 s, ten more every 0.05 s to 1.7 s; one refused after 0.1 s
    records = [request(0, 1.0, dispatch_lag_s=0.1), request(1, 3.0, outcome="failed")]
    seen = read(shipped, case, bundle(tmp_path / "a", records))
    bars = phases(seen.waterfall.frame)
    ok = bars[bars.request == 0].set_index("phase")
    assert ok.from_s.tolist() == pytest.approx([1.0, 1.1, 1.2])
    assert ok.to_s.tolist() == pytest.approx([1.1, 1.2, 1.7])
    assert bars[bars.request == 1].phase.tolist() == ["waits in the client", "no answer"]


def test_gaps_beside_an_aggressor_are_the_victims_and_its_interval_is_marked(shipped, case, tmp_path):
    victims = [r._replace(cohort="victim") for r in closed_loop()]
    aggressor = request(99, 1.0, tokens=11)._replace(cohort="aggressor")  # dispatched at 1 s, ends at 1.7 s
    one = taken(shipped, case, bundle(tmp_path / "a", [*victims, aggressor]))
    gaps = gap_details(*one)
    assert gaps.aggressor == pytest.approx((1.0, 1.7))
    assert len(gaps.shown.frame) == 100  # ten victims, ten gaps each, none of the aggressor's
    assert gaps.shown.frame.end_s.is_monotonic_increasing
    assert 99 not in set(request_details(*one).requests.request)


def test_merged_chunks_are_left_out_and_counted(shipped, case, tmp_path):
    # chunk 3 is an upper bound: gaps 2-3, 3-4 and 4-5 touch the merged group
    marked = request(0, 0.0)._replace(chunk_bound=tuple(i == 3 for i in range(11)))
    gaps = gap_details(*taken(shipped, case, bundle(tmp_path / "a", [marked])))
    assert (len(gaps.shown.frame), gaps.left_out) == (7, 3)


def test_a_server_metric_shows_the_highest_of_each_stretch(shipped, case, tmp_path):
    samples_ = [Sample(i / 100, "running", float(i == 555)) for i in range(4000)]
    server = server_metrics(*taken(shipped, case, bundle(tmp_path / "a", telemetry=samples_)))
    line = metric_lines(server, ("running", "waiting"))
    assert len(line) <= 401
    assert line.value.max() == 1.0
    assert metric_lines(server, ("gpu_power_w",)).empty


def test_a_repeat_without_requests_or_telemetry_is_empty_and_no_error(shipped, case, tmp_path):
    one = taken(shipped, case, bundle(tmp_path / "a", []))
    seen = request_details(*one)
    assert seen.requests.empty
    assert gap_details(*one).shown.frame.empty
    assert phases(seen.waterfall.frame).empty


def test_a_file_that_was_altered_since_is_not_shown(shipped, case, tmp_path):
    run = take_in(shipped, case, bundle(tmp_path / "a"), "Kim").run
    with (shipped.runs / run.path / "records" / "r1.parquet").open("ab") as f:
        f.write(b"x")
    with pytest.raises(BundleError, match=r"r1\.parquet is missing in the kept bundle or was altered"):
        request_details(shipped, run, manifest_of(run).repeats[0])


def test_only_the_asked_repeat_is_read(shipped, case, tmp_path):
    run = take_in(shipped, case, bundle(tmp_path / "a"), "Kim").run
    (shipped.runs / run.path / "manifest.json").unlink()  # neither this nor any other file is asked for
    assert len(request_details(shipped, run, manifest_of(run).repeats[0]).requests) == 10


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 500), marked=st.sets(st.integers(0, 499), max_size=30), most=st.integers(60, 200))
def test_thinning_keeps_what_is_marked_in_order_and_about_as_many_as_fit(n, marked, most):
    frame = pd.DataFrame({"i": range(n)})
    found = thin(frame, frame.i.isin(marked), most)
    assert found.frame.i.is_monotonic_increasing
    assert marked & set(range(n)) <= set(found.frame.i)
    assert len(found.frame) <= most + 1
    assert found.total == n


def test_few_requests_have_no_slowest(shipped, case, tmp_path):
    seen = read(shipped, case, bundle(tmp_path / "a", [request(i, i * 0.7) for i in range(5)]))
    assert outliers(seen.requests).empty
    assert with_reasons(seen.requests).why.tolist() == [""] * 5
