"""Judged again: which run, fact or day changed a condition, that an event is written once, and once a day is enough."""

from __future__ import annotations

import threading
from datetime import timedelta

from decisions.flip_condition import FlipCondition
from decisions.flips import from_template
from planner.errors import ConflictError
from services import rejudging
from services.arrivals import bring_in, bring_in_usage
from services.cases import begin_case
from services.decisions import answer_fire, begin_draft
from services.deployments import deploy
from services.flip_edits import add_condition
from services.rejudging import Changed, judge_again, judge_if_due, rejudge
from services.usage import observe
from services.verdicts import case_state
from services.workspace import now
from tests.services.made import CASE, accepted, asking, days, decide, measured, with_plan


def history(ws, adr):
    """State and cause of every change of an ADR's conditions, by condition."""
    found: dict[str, list[tuple[str, str]]] = {}
    for j in ws.store.verdicts.history(adr.case, adr=adr.id):
        found.setdefault(j.condition, []).append((j.state, j.cause.kind))
    return found


def later(monkeypatch, by: timedelta):
    at = now() + by
    for module in ("services.rejudging", "services.verdicts"):
        monkeypatch.setattr(f"{module}.now", lambda: at)


def without(ws, engine: str):
    """The same workspace as its catalogue will be once an engine is no longer maintained."""
    old = ws.catalog.engines[engine]
    ended = old.model_copy(update={"maintenance": old.maintenance.model_copy(update={"status": "ended"})})
    catalog = ws.catalog.model_copy(update={"engines": {**ws.catalog.engines, engine: ended}})
    return ws._replace(catalog=catalog)


def test_usage_that_fires_is_named_as_the_cause(shipped):
    adr = accepted(shipped)
    bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
    assert history(shipped, adr)["few-users"] == [("unmeasured", "decision"), ("fired", "usage")]
    (fired,) = [j for j in shipped.store.verdicts.history(adr.case, adr=adr.id) if j.state == "fired"]
    assert fired.cause.says == "observed usage came in from monitoring by Kim"


def test_the_run_that_changed_a_hypothesis_is_named_by_its_hash(shipped, tmp_path):
    case = with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    (run,) = shipped.store.runs.of_case(case)
    last = shipped.store.verdicts.latest(case)[None, "H1"]
    assert (last.state, last.cause.kind, last.cause.runs) == ("holds", "run", (run.sha256,))


def test_the_event_names_the_bundle_that_fired_the_condition(shipped, tmp_path):
    case = with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    adr = accepted(shipped)
    flip = FlipCondition.from_line("too-slow", "vllm: ttft p95 <= 1 ms at parallel-2", fires_when="fails", owner="Kim",
                                   recheck_on=now().date() + timedelta(days=90))  # fmt: skip
    add_condition(shipped, adr.id, flip, "Kim", "a promise of one millisecond")
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    (run,) = shipped.store.runs.of_case(case)
    (fire,) = shipped.store.adrs.get(adr.id).fires
    assert (fire.condition, fire.runs) == ("too-slow", (run.sha256,))


def maintained(ws):
    """An accepted decision that re-opens when its engine is given up."""
    adr = accepted(ws)
    flip = from_template("not-maintained", candidate="vllm", owner="Kim", recheck_on=now().date() + timedelta(days=90))
    return add_condition(ws, adr.id, flip, "Kim", "engines come and go")


def test_a_changed_catalogue_fact_fires_and_is_the_cause(shipped):
    adr = maintained(shipped)
    assert rejudge(shipped, CASE) == ()
    fired = rejudge(without(shipped, "vllm"), CASE)
    assert [v.condition for v in fired] == ["not-maintained"]
    assert history(shipped, adr)["not-maintained"] == [("armed", "decision"), ("fired", "catalogue")]
    (waiting,) = shipped.store.adrs.get(adr.id).fires
    assert waiting.condition == "not-maintained"
    assert shipped.store.adrs.get(adr.id).status == "accepted"  # a person confirms


def test_the_same_facts_on_another_day_are_no_change(shipped, monkeypatch):
    maintained(shipped)
    later(monkeypatch, timedelta(days=3))
    assert judge_again(shipped, CASE).rows == ()


def test_an_event_is_written_once_however_often_it_is_judged(shipped):
    adr = maintained(shipped)
    gone = without(shipped, "vllm")
    for _ in range(3):
        rejudge(gone, CASE)
    answer_fire(shipped, adr.id, "not-maintained", "Sato", "we maintain it ourselves", reopen=False)
    rejudge(gone, CASE)
    kinds = [e.kind for e in shipped.store.adrs.edits(adr.id)]
    assert kinds.count("condition_fired") == 1


def test_days_that_pass_are_a_cause(shipped, monkeypatch):
    adr = accepted(shipped)
    later(monkeypatch, timedelta(days=91))  # the draft asks for a re-check after 90 days
    changed = judge_again(shipped, CASE).rows
    overdue = {j.condition: (j.state, j.overdue, j.cause) for j in changed if j.adr == adr.id}
    assert overdue["few-users"] == ("unmeasured", True, rejudging.RECHECK_PASSED)
    assert not judge_again(shipped, CASE).rows


def decided_on_a_version(shipped, tmp_path):
    """An accepted decision with a condition that a run of vLLM 0.11.0 keeps armed."""
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2", version="0.11.0"))
    bring_in(shipped, CASE, measured(tmp_path / "a", asked="0.11.0", reported="0.11.0"), "Lee")
    draft = begin_draft(shipped, CASE, "Kim")
    slow = FlipCondition.from_line("slow", "vllm: ttft p95 <= 2 s at parallel-2", fires_when="fails", owner="Kim",
                                   recheck_on=now().date() + timedelta(days=30))  # fmt: skip
    text = draft.adr.model_copy(update={"conditions": (*draft.adr.conditions, slow)})
    shipped.store.adrs.save_draft(text, version=draft.version, at=now(), by="Kim")
    return decide(shipped, draft.adr.id)


def test_production_that_moved_on_is_a_cause(shipped, tmp_path):
    adr = decided_on_a_version(shipped, tmp_path)
    deploy(shipped, CASE, candidate="vllm", since=now().date(), engine_version="1.0.0", by="Kim")
    assert history(shipped, adr)["slow"] == [("armed", "decision"), ("expired", "production")]


def test_once_a_day_is_enough_and_a_new_catalogue_is_looked_at(shipped, monkeypatch):
    judged = []

    def counted(ws, case, *_, **__):
        judged.append(case)
        return Changed((), ())

    monkeypatch.setattr(rejudging, "judge_again", counted)
    case = shipped.store.cases.get(CASE).id
    for _ in range(3):
        judge_if_due(shipped, case)
    assert judged == [case]
    judge_if_due(without(shipped, "vllm"), case)
    assert len(judged) == 2
    later(monkeypatch, timedelta(days=1))
    judge_if_due(shipped, case)
    assert len(judged) == 3


def test_while_another_process_writes_a_visit_goes_on_and_the_next_one_judges(shipped, monkeypatch):
    case, tried = shipped.store.cases.get(CASE).id, []

    def busy(*_, **__):
        tried.append(True)
        raise ConflictError("another process has been writing for 10 s.")

    monkeypatch.setattr(rejudging, "judge_again", busy)
    judge_if_due(shipped, case)
    judge_if_due(shipped, case)
    assert len(tried) == 2


def test_a_judgement_that_read_too_early_reads_again(shipped, monkeypatch):
    """Figures that another writer stored between the reading and the lock count."""
    adr = accepted(shipped)
    read, arrived = rejudging.case_state, []

    def and_then_usage_arrives(ws, name, told=None):
        state = read(ws, name)
        if not arrived:
            arrived.append(True)
            observe(ws, adr.case, days(28, 5), by="Kim", source="monitoring")
        return state

    monkeypatch.setattr(rejudging, "case_state", and_then_usage_arrives)
    assert [v.condition for v in rejudge(shipped, CASE)] == ["few-users"]


def test_what_was_overdue_before_is_not_the_cause_of_what_changes_later(shipped, tmp_path, monkeypatch):
    adr = decided_on_a_version(shipped, tmp_path)
    later(monkeypatch, timedelta(days=31))  # its re-check was promised within 30
    rejudge(shipped, CASE)
    deploy(shipped, CASE, candidate="vllm", since=now().date(), engine_version="1.0.0", by="Kim")
    assert history(shipped, adr)["slow"] == [("armed", "decision"), ("armed", "date"), ("expired", "production")]


def test_production_that_moves_on_while_it_is_read_counts(shipped, tmp_path, monkeypatch):
    adr = decided_on_a_version(shipped, tmp_path)
    read = rejudging.case_state

    def and_then_it_goes_into_production(ws, name, told=None):
        state = read(ws, name)
        monkeypatch.undo()
        deploy(ws, CASE, candidate="vllm", since=now().date(), engine_version="1.0.0", by="Kim")
        return state

    monkeypatch.setattr(rejudging, "case_state", and_then_it_goes_into_production)
    rejudge(shipped, CASE)
    assert history(shipped, adr)["slow"] == [("armed", "decision"), ("expired", "production")]


def test_nobody_waits_for_another_case_that_is_being_counted(shipped, monkeypatch):
    other = begin_case(shipped, "Other", case_state(shipped, CASE).requirements, "Lee").id
    case, judged = shipped.store.cases.get(CASE).id, []

    def in_the_middle(ws, name, **_):
        judged.append(name)
        if name == case:
            visit = threading.Thread(target=judge_if_due, args=(ws, other), daemon=True)
            visit.start()
            visit.join(timeout=60)

    monkeypatch.setattr(rejudging, "judge_again", in_the_middle)
    judge_if_due(shipped, case)
    assert judged == [case, other]
