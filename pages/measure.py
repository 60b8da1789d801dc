"""Measure: run the plan here, take in bundles from a GPU box, fill a table in by hand, or bring observed usage."""

from __future__ import annotations

import streamlit as st

from ui import measure_box, measure_hand, measure_here, measure_theirs, measure_usage
from ui.cached import workspace
from ui.measure_arrived import told
from ui.parts import go_to, head, kind_badge, next_step, plain
from ui.session import open_case
from ui.text import t
from ui.views import runs_frame

# Address -> what it is called, what it shows, whether it needs a plan.
WAYS = {
    "here": (t("Run here"), measure_here.section, True),
    "box": (t("On the GPU box"), measure_box.section, True),
    "theirs": (t("Import results"), measure_theirs.section, True),
    "hand": (t("Fill in by hand"), measure_hand.section, True),
    "usage": (t("Observed usage"), measure_usage.section, False),
}

ws = workspace()
state = open_case()

head("measure", t("Run the plan where the GPU is, and bring back what came out."))
for finding in state.findings:
    st.warning(plain(finding), icon=":material/report:")
told()
measure_here.running(ws, state)

if st.session_state.get("way") not in WAYS:
    linked = st.query_params.get("way")
    st.session_state["way"] = linked if linked in WAYS else "here"
way = st.segmented_control(
    t("Way in"), list(WAYS), format_func=lambda w: WAYS[w][0], key="way", required=True, label_visibility="collapsed"
)
st.query_params["way"] = way  # not bound by `bind`: that writes the words into the address, another language's too
_, section, needs_plan = WAYS[way]
if needs_plan and (state.plan is None or state.stored_plan is None):
    go_to("poc-plan", t("There is no plan to measure yet. Make it first:"))
else:
    section(ws, state)

st.subheader(t("Runs"))
if state.runs:
    st.markdown(" ".join(kind_badge(k) for k in dict.fromkeys(r.kind.value for r in state.runs)))
    st.dataframe(
        runs_frame(state), hide_index=True, height="content", alt=t("Runs of this case with status and findings"),
        column_config={t("Findings"): st.column_config.TextColumn(width="large")},
    )  # fmt: skip
else:
    st.markdown(t("Nothing was measured yet."))
measure_here.earlier(ws, state)

next_step("measure", primary=bool(state.runs))
