"""One decision of the log: what was written, and what of it runs in production."""

from __future__ import annotations

import streamlit as st

from decisions.record import Adr
from services.deployments import deploy
from services.verdicts import CaseState, candidate_of
from services.workspace import Workspace, now
from ui.opinions_view import opinion_line
from ui.parts import deployment_words, flash, kind_badge, plain, shown_errors
from ui.session import signed
from ui.text import t
from ui.words import metrics_in_words


def written_part(adr: Adr) -> None:
    """The record as it reads: context, options, choice, consequences, people, evidence."""
    st.markdown(plain(adr.context).replace("\n", "\n\n"))
    for heading, entries in ((t("Drivers"), adr.drivers), (t("Options"), [o.title for o in adr.options])):
        st.markdown(f"**{heading}**\n\n" + "\n".join(f"- {plain(e)}" for e in entries))
    st.markdown(f"**{t('Chosen')}:** {plain(adr.chosen) or t('nothing yet')}: {plain(adr.outcome)}")
    good, neutral, bad = adr.consequences.good, adr.consequences.neutral, adr.consequences.bad
    for words, entries in ((t("Good"), good), (t("Neutral"), neutral), (t("Bad"), bad)):
        for entry in entries:
            st.markdown(f"- {words}: {plain(entry)}")
    if adr.confirmation:
        st.markdown(f"**{t('Confirmation')}**\n\n" + plain(adr.confirmation).replace("\n", "\n\n"))
    people = adr.people
    for words, who in (
        (t("Decide"), people.decided),
        (t("Consulted"), people.consulted),
        (t("Informed"), people.informed),
    ):
        st.markdown(f"{words}: {plain(', '.join(who)) or '–'}")
    for opinion in adr.opinions:
        st.markdown(opinion_line(opinion))
    st.markdown(t("Review on {day}", day=adr.review_on or t("no date")))
    for piece in adr.evidence:
        st.markdown(f"- {kind_badge(piece.kind)} {plain(metrics_in_words(piece.says))} `{piece.sha256[:12]}`")


def in_production(ws: Workspace, of_case: CaseState, adr: Adr) -> None:
    """What runs in production, and a form to record what went there: conditions are held against it from then on."""
    st.markdown(f"**{t('In production')}**")
    for d in reversed(of_case.deployments):
        st.markdown(f"- {deployment_words(d)}")
    if not of_case.deployments:
        st.markdown(t("Nothing is recorded: conditions are held against the plan that was decided on."))
    candidates = [c.id for c in of_case.plan.candidates] if of_case.plan else []
    if not candidates:
        return
    recording = st.expander(t("Record what went into production"), icon=":material/rocket_launch:")
    with recording, st.form(f"deploy-{adr.id}", border=False):
        a, b, c = st.columns(3)
        chosen = candidates.index(candidate_of(of_case, adr))
        candidate = a.selectbox(t("Candidate"), candidates, index=chosen, key=f"deploy-who-{adr.id}")
        version = b.text_input(t("Engine version"), key=f"deploy-version-{adr.id}", placeholder="0.33.0")
        since = c.date_input(t("In production since"), now().date(), max_value=now().date(), format="YYYY-MM-DD",
                             key=f"deploy-since-{adr.id}")  # fmt: skip
        a, b, c = st.columns(3)
        image = a.text_input(t("Image digest, if any"), key=f"deploy-image-{adr.id}", placeholder=t("sha256:…"))
        flags = b.text_input(t("Flags"), key=f"deploy-flags-{adr.id}", placeholder=t("--max-num-seqs 16"))
        revision = c.text_input(t("Model revision"), key=f"deploy-revision-{adr.id}")
        if st.form_submit_button(t("Record"), icon=":material/rocket_launch:") and (name := signed()):
            with shown_errors():
                deploy(ws, adr.case, candidate=candidate, since=since, engine_version=version, by=name,
                       image=image, flags=flags, model_revision=revision)  # fmt: skip
                flash(t("It is recorded. Conditions are held against what runs."))
                st.rerun()
