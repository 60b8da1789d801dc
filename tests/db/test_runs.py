"""A bundle comes in whole or not at all, and once."""

import hashlib

import pytest

from db.cases import Case
from db.jobs import Job, JobState
from planner.conditions import Kind
from planner.errors import ConflictError, InputError, NotAllowed, UnknownName
from planner.frozen import canonical_json
from tests.db.made import CONTRACT, NOW, contracts, figure, run


def test_run_contracts_and_evidence_come_in_together(store):
    taken = store.runs.take_in(run(), [figure("e1"), figure("e2", candidate="ollama-b")], contracts())
    assert taken == (run(), True)
    assert store.runs.of_case("nortia") == (run(),)
    assert store.runs.get("b" * 64).findings == ("slow client",)
    assert [e.id for e in store.evidence.of_case("nortia")] == ["e1", "e2"]
    assert [e.id for e in store.evidence.of_case("nortia", candidate="ollama-b")] == ["e2"]
    assert store.evidence.of_case("nortia", kinds=[Kind.MEASURED]) == ()
    assert store.evidence.contracts() == {CONTRACT.full_hash(): CONTRACT}
    assert store.evidence.contracts(["unknown"]) == {}
    stored = store.evidence.stored("nortia", run_sha256="b" * 64)[0]
    body = canonical_json(figure("e1").model_dump(mode="json"))
    assert (stored.evidence, stored.sha256) == (figure("e1"), hashlib.sha256(body.encode()).hexdigest())


def test_the_same_bundle_twice_stays_once_and_says_so(store):
    store.runs.take_in(run(), [figure("e1")], contracts())
    again = store.runs.take_in(run().model_copy(update={"imported_by": "Kim"}), [figure("e1")], contracts())
    assert (again.new, again.run.imported_by) == (False, "Lee")
    assert len(store.evidence.of_case("nortia")) == 1


def test_a_figure_that_stands_in_the_way_undoes_the_whole_bundle(store):
    store.evidence.add("nortia", [figure("e2")], contracts())
    with pytest.raises(ConflictError, match="nothing was stored"):
        store.runs.take_in(run(), [figure("e1"), figure("e2")], contracts())
    assert store.runs.of_case("nortia") == ()
    assert [e.id for e in store.evidence.of_case("nortia")] == ["e2"]


def test_a_bundle_of_another_case_is_not_moved(store):
    store.cases.add(Case(id="two", slug="two-cores", title="Two cores", created_at=NOW, created_by="Lee"))
    store.runs.take_in(run(), [], {})
    with pytest.raises(ConflictError, match="another case"):
        store.runs.take_in(run(case="two"), [], {})


def test_a_run_of_no_case(store):
    with pytest.raises(InputError, match="not stored here"):
        store.runs.take_in(run(case="nobody"), [], {})
    with pytest.raises(UnknownName):
        store.runs.get("0" * 64)


def test_several_stores_in_one_transaction(store):
    with pytest.raises(RuntimeError), store.transaction():
        store.runs.take_in(run(), [figure("e1")], contracts())
        assert len(store.runs.of_case("nortia")) == 1
        raise RuntimeError("the page died")
    assert store.runs.of_case("nortia") == ()
    with store.transaction():
        store.evidence.add("nortia", [figure("e1")])
        with pytest.raises(ConflictError):
            store.runs.take_in(run(), [figure("e1")], {})
        store.evidence.add("nortia", [figure("e2")])
    assert [e.id for e in store.evidence.of_case("nortia")] == ["e1", "e2"]
    assert store.runs.of_case("nortia") == ()


def test_a_job_ends_once(store):
    job = Job(
        id="j1", case="nortia", plan_sha256="a" * 64, out_dir="out", created_at=NOW, created_by="Lee", updated_at=NOW
    )
    store.jobs.add(job)
    assert store.jobs.active() == (job,)
    assert store.jobs.update("j1", JobState.RUNNING, at=NOW, pid=123).pid == 123
    ended = store.jobs.update("j1", JobState.CANCELLED, at=NOW, message="by Lee")
    assert (ended.state, ended.pid, ended.message) == (JobState.CANCELLED, 123, "by Lee")
    with pytest.raises(NotAllowed, match="is cancelled since 2026-09-01T09:00 UTC and cannot become running"):
        store.jobs.update("j1", JobState.RUNNING, at=NOW)
    assert (store.jobs.active(), store.jobs.of_case("nortia")) == ((), (ended,))
    assert store.jobs.get("j1") == ended
    with pytest.raises(UnknownName):
        store.jobs.get("j2")
    with pytest.raises(UnknownName):
        store.jobs.update("j2", JobState.DONE, at=NOW)
