"""Engines: gates first, then the explained score, what would flip it, and the evidence behind every rating."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from planner.engine_facts import age
from planner.errors import FliplineError
from planner.scoring import pugh
from planner.sensitivity import FlipWeight
from planner.weighting import Weight
from services.scores import case_score
from services.workspace import now
from ui.cached import workspace
from ui.charts import contributions
from ui.parts import go_to, head, next_step, plain, state_badge
from ui.session import open_case
from ui.text import t
from ui.words import BETTER_WORSE, GATES, criterion, in_words, rating, role_badge

MOST_POINTS = 15.0

ws = workspace()
today = now().date()
state = open_case()
r = state.requirements
assert r is not None  # a case begins with requirements

head("engines", t("Who may take part, who comes first on paper, and what would change that."))

by_rules = case_score(ws, r)
key = f"weight-{state.case.slug}-{state.version.n if state.version else 0}"
rules = {w.criterion: w.points for w in by_rules.weights}
keys = {c: f"{key}-{c}" for c in rules}
adjust = {c: st.session_state[k] for c, k in keys.items() if st.session_state.get(k, rules[c]) != rules[c]}


def back_to_rules() -> None:
    """Set every slider to the points that the rules give."""
    for name, points in rules.items():
        st.session_state[keys[name]] = float(points)


score = by_rules
if adjust:
    try:
        score = case_score(ws, r, adjust)
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")
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
        st.button(t("Back to the rules"), on_click=back_to_rules, icon=":material/undo:", key=f"reset-top-{key}")

for c in score.candidates:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            ranked = t("score {score:.2f}", score=c.score) if c.ranked else t("not ranked")
            st.markdown(f"{role_badge(c.advice.role)} **{plain(c.engine_name)}** {plain(c.version)} · {ranked}")
            with st.popover(t("Sources"), icon=":material/menu_book:"):
                for source in c.advice.sources:
                    st.markdown(f"- {plain(source)}")
                if not c.advice.sources:
                    st.markdown(t("Follows from the score alone."))
        st.markdown(plain(in_words(c.advice.reason)))
        if c.advice.when and c.advice.when not in c.advice.reason:
            st.caption(t("Comes back when: {when}", when=plain(in_words(c.advice.when))))
        if c.form and c.form.note:
            st.caption(t("Would run as: {note}", note=plain(c.form.note)))
        old = age(ws.catalog.engines[c.engine], today)
        if old.stale:
            st.markdown(f":orange[:material/history: {t('Stale facts:')}] {plain(old.sentence)}")

st.subheader(t("Gates"))
gates = [g.gate for g in score.candidates[0].gates]
rows = [f"| | {' | '.join(t(GATES[g]) for g in gates)} |", f"|---|{'---|' * len(gates)}"]
rows += [f"| {plain(c.engine_name)} | {' | '.join(state_badge(g.state) for g in c.gates)} |" for c in score.candidates]
st.markdown("\n".join(rows))
st.caption(t("A failed gate takes an engine out of the ranking. Unknown stays unknown until a server was started."))
with st.expander(t("Reason and source of each gate"), icon=":material/rule:"):
    for c in score.candidates:
        for g in c.gates:
            left, right = st.columns([1, 3])
            left.markdown(f"{plain(c.engine_name)}: {t(GATES[g.gate])} {state_badge(g.state)}")
            source = f"  \n:small[{plain('; '.join(g.sources))}]" if g.sources else ""
            right.markdown(f"{plain(g.reason)}{source}")
if score.first_hypotheses:
    st.markdown(f"**{t('Open gates: the first things to test')}**")
    for o in score.first_hypotheses:
        st.markdown(f"- {plain(o.gate.hypothesis)}  \n  :small[{plain(o.gate.reason)}]")
    go_to("poc-plan", t("H1 of the plan tests this for the favourite and the baseline:"))

st.subheader(t("Score"))
parts = [
    {
        "candidate": c.engine_name if c.ranked else t("{name} (stopped)", name=c.engine_name),
        "criterion": criterion(p.criterion),
        "contribution": 100 * p.contribution,
        "reason": p.reason,
    }
    for c in score.candidates
    for p in c.contributions
    if p.weight > 0
]
st.altair_chart(
    contributions(pd.DataFrame(parts)),
    alt=t("Score of each engine of 100, by criterion: {all}",
          all=", ".join(f"{c.engine_name} {100 * c.score:.0f}" for c in score.candidates)),
)  # fmt: skip
st.caption(
    t(
        "{sentence} Closer than {margin:.3f} is called a near tie: one rating step on one criterion of average weight.",
        sentence=plain(score.candidates[0].confidence_sentence), margin=score.near_tie_margin,
    )
)  # fmt: skip


def flips(f: FlipWeight) -> str:
    """At which weight of one criterion another engine wins."""
    found = []
    if f.below:
        found.append(t("{name} wins below {at:.2f}", name=names[f.below.to], at=f.below.at))
    if f.above:
        found.append(t("{name} wins above {at:.2f}", name=names[f.above.to], at=f.above.at))
    return "; ".join(found) or t("no weight of this criterion changes the winner")


st.subheader(t("Weights, and where they flip the ranking"))
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    st.caption(t("Points come from the requirements by rules. Move them to see what follows; nothing is stored here."))
    st.button(
        t("Reset the weights"), on_click=back_to_rules, icon=":material/undo:", key=f"reset-{key}", disabled=not adjust
    )
flip_of = {f.criterion: f for f in score.flip_weights}
asked = [w for w in score.weights if rules[w.criterion] > 0]
others = [w for w in score.weights if rules[w.criterion] <= 0]
why = {w.criterion: w.why for w in by_rules.weights}


def slider(w: Weight) -> None:
    """One criterion: its points, the rules that gave them, its share and its flip weight."""
    st.session_state.setdefault(keys[w.criterion], float(rules[w.criterion]))
    st.slider(
        criterion(w.criterion), 0.0, MOST_POINTS, step=0.5, format="%g", key=keys[w.criterion],
        persist_state="session",
        help=plain("; ".join(why[w.criterion])) or t("No rule gives it points for these requirements."),
    )  # fmt: skip
    flip = flip_of.get(w.criterion)
    found = flips(flip) if flip else t("no engine is ranked")
    st.caption(t("weight {weight:.2f} · {flips}", weight=w.weight, flips=found))


def sliders(weights: Sequence[Weight]) -> None:
    """Three sliders a row."""
    for i in range(0, len(weights), 3):
        for column, w in zip(st.columns(3), weights[i : i + 3], strict=False):
            with column:
                slider(w)


sliders(asked)
with st.expander(t("Criteria that these requirements do not ask for ({n})", n=len(others))):
    sliders(others)

with st.expander(
    t("Single ratings that would change the winner ({n})", n=len(score.rating_flips)), icon=":material/swap_vert:"
):
    if not score.rating_flips:
        st.markdown(t("No single step of one rating changes the winner."))
    else:
        st.table(
            pd.DataFrame(
                [
                    {
                        t("Engine"): names[f.engine],
                        t("Criterion"): criterion(f.criterion),
                        t("Rated"): rating(f.rating),
                        t("If it were"): rating(f.becomes),
                        t("Then wins"): names[f.winner],
                    }
                    for f in score.rating_flips
                ]
            ).set_index(t("Engine")),
            border="horizontal",
        )

datum = r.current_engine if r.current_engine in names else by_rules.baseline
if datum:
    against = t("Against {name}, criterion by criterion (Pugh)", name=names[datum])
    with st.expander(against, icon=":material/difference:"):
        compared = pugh(score, datum)
        frame = pd.DataFrame(
            {
                names[e]: {criterion(k): t(BETTER_WORSE[v]) for k, v in cells.items()}
                for e, cells in compared.items()
                if e != datum
            }
        )
        st.dataframe(frame, alt=t("Each engine against {name}: better, same or worse", name=names[datum]))

st.subheader(t("Evidence behind the ratings"))
chosen = st.segmented_control(
    t("Engine"), list(names), default=score.candidates[0].engine, format_func=names.get, key=f"evidence-{key}",
    label_visibility="collapsed",
)  # fmt: skip
engine = ws.catalog.engines[chosen or score.candidates[0].engine]
old = age(engine, today)
(st.warning if old.stale else st.caption)(plain(old.sentence))
st.caption(
    t("Version {version} of {date}, read on {read}. Anchors: 0 none, 1 limited, 2 good, 3 excellent.",
      version=plain(engine.version), date=engine.date, read=engine.read_on)
)  # fmt: skip
with st.container(height=560):
    for name in rules:
        axis = engine.axes[name]
        left, middle, right = st.columns([2, 5, 3])
        left.markdown(f"**{criterion(name)}**  \n{rating(axis.rating)}")
        middle.markdown(f"{plain(axis.statement)}  \n*{plain(axis.reason)}*")
        right.markdown(
            t(":small[{kind}, {confidence} confidence]  \n:small[{source}]", kind=t(axis.evidence_kind),
              confidence=t(axis.confidence), source=plain("; ".join(axis.source)))
        )  # fmt: skip

next_step("engines")
