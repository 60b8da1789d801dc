"""Replay: the bytes of then under today's code give what was decided on, or say where they do not."""

from __future__ import annotations

import json

import pytest

from decisions.flips import FlipState, from_template
from planner.errors import InputError, NotAllowed
from services import replay as module
from services.arrivals import bring_in, bring_in_usage
from services.decisions import begin_draft, open_adr, save
from services.exporting import export_all
from services.importing import import_path
from services.log_file import export_log, import_log
from services.replay import replay
from tests.bundle.made import POINT
from tests.services.conftest import opened
from tests.services.made import CASE, accepted, asking, days, decide, measured, small_plan, with_plan


def by_id(condition):
    return condition.id


def test_a_decision_comes_out_as_it_was(shipped):
    done = replay(shipped, accepted(shipped).id)
    assert done.same
    assert [(p.name, p.lacking) for p in done.parts] == [("score", ""), ("verdicts", "")]
    assert done.today.differences == ()


def test_what_arrives_later_changes_nothing_of_then(shipped, tmp_path):
    adr = accepted(shipped)
    with_plan(shipped, small_plan(POINT))
    bring_in(shipped, CASE, measured(tmp_path / "run"), "Lee")
    assert replay(shipped, adr.id).same


def test_a_day_that_was_brought_in_twice_counts_once_then_as_now(shipped):
    bring_in_usage(shipped, CASE, days(28, 9), by="Kim", source="a first log")
    bring_in_usage(shipped, CASE, days(28, 7), by="Kim", source="the whole log")
    adr = accepted(shipped)
    given = json.loads(shipped.store.snapshots.get(adr.snapshot("verdicts")))
    assert given["flip conditions"]["few-users"]["value"] == 7
    assert replay(shipped, adr.id).same


def test_other_facts_of_today_are_told_apart_from_the_replay(shipped):
    adr = accepted(shipped)
    without = {k: e for k, e in shipped.catalog.engines.items() if k != "sglang"}
    today = shipped._replace(catalog=shipped.catalog.model_copy(update={"engines": without}))
    done = replay(today, adr.id)
    assert done.same
    assert any("SGLang" in (d.before or "") and d.after is None for d in done.today.differences)


def test_code_that_judges_otherwise_is_seen(shipped, monkeypatch):
    adr = accepted(shipped)
    honest = module.score

    def other(*args, **kwargs):
        found = honest(*args, **kwargs)
        return found.model_copy(update={"favourite": "sglang"})

    monkeypatch.setattr(module, "score", other)
    done = replay(shipped, adr.id)
    assert not done.same
    (difference,) = done.parts[0].differences
    assert (difference.before, difference.after) == ("vllm", "sglang")


def test_verdicts_are_kept_with_the_decision(shipped):
    adr = accepted(shipped)
    sha256 = next(s.sha256 for s in adr.snapshots if s.kind == "verdicts")
    kept = json.loads(shipped.store.snapshots.get(sha256))
    # The imported first token of 8.13 s misses the 2 s that H4 asks; nothing else is measured.
    assert kept["hypotheses"]["H4"]["state"] == "fails"
    assert kept["hypotheses"]["H1"]["state"] == "unmeasured"
    assert set(kept["flip conditions"]) == {c.id for c in adr.conditions}


def test_a_condition_on_a_fact_of_the_catalogue_is_replayed_with_the_fact_of_then(shipped):
    opened = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    flip = from_template("not-maintained", candidate="vllm", owner="Lee", recheck_on=opened.adr.review_on)
    save(shipped, opened, opened.adr.text.model_copy(update={"conditions": (*opened.adr.conditions, flip)}), "Lee")
    adr = accepted(shipped)
    sha256 = next(s.sha256 for s in adr.snapshots if s.kind == "verdicts")
    assert json.loads(shipped.store.snapshots.get(sha256))["flip conditions"]["not-maintained"]["state"] == "armed"
    assert replay(shipped, adr.id).same


def test_code_that_gives_other_verdicts_is_seen(shipped, monkeypatch):
    adr = accepted(shipped)
    honest = module.judge_flips

    def other(*args):
        return tuple(v.model_copy(update={"state": FlipState.ARMED}) for v in honest(*args))

    monkeypatch.setattr(module, "judge_flips", other)
    found = replay(shipped, adr.id).parts[1].differences
    assert {(d.before, d.after) for d in found} == {("unmeasured", "armed")}
    assert [d.path for d in found] == [("flip conditions", c.id, "state") for c in sorted(adr.conditions, key=by_id)]


def test_a_log_that_has_no_figure_replays_a_decision_that_came_with_its_bytes(shipped, tmp_path):
    """The server that was measured is another version than the one asked for: without its contract it would count."""
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2", version="0.11.0"))
    bring_in(shipped, CASE, measured(tmp_path / "run", asked="0.11.0", reported="1.0.0"), "Lee")
    adr = decide(shipped, begin_draft(shipped, CASE, "Kim").adr.id)
    (tmp_path / "other").mkdir()
    there = opened(tmp_path / "other")
    import_log(there, export_log(shipped), "Lee")
    verdicts = json.loads(there.store.snapshots.get(adr.snapshot("verdicts") or ""))
    assert verdicts["hypotheses"]["H1"]["state"] == "expired"
    assert replay(there, adr.id).parts == replay(shipped, adr.id).parts
    assert replay(there, adr.id).same
    there.store.close()


def test_a_decision_that_came_as_markdown_brought_no_bytes_to_replay(shipped, tmp_path):
    adr = accepted(shipped)
    export_all(shipped, tmp_path / "out")
    (tmp_path / "other").mkdir()
    there = opened(tmp_path / "other")
    there.store.cases.add(shipped.store.cases.get(CASE))
    import_path(there, CASE, tmp_path / "out", "Lee")
    with pytest.raises(InputError, match=r"are not in this log\. They come with a log as JSON, not with Markdown\."):
        replay(there, adr.id)
    there.store.close()


def test_what_was_never_accepted_has_nothing_to_replay(shipped):
    with pytest.raises(NotAllowed, match="was never accepted"):
        replay(shipped, begin_draft(shipped, CASE, "Kim").adr.id)
