"""The request for GPU time: everything that an approver asks, as Markdown and as a page to print."""

from __future__ import annotations

import re
from datetime import date

import pytest

from services.gpu_request import Asking, as_html, as_markdown, gpu_request
from services.verdicts import case_state
from tests.services.made import CASE

DAY = date(2026, 11, 30)


@pytest.fixture
def case(shipped):
    return shipped, case_state(shipped, CASE)


@pytest.fixture
def request_(case):
    ws, state = case
    return gpu_request(ws, state.requirements, state.plan, DAY, Asking(price_per_hour=4, approver="A. Lead"))


def test_it_says_what_why_how_long_and_what_for_whom(request_, case):
    assert request_.question.startswith("Does vllm, against ollama, serve Qwen/Qwen3-30B-A3B to 20 to 50 people")
    assert [h.what for h in request_.hours] == ["Downloads", "Starts", "Load"]
    # 3 starts x 2 servers x 2 stages x 5 minutes
    assert request_.hours[1].time == "1 h"
    assert [o.id for o in request_.outcomes] == [h.id for h in case[1].plan.hypotheses]
    h3 = next(o for o in request_.outcomes if o.id == "H3")
    assert h3.doubtful and "8.2 tok/s against 20 tok/s" in h3.expected
    assert h3.if_rejected == "Lower --max-num-seqs and make up for it with units."


def test_the_cost_is_the_hours_at_the_stated_price(request_):
    hours = sum(h.minutes for h in request_.hours) / 60
    assert request_.cost == f"{hours * 4:,.0f} EUR: {hours:.1f} h at 4 EUR an hour"


def test_what_nobody_stated_is_said_to_be_not_stated(case):
    ws, state = case
    bare = gpu_request(ws, state.requirements, state.plan, DAY)
    assert bare.cost.startswith("Not stated")
    assert re.search(r"\| approved by \| *\| *\|", as_markdown(bare))  # left to sign


def test_the_stop_rules_are_those_of_the_plan(case):
    ws, state = case
    own = state.plan.model_copy(update={"budget_min": 400, "stop": state.plan.stop.model_copy(
        update={"max_point_s": 60, "saturation_s": 20})})  # fmt: skip
    stops = " ".join(gpu_request(ws, state.requirements, own, DAY).stops)
    assert "ends after 1 min, when more than 50%" in stops
    assert "queue grows for 20.0 s" in stops
    assert "whole run ends after 6 h 40 min" in stops


@pytest.mark.parametrize("form", [as_markdown, as_html])
def test_both_forms_say_the_same(request_, form):
    said = form(request_)
    for part in ("Request for GPU time", "What each outcome changes", "A. Lead", request_.total, request_.plan):
        assert part in said
    assert form(request_) == said  # the same request gives the same bytes


def test_the_page_needs_nothing_else_and_escapes_what_people_wrote(request_):
    page = as_html(request_._replace(approver="<script>alert(1)</script>", question="a & b"))
    assert "<script" not in page and "&lt;script&gt;" in page and "a &amp; b" in page
    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)
    assert "@page" in page


def test_the_markdown_holds_what_people_wrote_as_text(request_):
    said = as_markdown(request_._replace(approver="# x | y\n- z"))
    assert r"\| y - z" in said
    assert len([line for line in said.splitlines() if line.startswith("# ")]) == 1
