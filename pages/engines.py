"""Engines: gates first, then the explained score, what would flip it, and the evidence behind every rating."""

from __future__ import annotations

import streamlit as st

from planner.errors import FliplineError
from planner.rereads import rereads
from services.scores import case_proposals, case_score, case_what_if
from services.workspace import now
from ui.cached import workspace
from ui.diff_view import score_history
from ui.engine_candidate import chosen_candidate
from ui.engine_evidence import against_today, compare, evidence
from ui.engine_proposals import proposals, read_again
from ui.engine_ranking import bars, cards, gate_table
from ui.engine_weights import single_ratings, weights
from ui.engine_what_if import what_if
from ui.parts import go_to, head, next_step, plain
from ui.session import open_case, take_proposal, taken_proposals
from ui.text import t
from ui.words import criterion

ws = workspace()
today = now().date()
state = open_case()
r = state.requirements
assert r is not None  # a case begins with requirements

head("engines", t("Who may take part, who comes first on paper, and what would change that."))

stored = case_score(ws, r)
asked = chosen_candidate(ws, r, f"candidate-{state.case.slug}")
by_rules = case_score(ws, asked)
key = f"weight-{state.case.slug}-{state.version.n if state.version else 0}"
rules = {w.criterion: w for w in by_rules.weights}
keys = {c: f"{key}-{c}" for c in rules}
on_sliders = {c: st.session_state.get(k, rules[c].points) for c, k in keys.items()}
adjust = {c: points for c, points in on_sliders.items() if points != rules[c].points}


def back_to_rules() -> None:
    """Set every slider to the points that the rules give."""
    for name, w in rules.items():
        st.session_state[keys[name]] = float(w.points)


score = by_rules
if adjust:
    try:
        score = case_score(ws, asked, adjust)
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")
        adjust = {}
names = {c.engine: c.engine_name for c in score.candidates}

st.markdown(f"#### {plain(score.sentence)}")
st.caption(
    t(
        "The score narrows the field: it is made of documents and code that was read, not of speed. "
        "Only a measurement names a winner."
    )
)
if adjust:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            t(
                "Weights set by hand: {names}. By the rules: {sentence} The plan and the decision keep to the rules.",
                names=", ".join(criterion(c) for c in adjust), sentence=plain(by_rules.sentence),
            )
        )  # fmt: skip
        st.button(t("Back to the rules"), on_click=back_to_rules, icon=":material/undo:", key="reset-top")

cards(score, ws.catalog.engines, today)

st.subheader(t("Gates"))
gate_table(score)

st.subheader(t("Score"))
bars(score)

st.subheader(t("What would change the ranking"))
requirement, weight, single, datum_tab = st.tabs(
    [t("Requirements"), t("Weights, and where they flip"), t("Single ratings"), t("Against today (Pugh)")]
)
with requirement:
    what_if(case_what_if(ws, asked, score, adjust), names)
with weight:
    weights(score, rules, keys, back_to_rules, bool(adjust))
with single:
    single_ratings(score)
with datum_tab:
    datum = r.current_engine if r.current_engine in names else by_rules.baseline
    if datum:
        st.markdown(t("Each engine against {name}, criterion by criterion.", name=plain(names[datum])))
        against_today(score, datum)
    else:
        st.markdown(t("Nothing runs today, and no other engine passes the gates."))

score_history(ws, state.case.id)
st.subheader(t("Evidence behind the ratings"))
every, two = st.tabs([t("Every rating"), t("Two engines side by side")])
with every:
    evidence(score, ws.catalog.engines, today, f"evidence-{state.case.slug}")
with two:
    compare(score, ws.catalog.engines, today, f"compare-{state.case.slug}")

st.subheader(t("What a measurement should settle"))
st.caption(t("From gates that nobody could settle, requirements left open and ratings too thin to carry the ranking."))


def take(proposal: str) -> None:
    """Take a proposal into the draft of the plan."""
    take_proposal(state.case.slug, proposal)


proposals(case_proposals(r, stored), state.plan, take, "take")
read_again(rereads(stored))
if taken := taken_proposals(state.case.slug):
    go_to(
        "poc-plan",
        t(
            "Taken in: {names}. The draft holds them in this browser tab until you save it there:",
            names=plain(", ".join(taken)),
        ),
    )

next_step("engines")
