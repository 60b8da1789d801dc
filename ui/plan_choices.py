"""What only a person can state before a plan is written."""

from __future__ import annotations

import streamlit as st

from planner.requirements import Requirements
from planner.sample_size import BEYOND, sizes
from planner.statistics import samples_needed
from services.plans import AS_DERIVED, PlanChoices, choices_of, requests_asked
from services.verdicts import CaseState
from ui.plan_contract import contract_edits
from ui.session import taken_proposals
from ui.text import t

GENERATORS = ("same machine", "another machine")


def choices_form(state: CaseState, r: Requirements) -> PlanChoices:
    """The fields that nothing derives; an empty one is not stated."""
    slug, stored = state.case.slug, state.stored_plan
    was = choices_of(state.plan) if state.plan else AS_DERIVED
    key = f"plan-{slug}-{stored.sha256[:12] if stored else ''}"
    with st.form(key):
        a, b, c = st.columns(3)
        revision = a.text_input(
            t("Model revision"), was.model_revision, placeholder=t("commit of the weights"), key=f"{key}-revision",
            help=t("Without it two runs may have loaded different weights."),
        )  # fmt: skip
        gguf = b.text_input(
            t("GGUF file for llama-server"), was.gguf_file, placeholder=t("path on the GPU box"), key=f"{key}-gguf"
        )
        known = dict.fromkeys((was.load_generator or GENERATORS[0], *GENERATORS))
        place = c.selectbox(t("Load generator"), list(known), format_func=t, key=f"{key}-place")
        starts = a.number_input(
            t("Starts of each server"), 1, 20, was.starts, key=f"{key}-starts",
            help=t("The spread between starts is the error bar. One start has none."),
        )  # fmt: skip
        repeats = b.number_input(t("Repeats within a start"), 1, 50, was.repeats, key=f"{key}-repeats")
        requests = c.number_input(
            t("Requests per load point, at least"), 4, 10_000, max(4, requests_asked(r, was)), key=f"{key}-requests",
            help=_how_many(r, was),
        )  # fmt: skip
        budget = a.number_input(
            t("Time budget (minutes)"), min_value=1.0, max_value=100_000.0, value=was.budget_min, step=10.0,
            format="%.0f", placeholder=t("no limit"), key=f"{key}-budget",
            help=t("Starts and load, without downloads. The plan is cut down to it, the least informative first, and "
                   "the instrument keeps to it."),
        )  # fmt: skip
        st.form_submit_button(t("Show the plan"), icon=":material/visibility:")
    contract, declared = contract_edits(slug, was)
    proposals = tuple(dict.fromkeys((*was.proposals, *taken_proposals(slug))))
    return was._replace(
        model_revision=revision.strip(), gguf_file=gguf.strip(), load_generator=place, starts=starts, repeats=repeats,
        requests_per_point=requests, proposals=proposals, budget_min=budget, contract=contract, declared=declared,
    )  # fmt: skip


def _how_many(r: Requirements, was: PlanChoices) -> str:
    """The requests of one start that the first-token percentile needs, with 0, 1 and 5 beyond the limit."""
    times, share = was.starts * was.repeats, 1 - r.ttft_percentile / 100
    numbers = [f"{-(-n // times)}" for n in sizes(share)]
    return t(
        "For a p{q} over {times} repeats: {zero}, {one} or {five} where {b0}, {b1} or {b5} requests miss the limit "
        "(at 99 %); {least} decide it at 95 % where none does.",
        q=r.ttft_percentile, times=times, zero=numbers[0], one=numbers[1], five=numbers[2], b0=BEYOND[0], b1=BEYOND[1],
        b5=BEYOND[2], least=-(-samples_needed(share) // times),
    )  # fmt: skip
