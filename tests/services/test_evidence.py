"""Bundles come in whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time

import pytest

from bundle.folder import seal
from planner.conditions import State
from planner.errors import BundleError, ConflictError
from services import evidence as evidence_service
from services.arrivals import bring_in, bring_in_files
from services.cases import begin_case
from services.evidence import read_kept, take_in
from services.plans import save_plan
from services.recounts import counted_for
from services.verdicts import case_state, judge_hypotheses, judge_levels
from services.workspace import ABANDONED_AFTER_S, open_workspace
from tests.bundle.made import POINT, bundle
from tests.services.made import CASE, asking, measured, small_plan, with_plan, zipped


@pytest.fixture
def case(shipped):
    return with_plan(shipped, small_plan(POINT))


def stored(ws, case):
    return len(ws.store.runs.of_case(case)), len(ws.store.evidence.of_case(case)), sorted(ws.runs.iterdir())


def test_a_bundle_is_kept_and_read_again(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    (taken,) = bring_in_files(shipped, case, [("a.zip", archive)], "Kim").taken
    assert (taken.new, taken.run.imported_by, taken.run.kind) == (True, "Kim", "simulated")
    assert read_kept(shipped, taken.run).manifest.candidate == "vllm"


def test_the_same_zip_twice_is_one_run(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    bring_in_files(shipped, case, [("a.zip", archive)], "Kim")
    before = stored(shipped, case)
    assert [t.new for t in bring_in_files(shipped, case, [("a.zip", archive)], "Lee").taken] == [False]
    assert stored(shipped, case) == before


def test_a_bundle_belongs_to_one_case(shipped, case, tmp_path):
    archive = zipped([bundle(tmp_path / "a")], tmp_path / "a.zip")
    bring_in_files(shipped, case, [("a.zip", archive)], "Kim")
    r = case_state(shipped, CASE).requirements
    other = begin_case(shipped, "Other", r, "Lee")
    with pytest.raises(ConflictError, match="another case"):
        bring_in_files(shipped, other.id, [("a.zip", archive)], "Kim")
    assert shipped.store.runs.of_case(other.id) == ()


def missing_file(folder):
    (folder / "records" / "r1.parquet").unlink()


def altered_file(folder):
    with (folder / "telemetry.parquet").open("ab") as f:
        f.write(b"x")


HARMS = [(missing_file, r"records/r1\.parquet is missing"), (altered_file, r"telemetry\.parquet was altered")]


@pytest.mark.parametrize(("harm", "message"), HARMS)
def test_a_harmed_bundle_is_named_and_keeps_no_other_out(shipped, case, tmp_path, harm, message):
    good, bad = bundle(tmp_path / "a"), bundle(tmp_path / "b", start=2)
    harm(bad)
    arrived = bring_in_files(shipped, case, [("both.zip", zipped([good, bad], tmp_path / "both.zip"))], "Kim")
    assert [t.run.start for t in arrived.taken] == [1]
    (broken,) = arrived.broken
    assert re.match(rf"both\.zip/b: {message}", str(broken.error))


@pytest.mark.parametrize(("harm", "message"), HARMS)
def test_a_harmed_bundle_alone_leaves_the_store_as_it_was(shipped, case, tmp_path, harm, message):
    bad = bundle(tmp_path / "b")
    harm(bad)
    before = stored(shipped, case)
    with pytest.raises(BundleError, match=rf"^one\.zip/b: {message}"):
        bring_in_files(shipped, case, [("one.zip", zipped([bad], tmp_path / "one.zip"))], "Kim")
    assert stored(shipped, case) == before


@pytest.mark.parametrize("content", [b"no zip at all", b""])
def test_what_is_no_zip_is_refused_by_its_name(shipped, case, content):
    with pytest.raises(BundleError, match=r"mine\.zip: is not a zip archive"):
        bring_in_files(shipped, case, [("mine.zip", content)], "Kim")


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
    (taken,) = bring_in_files(shipped, case, [("a.zip", archive)], "Kim").taken
    assert taken.run.status == "failed"
    started = [e.value for e in shipped.store.evidence.of_case(case, metric="started")]
    assert started == [0.0]


SLOW, SLOWER = "vllm: ttft p95 <= 2 s at parallel-2", "vllm: ttft p95 <= 3 s at parallel-2"
FASTER = "vllm: ttft p95 <= 1 s at parallel-2"


def first_verdict(ws):
    return judge_hypotheses(case_state(ws, CASE))[0].verdict


def test_a_lost_bundle_costs_its_new_thresholds_and_nothing_else(shipped, tmp_path):
    case = with_plan(shipped, asking(SLOW))
    folder = measured(tmp_path / "a")
    run = bring_in(shipped, CASE, folder, "Lee").taken[0].run
    assert case_state(shipped, CASE).findings == ()
    shutil.rmtree(shipped.runs / run.path)
    save_plan(shipped, case, asking(SLOWER), "Lee")
    assert first_verdict(shipped).state is State.HOLDS  # what kept 2 s keeps 3 s
    save_plan(shipped, case, asking(FASTER), "Lee")
    state = case_state(shipped, CASE)
    assert state.findings == (
        "The bundle of run run-vllm-1 (vllm, stage A, start 1) is missing or was altered: its thresholds cannot be "
        "counted again. Take it in again.",
    )
    assert first_verdict(shipped).state is not State.HOLDS
    assert [t.new for t in bring_in(shipped, CASE, folder, "Kim").taken] == [False]  # and the copy is back
    assert case_state(shipped, CASE).findings == ()
    assert first_verdict(shipped).state is State.HOLDS


def test_taking_an_altered_bundle_in_again_mends_the_kept_copy(shipped, case, tmp_path):
    folder = bundle(tmp_path / "a")
    run = take_in(shipped, case, folder, "Kim").run
    altered_file(shipped.runs / run.path)
    assert take_in(shipped, case, folder, "Kim").new is False
    assert read_kept(shipped, run).sha256 == run.sha256
    assert [p.name for p in shipped.runs.iterdir()] == [run.path]


def test_an_import_that_fails_leaves_no_folder(shipped, case, tmp_path, monkeypatch):
    def fails(*_):
        raise BundleError("the disk fell ill.")

    monkeypatch.setattr(shipped.store.runs, "take_in", fails)
    with pytest.raises(BundleError, match="fell ill"):
        bring_in(shipped, CASE, bundle(tmp_path / "a"), "Kim")
    assert stored(shipped, case)[0] == 0
    assert list(shipped.runs.iterdir()) == []


def test_a_bundle_that_was_kept_before_stays_when_a_later_import_fails(shipped, case, tmp_path):
    run = take_in(shipped, case, bundle(tmp_path / "a"), "Kim").run
    other = begin_case(shipped, "Other", case_state(shipped, CASE).requirements, "Lee")
    with pytest.raises(ConflictError):
        take_in(shipped, other.id, tmp_path / "a", "Kim")
    assert read_kept(shipped, run).sha256 == run.sha256


def test_several_who_bring_the_same_bundle_at_once_all_succeed(tmp_path, shipped, case):
    folder, url = bundle(tmp_path / "a"), f"sqlite:///{tmp_path}/flipline.db"
    outcomes = []

    def bring():
        mine = open_workspace(shipped.home, url=url)
        outcomes.append(bring_in(mine, CASE, folder, "Kim").taken[0].new)
        mine.store.close()

    threads = [threading.Thread(target=bring) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(outcomes) == [False, False, True]
    assert len(list(shipped.runs.iterdir())) == 1


def test_who_comes_second_while_copying_uses_the_copy_of_the_first(shipped, tmp_path, monkeypatch):
    folder = bundle(tmp_path / "a")
    sha256 = evidence_service.bundle_sha256(folder)
    both_copied, copy = threading.Barrier(2), shutil.copytree

    def slow(*args):
        copy(*args)
        both_copied.wait(60)

    monkeypatch.setattr(evidence_service.shutil, "copytree", slow)
    kept = []
    threads = [
        threading.Thread(target=lambda: kept.append(evidence_service._keep(shipped, folder, sha256))) for _ in range(2)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert kept == [shipped.runs / sha256[:16]] * 2
    assert list(shipped.runs.iterdir()) == [shipped.runs / sha256[:16]]


def test_what_a_dead_process_left_half_copied_is_swept_at_the_next_start(shipped, tmp_path):
    old, young = shipped.runs / ".part-old", shipped.runs / ".part-young"
    for folder in (old, young):
        (folder / "new").mkdir(parents=True)
    long_ago = time.time() - ABANDONED_AFTER_S - 1
    os.utime(old, (long_ago, long_ago))
    open_workspace(shipped.home, url=f"sqlite:///{tmp_path}/flipline.db").store.close()
    assert list(shipped.runs.iterdir()) == [young]


def test_goodput_is_counted_again_under_the_levels_of_today(shipped, tmp_path):
    # every first token comes after 200 ms: all requests meet 10 s, none meets 0.1 s
    case = with_plan(shipped, asking("vllm: goodput >= 0.9 at parallel-2", levels=("ttft p95 <= 10 s",)))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    assert (first_verdict(shipped).value, first_verdict(shipped).side) == (1.0, "holds")
    save_plan(shipped, case, asking("vllm: goodput >= 0.9 at parallel-2", levels=("ttft p95 <= 0.1 s",)), "Lee")
    now_judged = first_verdict(shipped)
    assert (now_judged.value, now_judged.side) == (0.0, "fails")
    assert [p.reason for p in now_judged.passed_over] == ["goodput was counted under other service levels"]


def test_a_condition_that_no_line_can_say_does_not_stop_the_case(shipped, tmp_path):
    # written by an older Flipline, or through the Python interface
    case = with_plan(shipped, asking(SLOW))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    odd = asking(SLOWER)
    strange = odd.hypotheses[0].conditions[0].model_copy(update={"metric": "started", "statistic": "p95"})
    h = odd.hypotheses[0].model_copy(update={"conditions": (*odd.hypotheses[0].conditions, strange)})
    counted = counted_for(shipped, shipped.store.runs.of_case(case), shipped.store.evidence.of_case(case), h.conditions)
    assert counted.findings == ()
    assert any(e.beyond(3000, "<=") == 0 for e in counted.evidence)


def test_each_bundle_is_judged_under_its_own_contract(shipped, tmp_path):
    with_plan(shipped, asking(SLOW))
    for i, declared in enumerate(((), ("quantization",)), 1):
        folder = measured(tmp_path / str(i), start=i)
        sealed = evidence_service.open_bundle(folder)
        contract = sealed.contract.model_copy(update={"declared_differences": declared})
        seal(folder, sealed.model_copy(update={"contract": contract}))
        bring_in(shipped, CASE, folder, "Lee")
    state = case_state(shipped, CASE)
    seen = {e.start: state.context.contracts[e.contract].declared_differences for e in state.evidence if e.start}
    assert seen == {1: (), 2: ("quantization",)}


def test_a_new_threshold_is_counted_once_and_found_by_the_next_process(shipped, tmp_path, monkeypatch):
    with_plan(shipped, asking(SLOW))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    with_plan(shipped, asking(SLOWER))
    assert first_verdict(shipped).state is State.HOLDS
    again = open_workspace(shipped.home, url=f"sqlite:///{tmp_path}/flipline.db")  # with nothing in memory

    def never(*_):
        raise AssertionError("the bundle was read again")

    monkeypatch.setattr("services.recounts.read_kept", never)
    assert first_verdict(again).state is State.HOLDS
    again.store.close()


def test_only_what_is_sealed_is_kept_of_a_folder(shipped, tmp_path):
    folder = bundle(tmp_path / "b")
    (tmp_path / "elsewhere").write_text("not part of the bundle")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe")  # nothing would ever come out of it
    run = take_in(shipped, shipped.store.cases.get("nortia").id, folder, "Kim").run
    assert sorted(p.name for p in (shipped.runs / run.path).rglob("*")) == [
        "manifest.json", "r1.parquet", "records", "telemetry.parquet",
    ]  # fmt: skip
