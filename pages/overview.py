"""Overview: the one screen for the meeting. Decision, hypotheses, flip conditions, what happens next."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from services.next_runs import next_runs
from services.verdicts import decision_of, headline, judge_adr, judge_hypotheses, missing
from ui.cached import state as read_state
from ui.cached import workspace
from ui.due_view import standing_duties
from ui.flip_gauge import gauge
from ui.next_words import amount_in_words
from ui.parts import go_to, head, kind_badge, plain, short, state_badge
from ui.quality_view import precision_notes
from ui.session import open_case
from ui.speed_charts import output_picture, speed_picture
from ui.text import t
from ui.views import speed_frame
from ui.words import in_short, metrics_in_words

NEXT_SHOWN = 3

ws = workspace()
state = open_case()
r = state.requirements

head("overview", t("Where this decision stands, what would change it, and what is missing before the next meeting."))

decision = decision_of(state)
with st.container(border=True):
    if decision:
        st.markdown(f"{state_badge(decision.status)} **{plain(short(decision))}**")
    st.markdown(f"## {plain(headline(state).sentence)}")
    if state.sizing:
        st.markdown(f"{kind_badge('planning')} {plain(state.sizing.sentence)}")

for fire in decision.fires if decision else ():
    st.error(
        f"**{t('A condition fired and waits for an answer.')}** {plain(fire.sentence)}",
        icon=":material/notifications_active:",
    )
    go_to("adr-log", t("Answer it:"))

standing_duties(ws, state)

left, right = st.columns(2)
with left:
    st.subheader(t("Hypotheses"))
    verdicts = judge_hypotheses(state)
    if not verdicts:
        go_to("poc-plan", t("No plan says yet what is tested."))
    for v in verdicts:
        st.markdown(f"{state_badge(v.verdict.state)} **{v.hypothesis.id}** {plain(v.hypothesis.statement)}")
        if v.hypothesis.warning and not v.verdict.decided:
            st.caption(plain(v.hypothesis.warning))
        elif v.verdict.decided and v.verdict.kind:
            st.caption(f"{kind_badge(v.verdict.kind)} {plain(in_short(v.verdict.sentence))}")
        if v.verdict.warning:
            st.caption(f":material/rule: {plain(v.verdict.warning)}")
with right:
    st.subheader(t("Flip conditions"))
    flips = judge_adr(state, decision) if decision else ()
    if not flips:
        go_to("decision", t("No decision is drafted, so nothing can re-open it."))
    for f in flips:
        flip = decision.condition(f.condition) if decision else None
        st.markdown(f"{state_badge(f.state)} {plain(metrics_in_words(flip.in_words()) if flip else f.condition)}")
        gauge(f)
        if flip and flip.consequence:
            st.caption(t("If it {side}: {what}", side=t(flip.fires_when), what=plain(flip.consequence)))

frame = speed_frame(state)
if r and not frame.empty:
    a, b = st.columns(2)
    with a:
        st.markdown(f"**{t('Speed per user')}**")
        chart, words = speed_picture(r, frame[frame.metric == "user_tok_s"])
        st.altair_chart(chart, alt=words)
    with b:
        st.markdown(f"**{t('Total output')}**")
        chart, words = output_picture(r, frame[frame.metric == "output_tok_s"])
        st.altair_chart(chart, alt=words)
    precision_notes(state)

open_points = missing(state)
st.subheader(t("Before the next meeting"))
if not open_points:
    st.markdown(t("Nothing is missing."))
for sentence, url in open_points:
    go_to(url, t(sentence))
for run in next_runs(ws, state)[:NEXT_SHOWN]:
    ids = plain(", ".join(dict.fromkeys(c.id for c in run.changes if c.could == run.could)))
    words = t("{run} could {could}: {ids}", run=f"**{plain(run.what)}**", could=t(run.could), ids=ids)
    st.markdown(f":material/arrow_forward: {words} :small[{amount_in_words(run)}]")

st.subheader(t("All cases"))
rows = []
for case in ws.store.cases.all():
    one = state if case.id == state.case.id else read_state(case.id)
    stands = decision_of(one)
    states = [f.state for f in judge_adr(one, stands)] if stands else []
    rows.append(
        {
            t("Case"): case.title,
            t("Decision"): short(stands) if stands else t("none"),
            t("Status"): t(stands.status.value) if stands else "–",
            t("Fired"): sum(s == "fired" for s in states),
            t("Near"): sum(s == "near" for s in states),
            t("Runs"): len(one.runs),
        }
    )
st.dataframe(pd.DataFrame(rows), hide_index=True, alt=t("All cases with their decision and its conditions"))
