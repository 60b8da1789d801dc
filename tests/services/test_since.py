"""A successor says what changed since the decision that it would replace was accepted."""

from __future__ import annotations

from services.arrivals import bring_in, bring_in_usage
from services.cases import save_requirements
from services.deployments import deploy
from services.exporting import export_all
from services.importing import import_path
from services.shipped import CASES, install
from services.since import changed_since, section
from services.verdicts import case_state
from services.workspace import now
from tests.bundle.made import bundle
from tests.services.conftest import opened
from tests.services.made import CASE, accepted, asking, days, measured, superseding, with_plan


def test_nothing_changed_is_said_too(shipped):
    adr = accepted(shipped)
    state = case_state(shipped, CASE)
    assert changed_since(shipped, state, adr) == ()
    assert section(shipped, state, adr).startswith("Nothing that it rests on changed since ADR-0001 was accepted on 2")


def test_all_that_it_rested_on_is_held_against_today(shipped, tmp_path):
    adr = accepted(shipped)
    state = case_state(shipped, CASE)
    more = state.requirements.model_copy(update={"peak_users_max": 80})
    save_requirements(shipped, state.case.id, more, "Lee", after=state.version.n)
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    bring_in(shipped, CASE, measured(tmp_path / "a"), "Lee")
    bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
    deploy(shipped, CASE, candidate="vllm", since=now().date(), engine_version="0.13.0", by="Kim")
    found = changed_since(shipped, case_state(shipped, CASE), adr)
    run = shipped.store.runs.of_case(adr.case)[0].sha256[:12]
    assert "Requirements (version 2 by Lee): peak users, to: 50 → 80." in found
    assert f"Runs that came in: vllm stage A start 1 ({run}, measured)." in found
    assert next(x for x in found if x.startswith("Figures that came in")).endswith("observed.")
    assert "few-users: unmeasured → fired" in next(x for x in found if x.startswith("Verdicts: "))
    assert any(x.startswith("Plan: Lee stored another one on ") for x in found)
    assert f"Production: vllm 0.13.0 since {now():%Y-%m-%d}." in found


def test_eight_of_a_kind_are_told_and_the_rest_is_counted(shipped):
    adr = accepted(shipped)
    state = case_state(shipped, CASE)
    was = state.requirements
    other = {
        "peak_users_min": 30, "peak_users_max": 80, "ttft_s": 3.0, "input_tokens": was.input_tokens - 1,
        "output_tokens": was.output_tokens - 1, "context_tokens": was.context_tokens + 1, "user_tok_s_promise": 21.0,
        "shared_prefix_share": 0.9, "lora": True,
    }  # fmt: skip
    save_requirements(shipped, state.case.id, was.model_copy(update=other), "Lee", after=state.version.n)
    found = changed_since(shipped, case_state(shipped, CASE), adr)
    told = next(x for x in found if x.startswith("Requirements (version 2 by Lee): "))
    assert (told.count(" → "), told.endswith("; and 1 more.")) == (8, True)


def test_what_was_only_rehearsed_is_a_run_and_no_figure(shipped, tmp_path):
    with_plan(shipped, asking("vllm: ttft p95 <= 2 s at parallel-2"))
    adr = accepted(shipped)
    bring_in(shipped, CASE, bundle(tmp_path / "a"), "Lee")
    found = changed_since(shipped, case_state(shipped, CASE), adr)
    assert [x.split(":")[0] for x in found if x.startswith(("Runs", "Figures"))] == ["Runs that came in"]


def test_a_decision_that_came_as_markdown_is_superseded_though_the_bytes_of_then_are_not_here(shipped, tmp_path):
    adr = accepted(shipped)
    export_all(shipped, tmp_path / "out")
    (tmp_path / "other").mkdir()
    there = opened(tmp_path / "other")
    install(there, CASES / "nortia.yaml")
    (old,) = import_path(there, CASE, tmp_path / "out", "Lee").new
    assert (old.snapshots, there.store.snapshots.kinds()) == (adr.snapshots, {})
    successor = there.store.adrs.get(superseding(there, old))
    assert successor.supersedes == (old.id,)
    there.store.close()


def test_what_the_catalogue_says_otherwise_is_named(shipped):
    adr = accepted(shipped)
    old = shipped.catalog.engines["sglang"]
    ended = old.model_copy(update={"maintenance": old.maintenance.model_copy(update={"status": "ended"})})
    catalog = shipped.catalog.model_copy(update={"engines": {**shipped.catalog.engines, "sglang": ended}})
    found = changed_since(shipped._replace(catalog=catalog), case_state(shipped, CASE), adr)
    (facts,) = [x for x in found if x.startswith("Catalogue: ")]
    assert "SGLang › gate › maintained: pass → fail" in facts


def test_it_stands_in_the_context_of_the_successor(shipped):
    adr = accepted(shipped)
    bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
    context = shipped.store.adrs.get(superseding(shipped, adr)).context
    assert "What changed since ADR-0001 was accepted on " in context
    assert "- Verdicts: few-users: unmeasured → fired." in context
