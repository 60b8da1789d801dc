"""PoC plan: what is tested and why, under which contract and commands, and the file that goes to the GPU box."""

from __future__ import annotations

import streamlit as st

from planner.errors import FliplineError, NotAllowed
from planner.outlook import outlook
from services.launches import Weights
from services.plan_costs import cost_of
from services.plans import Drafted, choices_of, draft_plan, plan_contradictions, save_plan, upload_plan
from ui import launch_forms, plan_contract
from ui.cached import workspace
from ui.diff_view import plan_history
from ui.hypotheses import hypotheses_section
from ui.parts import flash, go_to, head, next_step, plain, shown_errors
from ui.plan_choices import choices_form
from ui.plan_cost import cost, sample_sizes
from ui.plan_downloads import take_along
from ui.plan_launches import fair, launches
from ui.plan_view import commands, stages
from ui.session import open_case, signed, take_proposal
from ui.text import t

ws = workspace()
state = open_case()
r = state.requirements
assert r is not None  # a case begins with requirements
slug = state.case.slug
stored = state.stored_plan

head("poc-plan", t("What is tested, what it takes to believe the answer, and what follows if it is no."))

if stored:
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            t("**Stored plan** `{sha}` by {author}, {at:%Y-%m-%d %H:%M} UTC",
              sha=stored.sha256[:12], author=plain(stored.author), at=stored.at)
        )  # fmt: skip
        st.download_button(
            t("Download the plan file"), stored.body, f"{slug}-plan.yaml", "application/yaml",
            icon=":material/download:", on_click="ignore", key=f"download-{slug}",
        )  # fmt: skip
if state.plan_is_stale:
    st.warning(
        t("The requirements changed after this plan was stored: look at the draft below and save it."),
        icon=":material/history:",
    )
if state.sizing and (beforehand := outlook(state.sizing, r)):
    st.info(plain(beforehand), icon=":material/trending_down:")


def take(proposal: str) -> None:
    """Take a proposal into the draft and show that."""
    take_proposal(slug, proposal)
    st.session_state[f"view-{slug}"] = "draft"


choices = choices_form(state, r)
drafted: Drafted | None = None
try:
    drafted = draft_plan(ws, slug, r, choices)
except FliplineError as e:
    st.error(plain(str(e)), icon=":material/error:")
    if isinstance(e, NotAllowed):
        go_to("requirements", t("A plan needs an engine that passes the gates and a model that fits:"))

same = bool(drafted and stored and drafted.plan.sha256() == stored.sha256)
views = [v for v, there in (("draft", drafted and not same), ("stored", stored)) if there]
labels = {"draft": t("Draft, not stored yet"), "stored": t("Stored plan")}
view = views[0] if views else None
if len(views) > 1:
    first = "draft" if state.plan_is_stale or choices != choices_of(state.plan) else "stored"
    view = st.segmented_control(t("Show"), views, default=first, format_func=labels.get, key=f"view-{slug}") or first

if (
    view == "draft"
    and st.button(t("Save plan"), icon=":material/save:", key=f"save-plan-{slug}")
    and (name := signed())
):
    with shown_errors():
        save_plan(ws, state.case.id, drafted.plan, name)
        st.session_state.pop(f"taken-{slug}", None)
        plan_contract.forget_edits(slug)
        flash(t("The plan is stored. Download the file, or measure here."))
        st.rerun()

plan = drafted.plan if drafted and view == "draft" else state.plan
explained_here = drafted if drafted and (view == "draft" or same) else None
if plan:
    st.subheader(t("Time and tokens"))
    cost(plan, drafted.cost if explained_here else cost_of(ws, r, plan), drafted.lost if explained_here else ())
    hypotheses_section(ws, state, plan, take)
    st.subheader(t("Stages and load points"))
    stages(plan)
    st.subheader(t("What the sample sizes can prove"))
    sample_sizes(plan)
    st.subheader(t("Contract"))
    plan_contract.meter(plan)
    plan_contract.faults(plan, plan_contradictions(ws, plan))
    plan_contract.table(plan)
    if explained_here:
        plan_contract.editor(slug, explained_here)
    st.subheader(t("How the instrument starts them"))
    if explained_here:
        launches(explained_here)
        st.subheader(t("Is the comparison fair?"))
        fair(ws, explained_here)
    else:
        commands(plan)
    if drafted:
        st.subheader(t("Start one yourself"))
        launch_forms.show(ws, r, slug, Weights(choices.model_revision, choices.gguf_file))
    st.subheader(t("Take it to the GPU box"))
    if stored and state.plan and (view == "stored" or same):
        take_along(ws, r, slug, state.plan, stored.body)
    else:
        st.markdown(t("Save the plan first: the folder and the request carry the stored one."))

if stored:
    plan_history(ws, state.case.id)
with st.expander(t("Bring in an edited plan file"), icon=":material/upload:"):
    file = st.file_uploader(t("Plan file (YAML)"), type=["yaml", "yml"], key=f"upload-{slug}")
    store = st.button(t("Store this file as the plan"), disabled=file is None, key=f"store-plan-{slug}")
    if store and file and (name := signed()):
        with shown_errors():
            text = file.getvalue().decode("utf-8", errors="replace")
            upload_plan(ws, state.case.id, file.name, text, name)
            flash(t("The plan file is stored as it is."))
            st.rerun()

next_step("poc-plan")
