"""A log is kept as summary and scrubbed trace, never as the file; its figures become requirements on a click."""

from __future__ import annotations

import pytest

from planner.errors import ConflictError, InputError, UnknownName
from planner.traffic import summarise
from planner.traffic_proposal import propose
from services.traffic import keep, kept, latency_of, take, trace_of
from services.traffic_log import Log, read_log
from services.verdicts import case_state
from services.workspace import Workspace

HEAD = "timestamp,input_tokens,output_tokens,session_id,prompt\n"


def made(n: int = 40) -> Log:
    """A request each second for n seconds, of 1,000 tokens in and 50 out, by one person."""
    rows = (f"2026-11-02T10:00:{i:02d}Z,1000,50,alice@example.org,a secret" for i in range(n))
    return read_log("/somewhere/gateway.csv", (HEAD + "\n".join(rows)).encode())


def kept_one(ws: Workspace):
    r = case_state(ws, "nortia").requirements
    latency = latency_of(r)
    log = made()
    return r, keep(ws, "nortia", log, summarise(log.requests, latency), latency, "Aiko")


def test_what_is_kept_names_nobody_and_holds_no_text(shipped: Workspace) -> None:
    _, record = kept_one(shipped)
    (found,) = kept(shipped, "nortia")
    assert found == record
    assert (found.name, found.by, found.layout) == ("gateway.csv", "Aiko", "request log")
    trace = trace_of(shipped, "nortia", record.id).decode()
    assert trace.splitlines()[:3] == ["t_s,input_tokens,output_tokens,session", "0,1000,50,0", "1,1000,50,0"]
    files = [p for p in (shipped.home / "traffic").rglob("*") if p.is_file()]
    assert sorted(p.name for p in files) == ["record.json", "trace.csv.gz"]
    for p in files:
        assert b"alice" not in p.read_bytes() and b"secret" not in p.read_bytes()


def test_the_same_log_is_kept_once(shipped: Workspace) -> None:
    _, first = kept_one(shipped)
    assert kept_one(shipped)[1] == first
    assert len(kept(shipped, "nortia")) == 1


def test_a_name_is_needed_and_nothing_is_kept_without(shipped: Workspace) -> None:
    log = made()
    with pytest.raises(InputError, match="nobody is named"):
        keep(shipped, "nortia", log, summarise(log.requests), None, " ")
    assert not (shipped.home / "traffic").exists()


def test_an_altered_trace_is_noticed(shipped: Workspace) -> None:
    _, record = kept_one(shipped)
    next((shipped.home / "traffic").rglob("trace.csv.gz")).write_bytes(b"something else")
    with pytest.raises(InputError, match="not the trace that was kept"):
        trace_of(shipped, "nortia", record.id)
    with pytest.raises(UnknownName):
        trace_of(shipped, "nortia", "nothing")


def test_a_damaged_record_is_named(shipped: Workspace) -> None:
    kept_one(shipped)
    next((shipped.home / "traffic").rglob("record.json")).write_text("{}")
    with pytest.raises(InputError, match="not as it was written"):
        kept(shipped, "nortia")


def test_chosen_figures_become_a_new_version_that_says_where_they_come_from(shipped: Workspace) -> None:
    r, record = kept_one(shipped)
    before = case_state(shipped, "nortia").version.n
    said = {p.field: p.proposed for p in propose(r, record.summary)}
    # A request a second, each 2 s and 50 tokens at 25 tok/s: four in flight; the busiest minute has all 40.
    assert (said["peak_users_max"], said["requests_per_user_per_min"], said["output_tokens"]) == (4, 10.0, 50)
    take(shipped, "nortia", r, record, ["input_tokens", "peak_users_min", "peak_users_max"], "Aiko", before)
    after = case_state(shipped, "nortia").requirements
    assert (after.input_tokens, after.peak_users_min, after.peak_users_max) == (1000, 4, 4)
    assert after.output_tokens == r.output_tokens
    assert f"from gateway.csv (sha256 {record.source_sha256[:12]})" in after.notes
    with pytest.raises(ConflictError):
        take(shipped, "nortia", r, record, ["output_tokens"], "Ben", before)


def test_nothing_chosen_or_values_that_do_not_fit_store_nothing(shipped: Workspace) -> None:
    r, record = kept_one(shipped)
    n = case_state(shipped, "nortia").version.n
    with pytest.raises(InputError, match="no figure is chosen"):
        take(shipped, "nortia", r, record, [], "Aiko", n)
    with pytest.raises(InputError, match="below the lower end"):
        take(shipped, "nortia", r, record, ["peak_users_max"], "Aiko", n)
    assert case_state(shipped, "nortia").version.n == n


def test_where_there_is_no_room_for_a_log_nothing_of_it_is_left(shipped: Workspace) -> None:
    (shipped.home / "traffic").write_text("in the way")  # as a disk that takes nothing
    with pytest.raises(InputError, match=r"cannot be kept: Not a directory\. Make room in"):
        kept_one(shipped)
    assert (shipped.home / "traffic").read_text() == "in the way"
