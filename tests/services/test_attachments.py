"""The raw file behind figures: exact bytes, by whom and when; with its figures or not at all."""

from __future__ import annotations

import hashlib

import pytest

from planner.errors import InputError, UnknownName
from services.arrivals import bring_in_table
from services.attachments import MOST_BYTES, attached_bytes, attachments
from services.filled import Filled
from services.verdicts import case_state
from services.workspace import now
from tests.services.made import CASE, FIRST_DAY

ROW = Filled("vllm", "parallel-16", 16, None, 3596, 500, "user_tok_s", "p5", 12.0, 64)
RAW = b"\xff\x00raw\r\n"


def bring(ws, file, *rows):
    return bring_in_table(ws, CASE, rows or [ROW], by="Kim", source="a mail", measured_at=FIRST_DAY, raw=file)


def test_a_raw_file_stands_beside_its_figures_byte_for_byte(shipped):
    (piece,) = bring(shipped, ("C:\\logs\\bench.log", RAW)).evidence
    (kept,) = attachments(shipped, CASE)
    assert (kept.name, kept.size, kept.by) == ("bench.log", 7, "Kim")
    assert kept.sha256 == hashlib.sha256(RAW).hexdigest()
    assert abs((now() - kept.at).total_seconds()) < 60
    assert attached_bytes(shipped, CASE, kept.entry) == RAW
    assert piece.run == f"entered/{kept.entry}"
    assert piece.note == f"entered by Kim from a mail, bench.log attached (sha256 {kept.sha256[:12]})"
    assert piece.kind == "entered"


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "a.log: is empty"), (b"x" * (MOST_BYTES + 1), "a.log: is larger than 20 MiB")]
)
def test_an_empty_or_huge_file_is_refused_with_its_figures(shipped, content, message):
    before = case_state(shipped, CASE).evidence
    with pytest.raises(InputError, match=message):
        bring(shipped, ("a.log", content))
    assert (len(case_state(shipped, CASE).evidence), attachments(shipped, CASE)) == (len(before), ())


def test_figures_that_are_refused_leave_no_file(shipped, monkeypatch):
    def fails(*_):
        raise InputError("the judge fell ill.")

    monkeypatch.setattr("services.arrivals.rejudge", fails)
    with pytest.raises(InputError, match="fell ill"):
        bring(shipped, ("a.log", RAW))
    assert attachments(shipped, CASE) == ()
    assert not [p for p in (shipped.home / "attachments").rglob("*") if p.is_file()]


def test_a_file_that_was_altered_since_is_not_handed_out(shipped):
    bring(shipped, ("a.log", RAW))
    (kept,) = attachments(shipped, CASE)
    (raw,) = (shipped.home / "attachments").rglob("raw")
    raw.write_bytes(b"other")
    with pytest.raises(InputError, match="is not the file that was attached"):
        attached_bytes(shipped, CASE, kept.entry)
    with pytest.raises(UnknownName, match="unknown attachment"):
        attached_bytes(shipped, CASE, "none")


def test_a_damaged_record_is_named(shipped):
    bring(shipped, ("a.log", RAW))
    (record,) = (shipped.home / "attachments").rglob("record.json")
    record.write_text("{}")
    with pytest.raises(InputError, match=r"record\.json: is not as it was written"):
        attachments(shipped, CASE)


def test_where_there_is_no_room_for_a_file_its_figures_do_not_stay_either(shipped):
    (shipped.home / "attachments").write_text("in the way")  # as a disk that takes nothing
    before = len(shipped.store.evidence.of_case(shipped.store.cases.get(CASE).id))
    with pytest.raises(InputError, match=r"bench\.log: cannot be kept: Not a directory\. Make room in"):
        bring(shipped, ("bench.log", b"raw"))
    assert len(shipped.store.evidence.of_case(shipped.store.cases.get(CASE).id)) == before
