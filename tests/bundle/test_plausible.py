"""A sealed bundle whose tables or manifest hold what nobody can have seen is refused with one sentence."""

from __future__ import annotations

import json
import math
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bundle.folder import seal, unpack
from bundle.manifest import MANIFEST, Manifest
from bundle.records import read_records
from bundle.run_data import read_run
from bundle.summary import summarise
from planner.errors import BundleError
from tests.bundle.made import bundle

ROWS = 10  # of the bundle that `bundle` makes


def changed(folder, name, values, kind=None):
    """Write a column anew and seal the bundle again, as a forger or a broken tool would."""
    file = folder / "records" / "r1.parquet"
    table = pq.read_table(file)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array(values, kind or table.schema.field(name).type)), file)
    seal(folder, Manifest.model_validate_json((folder / MANIFEST).read_text()))
    return folder


@pytest.mark.parametrize(
    ("name", "cell", "sentence"),
    [
        ("scheduled_s", math.nan, "'scheduled_s' holds what is no time of this run"),
        ("dispatched_s", math.inf, "'dispatched_s' holds what is no time of this run"),
        ("first_token_s", 1e300, "'first_token_s' holds what is no time of this run"),
        ("first_token_s", -1e6, "'first_token_s' lies before 'scheduled_s'"),
        ("end_s", -5.0, "'end_s' lies before 'scheduled_s'"),
        ("chunk_s", [math.nan], "'chunk_s' holds what is no time of this run"),
        ("chunk_s", [None], "'chunk_s' has empty places"),
        ("chunk_s", [1.0], "'chunk_s' and 'chunk_tokens' differ in length"),
        ("chunk_tokens", [-1] * 11, "'chunk_tokens' holds less than 0"),
        ("chunk_bound", [True] * 5000, "'chunk_bound' is longer than 'chunk_s'"),
        ("output_tokens", -1, "'output_tokens' holds less than 0"),
        ("outcome", "banana", "'outcome' holds something other than ok, failed, undetermined"),
    ],
)
def test_a_table_of_what_cannot_be_is_refused(tmp_path, name, cell, sentence):
    with pytest.raises(BundleError, match=sentence):
        read_run(changed(bundle(tmp_path / "b"), name, [cell] * ROWS))


def test_a_table_that_unfolds_into_gigabytes_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "r.parquet"
    pq.write_table(pa.table({"request": pa.array([0], pa.int32()).take(pa.array([0] * 2_000_001))}), file)
    assert file.stat().st_size < 10_000
    with pytest.raises(BundleError, match="holds 2,000,001 rows"):
        read_records(file)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("created_at", "0001-01-01T00:00:00+14:00", "created_at '0001-01-01T00:00:00.14:00' is no time"),
        ("start", 2**63, "start: input should be less than or equal to 1000000"),
        ("candidate", "a\nb", "cannot be the name of a candidate"),
        ("candidate", "v" * 201, "cannot be the name of a candidate"),
        ("files", {"a\0b": "0" * 64}, "cannot be the name of a file"),
        ("files", {"a" * 300: "0" * 64}, "cannot be the name of a file"),
        ("findings", ["\ud800"], "is not readable"),
    ],
)
def test_a_manifest_of_what_cannot_be_is_refused(tmp_path, field, value, sentence):
    folder = bundle(tmp_path / "b")
    raw = json.loads((folder / MANIFEST).read_text())
    value = raw[field] | value if isinstance(value, dict) else value
    (folder / MANIFEST).write_text(json.dumps(raw | {field: value}))
    with pytest.raises(BundleError, match=sentence):
        read_run(folder)


def test_a_number_of_thousands_of_digits_is_one_sentence(tmp_path):
    (tmp_path / MANIFEST).write_text(f'{{"schema_version": {"1" * 6000}}}')
    with pytest.raises(BundleError, match=r"manifest\.json is not readable"):
        read_run(tmp_path)


@pytest.mark.parametrize("what", ["points", "repeats"])
def test_what_stands_twice_is_named(tmp_path, what):
    folder = bundle(tmp_path / "b")
    raw = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(raw | {what: raw[what] * 2}))
    with pytest.raises(BundleError, match=rf"{what[:-1]} \S+.* stands twice"):
        read_run(folder)


def test_a_figure_that_runs_over_is_refused_by_its_name(tmp_path):
    folder = bundle(tmp_path / "b", counters=({"preemptions": -1.7e308}, {"preemptions": 1.7e308}))
    with pytest.raises(BundleError, match="preemptions value cannot be: value: input should be a finite number"):
        summarise(folder)


def test_an_archive_that_would_fill_the_disk_is_refused_before_it_is_unpacked(tmp_path):
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z, z.open("b/server.log", "w") as log:
        for _ in range(17):
            log.write(bytes(16 * 2**20))  # 272 MiB of zeros take a quarter of a megabyte
    with pytest.raises(BundleError, match=r"would unpack from 0\.3 to 285 MB, which no bundle does"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_member_whose_name_is_no_text_is_one_sentence(tmp_path):
    archive = tmp_path / "b.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("é/manifest.json", "{}")
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xff\xff"))
    with pytest.raises(BundleError, match="a file whose name cannot be read"):
        unpack(archive, tmp_path / "out")


def test_a_member_without_a_name_is_one_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as z:
        z.writestr(zipfile.ZipInfo("b/manifest.json"), "{}")
        z.writestr(zipfile.ZipInfo(""), "x")
    with pytest.raises(BundleError, match=r"b\.zip: holds a file without a name"):
        unpack(tmp_path / "b.zip", tmp_path / "out")
