"""A metric that an accepted decision speaks of is gone: the log, the export and the page go on and say so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from decisions.flips import from_template
from services.arrivals import bring_in_usage
from services.exporting import export_markdown
from services.flip_edits import add_condition
from services.rejudging import rejudge
from services.verdicts import case_state, judge_adr
from services.workspace import now, open_workspace
from tests.forgotten import forgotten
from tests.services.made import CASE, accepted, days

SAID = "the metric 'startup_s' no longer exists. It was stored as 'vllm: startup_s <= 300'."


@pytest.fixture
def older(shipped):
    """The workspace as a Flipline finds it that has no start-up time any more; the id of its decision."""
    adr = accepted(shipped)
    flip = from_template("slow-start", candidate="vllm", owner="Kim", recheck_on=now().date() + timedelta(days=30))
    add_condition(shipped, adr.id, flip, "Kim", "we scale now")
    head = shipped.store.adrs.head(adr.id)
    with forgotten("startup_s"):
        ws = open_workspace(shipped.home, url=f"sqlite:///{shipped.home.parent}/flipline.db")
        yield ws, adr.id, head
        ws.store.close()


def test_the_log_loads_and_everything_else_is_judged(older):
    ws, id, head = older
    adr = ws.store.adrs.get(id)
    judged = {v.condition: v for v in judge_adr(case_state(ws, CASE), adr)}
    assert judged["slow-start"].sentence == f"Unmeasurable: {SAID}"
    assert [v.condition for v in bring_in_usage(ws, CASE, days(28, 5), by="Kim", source="monitoring").fired] == [
        "few-users"
    ]
    last = ws.store.verdicts.latest(adr.case)[id, "slow-start"]
    assert last.state == "unmeasurable"
    assert ws.store.adrs.head(id) != head  # it still grows
    assert ws.store.adrs.verify() == ()


def test_the_history_says_that_it_can_no_longer_be_measured(older):
    ws, id, _ = older
    rejudge(ws, CASE)
    last = ws.store.verdicts.latest(ws.store.adrs.get(id).case)[id, "slow-start"]
    assert last.cause.says == "what it asks for can no longer be measured"


def test_it_is_exported_with_its_stored_line(older):
    ws, id, _ = older
    text = export_markdown(ws, id)[1]
    assert "startup_s <= 300" in text
