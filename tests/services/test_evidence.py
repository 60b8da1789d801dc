"""Bundles come in whole or not at all."""

from __future__ import annotations

import pytest

from planner.errors import BundleError, ConflictError
from services.arrivals import bring_in_zip
from services.cases import begin_case
from services.evidence import read_kept, take_in
from services.verdicts import case_state, judge_levels
from tests.bundle.made import POINT, bundle
from tests.services.made import CASE, small_plan, with_plan, zipped


@pytest.fixture
def case(shipped):
    return with_plan(shipped, small_plan(POINT))


def stored(ws, case):
    return len(ws.store.runs.of_case(case)), len(ws.store.evidence.of_case(case)), sorted(ws.runs.iterdir())


def test_a_bundle_is_kept_and_read_again(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    (taken,) = bring_in_zip(shipped, case, "a.zip", archive, "Kim").taken
    assert (taken.new, taken.run.imported_by, taken.run.kind) == (True, "Kim", "simulated")
    assert read_kept(shipped, taken.run).manifest.candidate == "vllm"


def test_the_same_zip_twice_is_one_run(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    bring_in_zip(shipped, case, "a.zip", archive, "Kim")
    before = stored(shipped, case)
    assert [t.new for t in bring_in_zip(shipped, case, "a.zip", archive, "Lee").taken] == [False]
    assert stored(shipped, case) == before


def test_a_bundle_belongs_to_one_case(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    bring_in_zip(shipped, case, "a.zip", archive, "Kim")
    r = case_state(shipped, CASE).requirements
    other = begin_case(shipped, "Other", r, "Lee")
    with pytest.raises(ConflictError, match="another case"):
        bring_in_zip(shipped, other.id, "a.zip", archive, "Kim")
    assert shipped.store.runs.of_case(other.id) == ()


def missing_file(folder):
    (folder / "records" / "r1.parquet").unlink()


def altered_file(folder):
    with (folder / "telemetry.parquet").open("ab") as f:
        f.write(b"x")


@pytest.mark.parametrize(
    ("harm", "message"),
    [(missing_file, r"records/r1\.parquet is missing"), (altered_file, r"telemetry\.parquet was altered")],
)
def test_a_harmed_bundle_leaves_the_store_as_it_was_with_its_good_neighbour(shipped, case, tmp_path, harm, message):
    good, bad = bundle(tmp_path / "a"), bundle(tmp_path / "b", start=2)
    harm(bad)
    before = stored(shipped, case)
    with pytest.raises(BundleError, match=message):
        bring_in_zip(shipped, case, "both.zip", zipped([good, bad], tmp_path / "both.zip"), "Kim")
    assert stored(shipped, case) == before


@pytest.mark.parametrize("content", [b"no zip at all", b""])
def test_what_is_no_zip_is_refused_by_its_name(shipped, case, content):
    with pytest.raises(BundleError, match=r"mine\.zip: is not a zip archive"):
        bring_in_zip(shipped, case, "mine.zip", content, "Kim")


def test_a_kept_bundle_that_was_altered_since_is_not_believed(shipped, case, tmp_path):
    run = take_in(shipped, case, bundle(tmp_path / "a"), "Kim").run
    altered_file(shipped.runs / run.path)
    with pytest.raises(BundleError, match="altered"):
        read_kept(shipped, run)


def test_thresholds_that_nobody_asked_about_at_import_are_counted_when_they_are_asked(shipped, case, tmp_path):
    take_in(shipped, case, bundle(tmp_path / "a"), "Kim")  # without conditions: nothing is counted
    level = small_plan(POINT).model_copy(
        update={"service_levels": case_state(shipped, CASE).requirements.service_levels()}
    )
    with_plan(shipped, level)
    piece = next(
        e
        for e in case_state(shipped, CASE).evidence
        if (e.kind, e.metric, e.statistic) == ("simulated", "ttft_ms", "p95")
    )
    assert piece.beyond(2000, "<=") == 0  # every first token came after 200 ms
    # the emulator never decides: 20 tok/s per user in the bundle is only an expectation
    verdict = judge_levels(case_state(shipped, CASE))["vllm", POINT.name]
    assert verdict.state == "unmeasured"
    assert "predicted to hold" in verdict.expectation
    assert "simulated" in verdict.expectation


def test_a_failed_start_is_a_run_with_an_outcome(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a", started=False)], tmp_path / "a.zip")
    (taken,) = bring_in_zip(shipped, case, "a.zip", archive, "Kim").taken
    assert taken.run.status == "failed"
    started = [e.value for e in shipped.store.evidence.of_case(case, metric="started")]
    assert started == [0.0]
