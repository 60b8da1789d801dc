"""Who is here and which case is open: the sidebar, and the two questions every page asks."""

from __future__ import annotations

import streamlit as st

from services.verdicts import CaseState
from ui.cached import state, workspace
from ui.parts import plain
from ui.text import t


def sidebar() -> None:
    """Case picker (in the address, so that a link opens the same case) and the name that goes into the log."""
    cases = workspace().store.cases.all()
    slugs = [c.slug for c in cases]
    titles = {c.slug: c.title for c in cases}
    with st.sidebar:
        if (begun := st.session_state.pop("begun", None)) in slugs:
            st.session_state["case"] = begun
        if st.session_state.get("case") not in slugs:
            linked = st.query_params.get("case")
            st.session_state["case"] = linked if linked in slugs else slugs[0]
            if linked and linked not in slugs:
                asked, here = plain(linked[:80]), plain(titles[slugs[0]])
                st.warning(t("There is no case '{case}' here: this is '{here}'.", case=asked, here=here))
        # Not bound by `bind`: that would put the title into the address, which another language spells otherwise.
        st.query_params["case"] = st.selectbox(t("Case"), slugs, format_func=lambda s: titles.get(s, s), key="case")
        st.text_input(
            t("Signing as"),
            key="author",
            persist_state="session",
            placeholder=t("your name"),
            help=t("Stands beside everything you save, accept or fill in."),
        )


def open_next(slug: str) -> None:
    """Open a case at the next rerun: the picker that shows it stands already in this one."""
    st.session_state["begun"] = slug


def author() -> str:
    """The name to sign with; empty when none is given."""
    return str(st.session_state.get("author") or "").strip()


def signed() -> str | None:
    """The name to sign with, or None after saying that one is needed."""
    name = author()
    if not name:
        st.error(
            t("Write your name under 'Signing as' in the sidebar first: it goes into the log."), icon=":material/badge:"
        )
        return None
    return name


def open_case(*, judged: bool = True) -> CaseState:
    """The case that is chosen, as it stands now, judged today; without that where the page judges it at its end."""
    slug = st.session_state.get("case") or workspace().store.cases.all()[0].slug
    return state(slug, judged=judged)


def taken_proposals(slug: str) -> tuple[str, ...]:
    """Proposals that were taken into the draft of a case's plan and are not stored with it yet."""
    return tuple(st.session_state.get(f"taken-{slug}", ()))


def take_proposal(slug: str, proposal: str) -> None:
    """Take a proposal into the draft of a case's plan; the plan stores it when it is saved."""
    st.session_state[f"taken-{slug}"] = tuple(dict.fromkeys((*taken_proposals(slug), proposal)))
