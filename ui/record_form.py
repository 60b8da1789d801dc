"""The written part of a decision as a form."""

from __future__ import annotations

from typing import Any

import streamlit as st

from decisions.record import Adr
from services.adr_form import lines, names
from ui.parts import kind_badge, plain
from ui.text import t
from ui.words import in_words, metrics_in_words


def record_form(adr: Adr, key: str) -> dict[str, Any]:
    """Show the form; what is typed comes back as services.adr_form.text_from takes it."""

    def line(label: str, value: str, name: str, **more: object) -> str:
        return st.text_input(label, value, key=f"{name}-{key}", persist_state="session", **more)

    def area(label: str, value: str, name: str) -> str:
        return st.text_area(label, value, key=f"{name}-{key}", height="content", persist_state="session")

    title = line(t("Title"), adr.title, "title")
    headline = line(t("Headline: one sentence for people"), adr.headline, "headline")
    tags = line(t("Tags, separated by commas"), ", ".join(adr.tags), "tags")
    context = area(t("Context and problem"), adr.context, "context")
    left, right = st.columns(2)
    with left:
        drivers = area(t("Drivers, one a line"), "\n".join(adr.drivers), "drivers")
    with right:
        option_titles = ["", *(o.title for o in adr.options)]
        chosen = st.selectbox(
            t("Chosen option"), option_titles,
            index=option_titles.index(adr.chosen) if adr.chosen in option_titles else 0,
            format_func=lambda o: o or t("none yet"), key=f"chosen-{key}", persist_state="session",
        )  # fmt: skip
        outcome = area(t("… because"), adr.outcome, "outcome")
    with st.expander(t("Options considered ({n})", n=len(adr.options)), icon=":material/balance:"):
        for option in adr.options:
            st.markdown(f"**{plain(option.title)}**: {plain(in_words(option.summary))}")
            for words, entries in ((t("Good"), option.pros), (t("Open"), option.neutral), (t("Bad"), option.cons)):
                for entry in entries:
                    st.markdown(f"- {words}: {plain(entry)}")
    st.markdown(f"**{t('Consequences, one a line')}**")
    a, b, c = st.columns(3)
    with a:
        good = area(t("Good"), "\n".join(adr.consequences.good), "good")
    with b:
        neutral = area(t("Neutral"), "\n".join(adr.consequences.neutral), "neutral")
    with c:
        bad = area(t("Bad"), "\n".join(adr.consequences.bad), "bad")
    confirmation = area(t("Confirmation: how it is checked"), adr.confirmation, "confirmation")
    st.markdown(f"**{t('People, separated by commas')}**")
    a, b, c, d = st.columns(4)
    with a:
        decided = line(t("Decide"), ", ".join(adr.people.decided), "decided")
    with b:
        consulted = line(t("Consulted"), ", ".join(adr.people.consulted), "consulted")
    with c:
        informed = line(t("Informed"), ", ".join(adr.people.informed), "informed")
    with d:
        review = st.date_input(
            t("Review on"), adr.review_on, key=f"review-{key}", format="YYYY-MM-DD", persist_state="session"
        )
    st.markdown(f"**{t('Evidence attached ({n})', n=len(adr.evidence))}**")
    for piece in adr.evidence:
        st.markdown(f"- {kind_badge(piece.kind)} {plain(metrics_in_words(piece.says))}")
    absent = line(
        t("If there is none, say why"), adr.evidence_absent, "absent",
        placeholder=t("Nothing was measured yet; the choice rests on documents."),
    )  # fmt: skip
    return {
        "fields": {
            "title": title, "headline": headline, "context": context, "drivers": lines(drivers),
            "chosen": chosen, "outcome": outcome, "confirmation": confirmation, "evidence_absent": absent,
            "review_on": review, "tags": tuple(dict.fromkeys(names(tags))),
        },
        "good": good, "neutral": neutral, "bad": bad,
        "decided": decided, "consulted": consulted, "informed": informed,
    }  # fmt: skip
