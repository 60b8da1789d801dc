"""Exported decisions against bundles without a database: what fires, what lint finds, what could not be looked at."""

from __future__ import annotations

import re
import shutil

import pytest

from decisions.flip_condition import FlipCondition
from planner.errors import BundleError, InputError
from services.adr_check import check_folder
from services.decisions import open_adr, save
from services.exporting import export_all
from tests.bundle.made import POINT
from tests.services.made import accepted, measured, small_plan, with_plan


@pytest.fixture
def exported(shipped, tmp_path):
    """Nortia's decision with one measurable condition, in a folder."""
    with_plan(shipped, small_plan(POINT))
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    line = f"vllm: ttft p95 <= 100 ms at {POINT.name} -> look for the cause"
    flip = FlipCondition.from_line("slow", line, fires_when="fails", owner="Lee", recheck_on=opened.adr.review_on)
    save(shipped, opened, opened.adr.text.model_copy(update={"conditions": (flip,)}), "Lee")
    accepted(shipped)
    export_all(shipped, tmp_path / "adr")
    shipped.store.close()  # from here on there is no database
    shutil.rmtree(tmp_path / "home")
    return tmp_path / "adr"


def test_a_condition_fires_on_a_bundle_with_its_distance(exported, tmp_path):
    measured(tmp_path / "runs" / "one")  # every first token after 200 ms, and 100 ms are the limit
    found = check_folder(exported, tmp_path / "runs")
    (fired,) = found.decisions[0].fired
    assert (fired.condition, found.bundles, found.well) == ("slow", 1, False)
    assert fired.value == pytest.approx(200, abs=1)
    assert fired.distance == pytest.approx(-100, abs=1)
    assert found.sentence == (
        "1 decisions with 1 conditions held against 1 bundles: 1 decided, 1 fired, 0 lint errors."
    )


def test_without_bundles_nothing_is_decided_and_that_is_said(exported):
    found = check_folder(exported, None)
    assert found.well
    assert "held against 0 bundles: 0 decided" in found.sentence
    assert found.passed_over == ("README.md",)


def test_lint_needs_no_database_either(exported):
    (path,) = exported.glob("0001-*.md")
    path.write_text(path.read_text().replace("  owner: Lee\n", ""))
    found = check_folder(exported, None)
    assert [f.rule for f in found.decisions[0].findings] == ["FL009"]
    assert not found.well


def test_another_version_than_the_one_decided_on_does_not_decide(exported, tmp_path):
    (path,) = exported.glob("0001-*.md")
    text, asked = path.read_text(), "      candidate: {engine: vllm, engine_version: 1.9.0}\n      shared:\n"
    assert "    vllm:\n      shared:\n" in text
    path.write_text(text.replace("      shared:\n", asked, 1))
    measured(tmp_path / "runs" / "one", asked="0.20.0", reported="0.20.0")
    (verdict,) = check_folder(exported, tmp_path / "runs").decisions[0].verdicts
    assert verdict.state == "expired"


def test_a_proposal_is_judged_too_and_a_rejected_one_is_passed_over(exported):
    (path,) = exported.glob("0001-*.md")
    text = path.read_text()
    path.write_text(text.replace("\nstatus: accepted\n", "\nstatus: proposed\n"))
    assert [c.adr.status.value for c in check_folder(exported, None).decisions] == ["proposed"]
    path.write_text(text.replace("\nstatus: accepted\n", "\nstatus: rejected\n"))
    with pytest.raises(InputError, match="holds no decision in force"):
        check_folder(exported, None)


def test_bundles_of_candidates_that_a_decision_does_not_know_say_nothing_about_it(exported, tmp_path):
    (path,) = exported.glob("0001-*.md")
    path.write_text(path.read_text().replace("vllm: ttft p95", "ttft p95"))  # a condition on whatever was measured
    measured(tmp_path / "runs" / "one", candidate="of-another-team")
    (verdict,) = check_folder(exported, tmp_path / "runs").decisions[0].verdicts
    assert verdict.state == "unmeasured"
    measured(tmp_path / "runs" / "two")
    (verdict,) = check_folder(exported, tmp_path / "runs").decisions[0].verdicts
    assert verdict.state == "fired"


def test_bad_input_is_named(exported, tmp_path):
    with pytest.raises(InputError, match="is not there"):
        check_folder(exported, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.md").write_text("# Notes\n")
    with pytest.raises(InputError, match="holds no decision in force that Flipline exported"):
        check_folder(tmp_path / "empty", None)
    records = next(
        p for p in measured(tmp_path / "runs" / "one").rglob("*") if p.suffix in (".parquet", ".jsonl", ".gz")
    )
    records.write_bytes(records.read_bytes()[:-1])
    with pytest.raises(BundleError):
        check_folder(exported, tmp_path / "runs")


def test_a_block_that_was_spoiled_is_named_with_its_file(exported):
    (path,) = exported.glob("0001-*.md")
    path.write_text(path.read_text().replace("judged_in:\n", "judged_in:\n  service_levels: [1]\n", 1))
    found = check_folder(exported, None)
    (broken,) = found.broken
    assert re.match(r"0001-.*md: judged_in", broken)
    assert not found.well


def test_only_an_export_has_to_be_utf_8(exported):
    (exported / "0002-theirs.md").write_bytes("# Größe\n".encode("latin-1"))
    found = check_folder(exported, None)
    assert (found.broken, "0002-theirs.md" in found.passed_over, found.well) == ((), True, True)
    (path,) = exported.glob("0001-*.md")
    path.write_bytes(path.read_bytes().replace(b"Nortia, internal", b"Nortia\xe4, internal", 1))
    assert "0001-vllm-serves-nortia-internal-assistant.md, line" in check_folder(exported, None).broken[0]
    assert "is not UTF-8 text" in check_folder(exported, None).broken[0]


def test_a_condition_on_a_metric_that_is_gone_is_named_and_the_other_decisions_are_judged(exported, tmp_path):
    (path,) = exported.glob("0001-*.md")
    gone = path.with_name("0002-gone.md")
    gone.write_text(path.read_text().replace("vllm: ttft p95", "vllm: smoothness p95"))
    measured(tmp_path / "runs" / "one")
    found = check_folder(exported, tmp_path / "runs")
    (broken,) = found.broken
    assert broken.startswith("0002-gone.md, flip condition ") and "unknown metric 'smoothness'" in broken
    assert [(c.file, c.verdicts[0].state) for c in found.decisions] == [(path.name, "fired")]
    assert "Not readable: 1." in found.sentence
