"""Measure by import: a result file of another tool, looked at before it is stored."""

from __future__ import annotations

import streamlit as st

from services.arrivals import bring_in_foreign
from services.foreign import Said, Seen
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.cached import seen_in
from ui.measure_arrived import tell
from ui.parts import kind_badge, plain, shown_errors
from ui.session import signed
from ui.text import t, tn
from ui.views import foreign_frame


def section(ws: Workspace, state: CaseState) -> None:
    """What a file holds, what of it is taken, and for which load points."""
    stored, slug = state.stored_plan, state.case.slug
    assert stored is not None
    st.markdown(
        f"{kind_badge('imported')} "
        + t("A result of `vllm bench serve`, SGLang, GuideLLM, AIPerf, `llama-bench`, `llama-batched-bench` or "
            "llama-benchy. The load is read from the file; what it defines otherwise is left out by name.")
    )  # fmt: skip
    upload = st.file_uploader(t("Result file"), type=["json", "jsonl", "md", "txt", "log"], key=f"theirs-{slug}")
    said = _said(state)
    if upload is None:
        return
    with shown_errors():
        seen = seen_in(upload.name, upload.getvalue(), said, stored.body)
        points = _looked_at(state, seen, upload.file_id)
        if st.button(t("Import"), type="primary", icon=":material/move_to_inbox:") and (name := signed()):
            arrived = bring_in_foreign(
                ws, state.case.id, upload.name, upload.getvalue(), said._replace(points=points), name
            )
            tell(
                arrived,
                t("Figures taken from {tool}: {n}.", n=seen.figures, tool=plain(seen.tool)) if arrived.new
                else t("This result was there already."),
            )  # fmt: skip


def _said(state: CaseState) -> Said:
    """What a person says about the file."""
    assert state.plan is not None
    slug = state.case.slug
    a, b, c = st.columns(3)
    candidate = a.selectbox(t("Candidate"), [x.id for x in state.plan.candidates], key=f"theirs-who-{slug}")
    source = b.text_input(t("From"), placeholder=t("who measured it, or its address"), key=f"theirs-from-{slug}")
    licence = c.text_input(t("Licence"), placeholder=t("or who allowed its use"), key=f"theirs-may-{slug}")
    with st.expander(t("What the file does not say")):
        d, e, f = st.columns(3)
        in_flight = d.number_input(t("In flight"), min_value=1, value=None, key=f"theirs-n-{slug}")
        rate = e.number_input(t("Rate (req/s)"), min_value=0.001, value=None, key=f"theirs-rate-{slug}")
        day = f.date_input(t("Day of the run"), value=None, max_value=now().date(), format="YYYY-MM-DD",
                           key=f"theirs-day-{slug}")  # fmt: skip
    return Said(candidate, {}, source.strip(), licence.strip(), in_flight, rate, day)


def _looked_at(state: CaseState, seen: Seen, file_id: str) -> dict[str, str]:
    """Show what the file holds; returns which load point of the plan each of its loads stands for."""
    plan = state.plan
    assert plan is not None
    origin = (
        tn(seen.requests, "from {n} request", "from {n} requests") if seen.requests else t("as the tool computed them")
    )
    st.markdown(f"**{plain(seen.tool)}**: " + t("figures: {n}, {origin}", n=seen.figures, origin=origin))
    for finding in seen.findings:
        st.caption(plain(finding))
    stands_for = {
        load: st.selectbox(
            t("{load} stands for", load=words), [p.name for p in plan.load_points], index=None,
            placeholder=t("no load point of the plan"), key=f"theirs-{state.case.slug}-{file_id}-{load}",
            format_func=lambda name: f"{name}: {plan.point(name).in_words()}",
        )
        for load, words in seen.loads.items()
    }  # fmt: skip
    st.dataframe(
        foreign_frame(seen), hide_index=True, height="content",
        column_config={t("Here"): st.column_config.TextColumn(width="large")},
        alt=t("Terms of the file and what becomes of them"),
    )  # fmt: skip
    return {load: point for load, point in stands_for.items() if point}
