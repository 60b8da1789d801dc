"""Search and filters of the decision log; the address keeps them, so that a link shows the same list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from decisions.record import Adr, Status
from services.adr_search import Hit, Wanted, choices, found_in, near_ids, today
from services.workspace import Workspace
from ui.text import t


class Filter(NamedTuple):
    """One filter: its name in the address, its label, and what can be chosen."""

    name: str
    label: str
    options: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its place in the session."""
        return f"log-{self.name}"

    def chosen(self) -> str:
        """What is chosen; empty for everything."""
        return str(st.session_state.get(self.key) or "")


WAITING = ("fired", "near", "due")


def searched(ws: Workspace, adrs: Sequence[Adr]) -> tuple[Hit, ...]:
    """The decisions that pass what is asked for, and how many of how many they are."""
    found = choices(adrs)
    filters = (
        Filter("status", t("Status"), tuple(s.value for s in Status)),
        Filter("waiting", t("Waiting"), WAITING),
        Filter("tag", t("Tag"), found.tags),
        Filter("owner", t("Owner of a condition"), found.owners),
        Filter("year", t("Decided in"), tuple(str(y) for y in found.years)),
    )
    words = Filter("q", t("Search"), ())
    for f in (words, *filters):
        _from_address(f)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(words.label, key=words.key, type="search", width=420,
                      placeholder=t('words, or "a phrase"'), icon=":material/search:")  # fmt: skip
        active = [t(f.chosen()) for f in filters if f.chosen()]
        label = ": ".join((t("Filter"), ", ".join(active))) if active else t("Filter")
        with st.popover(label, icon=":material/filter_alt:", type="primary" if active else "secondary"):
            for f in filters:
                st.selectbox(f.label, ["", *f.options], key=f.key, format_func=lambda o: t(o) if o else t("all"))
    for f in (words, *filters):
        _into_address(f)
    status, waiting, tag, owner, year = (f.chosen() or None for f in filters)
    wanted = Wanted(
        words.chosen(), status=Status(status) if status else None, tag=tag, owner=owner,
        flips="fired" if waiting == "fired" else "near" if waiting == "near" else None,
        due=today() if waiting == "due" else None, year=int(year) if year else None,
    )  # fmt: skip
    hits = found_in(adrs, wanted, near_ids(ws) if waiting == "near" else frozenset())
    if wanted != Wanted():
        st.caption(t("{n} of {all} decisions", n=f"{len(hits):,}", all=f"{len(adrs):,}"))
    return hits


def asked_words() -> str:
    """The words that are searched for now."""
    return str(st.session_state.get("log-q") or "")


def _from_address(f: Filter) -> None:
    """Begin with what a link asks for; what is not there, as a tag that nobody uses any more, asks for nothing."""
    if f.key not in st.session_state:
        linked = st.query_params.get(f.name, "")
        st.session_state[f.key] = linked if not f.options or linked in f.options else ""
    elif f.options and st.session_state[f.key] not in ("", *f.options):
        st.session_state[f.key] = ""


def _into_address(f: Filter) -> None:
    if f.chosen():
        st.query_params[f.name] = f.chosen()
    else:
        st.query_params.pop(f.name, None)
