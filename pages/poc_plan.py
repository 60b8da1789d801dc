"""PoC plan: what is tested and why, under which contract and commands, and the file that goes to the GPU box."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.engine_facts import server
from planner.errors import FliplineError
from planner.launch import LaunchPlan, fairness
from planner.units import format_duration
from services.launches import Weights
from services.plans import (
    AS_DERIVED,
    Drafted,
    PlanChoices,
    choices_of,
    draft_plan,
    save_plan,
    upload_plan,
)
from ui import launch_forms
from ui.cached import workspace
from ui.hypotheses import hypotheses_section
from ui.parts import flash, go_to, head, kind_badge, next_step, plain, shown_errors
from ui.plan_view import commands, contract, stages
from ui.session import open_case, signed, take_proposal, taken_proposals
from ui.text import t

GENERATORS = ("same machine", "another machine")
EQUAL = {
    "equalised": ":green-badge[:material/check: equalised]",
    "declared": ":orange-badge[:material/edit_note: declared]",
    "cannot": ":red-badge[:material/close: cannot be made equal]",
}
CAUTIONS = {"setting": ":material/warning:", "declared": ":material/edit_note:", "cannot": ":material/close:"}

ws = workspace()
state = open_case()
r = state.requirements
assert r is not None  # a case begins with requirements
slug = state.case.slug
stored = state.stored_plan

head("poc-plan", t("What is tested, what it takes to believe the answer, and what follows if it is no."))


def choices_form() -> PlanChoices:
    """What only a person can state; an empty field is not stated."""
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
            t("Requests per load point, at least"), 4, 10_000, max(4, was.requests_per_point), key=f"{key}-requests"
        )
        st.form_submit_button(t("Show the plan"), icon=":material/visibility:")
    proposals_in = tuple(dict.fromkeys((*was.proposals, *taken_proposals(slug))))
    return PlanChoices(revision.strip(), gguf.strip(), place, starts, repeats, requests, proposals_in)


def launch_form(launch: LaunchPlan, note: str) -> None:
    """One start command with the reason for every flag."""
    st.markdown(f"**{plain(launch.engine)} {plain(launch.version)}** {note}")
    st.code(launch.command_line, language="bash", wrap_lines=True)
    flags = [{t("Flag"): f.flag, t("Value"): f.value or t("(switch)"), t("Why"): f.why} for f in launch.flags]
    with st.expander(t("Every flag and why ({n})", n=len(flags)), icon=":material/flag:"):
        st.dataframe(pd.DataFrame(flags), hide_index=True, alt=t("Flags of {name}", name=launch.engine))
    for w in launch.warnings:
        st.markdown(f"{CAUTIONS[w.kind]} **{plain(t(w.topic))}** {plain(w.sentence)}")


def launches(drafted: Drafted) -> None:
    """Commands per candidate; the baseline's everyday form stands beside the one that is measured."""
    tabs = st.tabs(list(drafted.launches))
    for tab, (candidate, launch) in zip(tabs, drafted.launches.items(), strict=True):
        with tab:
            everyday = drafted.everyday.get(candidate)
            note = t("is started for the measurement, because it shows its metrics and holds the answer length.")
            launch_form(launch, note if everyday else "")
            if everyday:
                launch_form(everyday, t("is the same load in daily use; it is not what the plan measures."))


def fair(drafted: Drafted) -> None:
    """Defaults that skew a comparison: what the commands make equal, what is declared, what cannot be."""
    servers = {c: server(ws.catalog.engines, launch.engine) for c, launch in drafted.launches.items()}
    rows = [
        {
            t("Default"): plain(t(row.topic)),
            **{
                c: f"{t(EQUAL[f.by])} {plain(f.default)}" + (f"  \n→ {plain(f.how)}" if f.how else "")
                for c, f in row.servers.items()
            },
            t("What it does to a comparison"): plain("; ".join(dict.fromkeys(f.effect for f in row.servers.values()))),
        }
        for row in fairness(servers)
    ]
    st.table(pd.DataFrame(rows).fillna("–").set_index(t("Default")), border="horizontal")


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


def take(proposal: str) -> None:
    """Take a proposal into the draft and show that."""
    take_proposal(slug, proposal)
    st.session_state[f"view-{slug}"] = "draft"


choices = choices_form()
drafted: Drafted | None = None
try:
    drafted = draft_plan(ws, slug, r, choices)
except FliplineError as e:
    st.error(plain(str(e)), icon=":material/error:")
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
        flash(t("The plan is stored. Download the file, or measure here."))
        st.rerun()

plan = drafted.plan if drafted and view == "draft" else state.plan
explained_here = drafted if drafted and (view == "draft" or same) else None
if plan:
    if explained_here:
        st.markdown(
            t("{badge} About **{time}** of GPU time: {starts} starts of each server, five minutes to load, both at the "
              "favourite's predicted speed. A slower baseline takes longer; downloads come on top.",
              badge=kind_badge("planning"), time=format_duration(explained_here.cost.minutes * 60), starts=plan.starts)
        )  # fmt: skip
    hypotheses_section(ws, state, plan, take)
    st.subheader(t("Stages and load points"))
    stages(plan)
    st.subheader(t("Contract"))
    contract(plan)
    st.subheader(t("How the instrument starts them"))
    if explained_here:
        launches(explained_here)
        st.subheader(t("Is the comparison fair?"))
        fair(explained_here)
    else:
        commands(plan)
    if drafted:
        st.subheader(t("Start one yourself"))
        launch_forms.show(ws, r, slug, Weights(choices.model_revision, choices.gguf_file))

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
