"""Sizing: what fits, how fast it can be, and how many units it takes; every figure explained in one click."""

from __future__ import annotations

import streamlit as st

from planner.errors import FliplineError
from services.calibrations import calibration
from services.cases import sizings
from services.scores import case_score
from services.what_if import Question
from ui import sizing_calibration, sizing_sections, sizing_waiting
from ui.cached import workspace
from ui.parts import go_to, head, next_step, plain
from ui.session import open_case
from ui.sizing_controls import MONEY, ask_for, changed_question, changes_in_words, stated_in_words
from ui.text import t

ws = workspace()
state = open_case()
r = state.requirements
assert r is not None

head("sizing", t("What fits, how fast it can be, how many units it takes. None of this is measured."))

machines = {i: ws.catalog.gpu(h.gpu).name for i, h in enumerate(r.hardware)}
machine = 0
if len(machines) > 1:
    machine = st.segmented_control(
        t("Machine"), list(machines), default=0, required=True, format_func=machines.get, key="machine"
    )
sized = sizings(ws, r, machine)
labels = {s.plan.id: f"{s.plan.id} · {s.plan.label}" for s in sized}
chosen = st.segmented_control(
    t("Model plan"), list(labels), default=sized[0].plan.id, required=True, format_func=labels.get, key="plan",
    label_visibility="collapsed",
)  # fmt: skip
one = next((s for s in sized if s.plan.id == chosen), sized[0])
if one.sizing is None:
    st.error(plain(one.problem), icon=":material/error:")
    go_to("requirements", t("Change the model plan or the machine:"))
    st.stop()

stored = Question(r, one.plan, one.sizing.hardware, one.sizing.settings, case_score(ws, r).favourite or "")
known = calibration(ws)
version = st.session_state.setdefault("what-if", 0)
key = f"size-{r.sha256()[:8]}-{one.plan.id}-{machine}-{version}"


@st.fragment
def explore() -> None:
    """All that follows the controls; moving one recomputes this part alone, what takes longest last."""
    model = ws.catalog.model(stored.plan.model)
    answer = st.container()
    with st.expander(t("What if …"), icon=":material/tune:", key=f"{key}-panel"):
        asked = changed_question(stored, model, key)
        if st.button(t("Back to the requirements"), icon=":material/undo:", key=f"{key}-back"):
            st.session_state["what-if"] = version + 1
            st.rerun()
    if hardware := [f for f in one.sizing.gaps if f.field not in MONEY]:
        missing = ", ".join(t(f.title) for f in hardware)
        with st.expander(t("The catalogue does not know: {facts}", facts=plain(missing)), icon=":material/help:",
                         expanded=one.sizing.inputs is None):  # fmt: skip
            ask_for(hardware, key, r.budget.currency)
    try:
        s = asked.sizing(ws.catalog, known)
        found = asked.tornado(ws.catalog, known) if s.inputs else None
    except FliplineError as e:
        answer.error(plain(str(e)), icon=":material/error:")
        return
    with answer:
        st.markdown(
            f"**{plain(s.model)}** {s.plan.quantization} · KV {s.plan.kv_cache_dtype} · "
            f"{plain(ws.catalog.gpu(s.gpu).name)}"
        )
        if changes := changes_in_words(stored, asked):
            st.info(t("What if: {changes}. What is stored has not changed.", changes=plain("; ".join(changes))),
                    icon=":material/tune:")  # fmt: skip
        st.markdown(f"#### {plain(s.sentence)}")
        if said := stated_in_words(s.settings.stated):
            st.caption(said)
        for warning in s.warnings:
            st.warning(plain(warning), icon=":material/warning:")
        if s.units:
            sizing_sections.units(s, asked.requirements)
    sizing_sections.memory(s)
    if s.tables:
        sizing_sections.batches(s, asked.requirements, key)
        sizing_sections.first_token(s, asked.requirements)
    if found and found.swings:
        sizing_sections.swings(found, key)
    if s.inputs:
        sizing_sections.cost(s, key)
    sizing_waiting.show(s, asked.offered())
    sizing_calibration.show(ws, known, asked, s)


explore()
next_step("sizing")
