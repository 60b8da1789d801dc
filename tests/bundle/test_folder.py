"""A bundle is believed whole or not at all."""

from __future__ import annotations

import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bundle.folder import bundle_sha256, file_sha256, open_bundle, pack, seal, unpack
from bundle.manifest import BUNDLE_SCHEMA, MANIFEST, Manifest
from bundle.records import read_records
from bundle.run_data import read_run
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
    (folder / MANIFEST).write_text(json.dumps(raw | {"schema_version": BUNDLE_SCHEMA + 1}))
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


def changed(folder, change):
    """The bundle with another manifest, as somebody would write it who forges one."""
    raw = json.loads((folder / MANIFEST).read_text())
    change(raw)
    (folder / MANIFEST).write_text(json.dumps(raw))
    return folder


def elsewhere(folder, name):
    """A table outside the bundle, listed in its manifest."""
    outside = folder.parent / "outside.parquet"
    outside.write_bytes((folder / "telemetry.parquet").read_bytes())

    def change(raw):
        raw["repeats"][0][name] = str(outside)
        raw["files"][str(outside)] = file_sha256(outside)

    return change


@pytest.mark.parametrize("name", ["records", "telemetry", "quality"])
def test_tables_of_a_repeat_lie_in_the_bundle_and_are_hashed(tmp_path, name):
    folder = bundle(tmp_path / "b")
    with pytest.raises(BundleError, match="points outside the bundle"):
        open_bundle(changed(folder, elsewhere(folder, name)))
    folder = bundle(tmp_path / "c")
    with pytest.raises(BundleError, match=r"extra\.parquet is not listed with a hash"):
        open_bundle(changed(folder, lambda raw: raw["repeats"][0].update({name: "extra.parquet"})))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw["repeats"][0].update(load_point="nope"), "a repeat names load point 'nope'"),
        (lambda raw: raw.update(finished_at="yesterday"), "finished_at 'yesterday' is no time with its time zone"),
        (lambda raw: raw.update(created_at="2026-11-29T10:00:00"), "created_at '2026-11-29T10:00:00' is no time"),
    ],
    ids=["load point", "time", "time zone"],
)
def test_a_manifest_that_contradicts_itself_is_refused(tmp_path, change, message):
    with pytest.raises(BundleError, match=message):
        read_run(changed(bundle(tmp_path / "b"), change))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("scheduled_s", ["soon"] * 10, "column 'scheduled_s' holds string, not double"),
        ("request", [0.5] * 10, "column 'request' holds double, not int32"),
        ("chunk_s", [1.0] * 10, "column 'chunk_s' holds double, not list"),
        ("outcome", [None] * 10, "column 'outcome' has empty cells"),
    ],
)
def test_columns_of_another_type_are_refused(tmp_path, name, values, message):
    folder = bundle(tmp_path / "b")
    file = folder / "records" / "r1.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(table.column_names.index(name), name, pa.array(values)), file)
    seal(folder, open_manifest(folder))
    with pytest.raises(BundleError, match=message):
        read_run(folder)


def open_manifest(folder):
    return Manifest.model_validate_json((folder / MANIFEST).read_text())


def test_whole_numbers_in_a_column_of_fractions_are_fine(tmp_path):
    file = bundle(tmp_path / "b") / "records" / "r1.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(table.column_names.index("scheduled_s"), "scheduled_s", pa.array([0] * 10)), file)
    assert [r.scheduled_s for r in read_records(file)] == [0.0] * 10


def flagged(raw, local, central):
    """Set bytes in every local and central header of a zip; (offset, change) each."""
    for mark, (offset, change) in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        at = -1
        while (at := raw.find(mark, at + 1)) >= 0:
            raw[at + offset] = change(raw[at + offset])
    return bytes(raw)


def encrypted(raw):
    return flagged(raw, (6, lambda b: b | 1), (8, lambda b: b | 1))


def unknown_method(raw):
    return flagged(raw, (8, lambda _: 99), (10, lambda _: 99))


def corrupt(raw):
    for at in (60, 70, 90):
        raw[at] ^= 0xFF
    return bytes(raw)


@pytest.mark.parametrize(
    ("harm", "message"),
    [(encrypted, "is encrypted"), (unknown_method, "is packed in a way"), (corrupt, "is damaged")],
)
def test_an_archive_that_cannot_be_unpacked_says_why(tmp_path, harm, message):
    pack([bundle(tmp_path / "a")], tmp_path / "a.zip")
    (tmp_path / "bad.zip").write_bytes(harm(bytearray((tmp_path / "a.zip").read_bytes())))
    with pytest.raises(BundleError, match=rf"bad\.zip: {message}"):
        unpack(tmp_path / "bad.zip", tmp_path / "out")


def test_a_file_and_a_folder_of_one_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as z:
        z.writestr("a", "x")
        z.writestr("a/manifest.json", "{}")
    with pytest.raises(BundleError, match=r"f\.zip: cannot be unpacked"):
        unpack(tmp_path / "f.zip", tmp_path / "out")
