"""Bundles of older versions read as they were sealed; of what they could not have said nothing is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundle.folder import bundle_sha256, open_bundle
from bundle.manifest import BUNDLE_SCHEMA, MANIFEST, Manifest
from bundle.migrate import STEPS, read_manifest
from bundle.run_data import read_run
from bundle.summary import evidence_of
from planner.errors import BundleError, SchemaTooNew
from tests.bundle.made import bundle

FIRST = Path(__file__).parent.parent / "golden" / "bundles" / "schema-1"


def test_the_first_bundle_ever_written_gives_its_figures_today():
    assert json.loads((FIRST / MANIFEST).read_text())["schema_version"] == 1
    run = read_run(FIRST)
    found = {(e.metric, e.statistic): e for e in evidence_of(run)}
    # its emulator: first token 20 ms after admission, then one every 5 ms; the client of those days adds under 3 ms
    assert 20 <= found["ttft_ms", "p50"].value < 23
    assert found["tpot_ms", "p50"].value == pytest.approx(5, rel=0.1)
    assert {e.kind for e in found.values()} == {"simulated"}


def test_its_identity_is_still_that_of_the_sealed_file():
    # sha256sum tests/golden/bundles/schema-1/manifest.json
    assert bundle_sha256(FIRST) == "4795871327ec4587be329fd9724628aef4b62e00eef6fcc2896eb182438bb38d"
    assert open_bundle(FIRST).schema_version == BUNDLE_SCHEMA


def test_what_an_early_bundle_did_not_watch_is_said():
    (note,) = [f for f in open_bundle(FIRST).findings if f.startswith("an early bundle")]
    assert "nobody watched whether the client stood still, whether it held the server back" in note


def test_a_bundle_of_version_1_that_watched_everything_gets_no_note(tmp_path):
    raw = json.loads((bundle(tmp_path / "b") / MANIFEST).read_text())
    assert read_manifest(json.dumps(raw | {"schema_version": 1}), "b") == Manifest.model_validate(raw)


def test_every_older_version_has_its_step():
    assert sorted(STEPS) == list(range(1, BUNDLE_SCHEMA))


def test_a_newer_version_asks_for_an_update():
    with pytest.raises(SchemaTooNew, match=f"x: bundle schema 99 is newer than {BUNDLE_SCHEMA}. Update Flipline."):
        read_manifest('{"schema_version": 99}', "x")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "\x00", "[" * 99_999, '{"schema_version": []}', '{"schema_version": 1, "findings": 3}',
     '{"schema_version": 1, "repeats": {"a": 1}}', '{"schema_version": 0}', '{"schema_version": "1"}'],
)  # fmt: skip
def test_what_is_no_manifest_is_one_sentence(text):
    with pytest.raises(BundleError, match=r"x: manifest\.json"):
        read_manifest(text, "x")
