"""A bundle is believed whole or not at all."""

from __future__ import annotations

import json
import zipfile

import pytest

from bundle.folder import bundle_sha256, open_bundle, pack, unpack
from bundle.manifest import MANIFEST
from planner.errors import BundleError, SchemaTooNew
from tests.bundle.made import bundle


def test_a_sealed_bundle_opens(tmp_path):
    folder = bundle(tmp_path / "b")
    assert open_bundle(folder).candidate == "vllm"
    assert len(bundle_sha256(folder)) == 64


def test_a_missing_file_is_named(tmp_path):
    folder = bundle(tmp_path / "b")
    (folder / "records" / "r1.parquet").unlink()
    with pytest.raises(BundleError, match=r"records/r1\.parquet is missing"):
        open_bundle(folder)


def test_an_altered_file_is_named(tmp_path):
    folder = bundle(tmp_path / "b")
    file = folder / "telemetry.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(BundleError, match=r"telemetry\.parquet was altered"):
        open_bundle(folder)


def test_a_folder_without_manifest_says_which_folder_to_choose(tmp_path):
    with pytest.raises(BundleError, match=r"manifest\.json is missing"):
        open_bundle(tmp_path)


def test_a_newer_format_asks_for_an_update(tmp_path):
    folder = bundle(tmp_path / "b")
    raw = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(raw | {"schema_version": 2}))
    with pytest.raises(SchemaTooNew, match="Update Flipline"):
        open_bundle(folder)


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 1}', "\x00"])
def test_a_broken_manifest_is_one_clear_sentence(tmp_path, text):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        open_bundle(tmp_path)


def test_a_manifest_cannot_point_outside(tmp_path):
    folder = bundle(tmp_path / "b")
    raw = json.loads((folder / MANIFEST).read_text())
    raw["files"] |= {"../../etc/passwd": "0" * 64}
    (folder / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(BundleError, match="points outside"):
        open_bundle(folder)


def test_bundles_travel_as_one_zip(tmp_path):
    folders = [bundle(tmp_path / "a"), bundle(tmp_path / "b", start=2)]
    pack(folders, tmp_path / "runs.zip")
    found = unpack(tmp_path / "runs.zip", tmp_path / "out")
    assert [open_bundle(f).start for f in found] == [1, 2]
    assert [bundle_sha256(f) for f in found] == [bundle_sha256(f) for f in folders]


def test_an_archive_cannot_write_outside(tmp_path):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as z:
        z.writestr("../evil.txt", "x")
    with pytest.raises(BundleError, match="points outside"):
        unpack(tmp_path / "evil.zip", tmp_path / "out")
    assert not (tmp_path / "evil.txt").exists()


def test_something_that_is_no_zip_says_so(tmp_path):
    (tmp_path / "x.zip").write_text("hello")
    with pytest.raises(BundleError, match="is not a zip"):
        unpack(tmp_path / "x.zip", tmp_path / "out")
