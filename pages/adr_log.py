"""ADR log: what was decided, what would change it today, and everything that happened to it since."""

from __future__ import annotations

import streamlit as st

from decisions.lint import speed_warnings
from decisions.record import Status
from planner.frozen import sha256_of
from services.decisions import answer_fire, comment
from services.verdicts import CaseState, judge_adr
from ui.adr_files import files_section
from ui.adr_view import written_part
from ui.cached import state as read_state
from ui.cached import workspace
from ui.edit_words import history_line
from ui.flip_history import verdicts_in_time
from ui.flip_today import conditions_today
from ui.parts import (
    flash,
    go_to,
    head,
    next_step,
    plain,
    short,
    shown_errors,
    state_badge,
)
from ui.session import open_case, signed
from ui.text import t

ws = workspace()
state = open_case()

head("adr-log", t("The record only grows. New evidence is held against every accepted decision."))

everywhere = st.toggle(t("All cases"), key="adr-all")
cases = {c.id: c for c in ws.store.cases.all()}
adrs = {a.id: a for a in (ws.store.adrs.all() if everywhere else state.adrs)}
if not adrs:
    go_to("decision", t("No decision is recorded yet. A first draft is prefilled from the case:"))
    next_step("adr-log")
    st.stop()


def linked(id: str) -> str:
    """Another ADR as it is called, by its id."""
    return plain(short(ws.store.adrs.get(id)))


newest_first = list(reversed(adrs.values()))
listed = [
    f"| {t('Status')} | {t('Decision')} | {t('Case')} | {t('Decided')} | {t('Waiting')} |",
    "|---|---|---|---|---|",
]
for adr in newest_first:
    by = f"{plain(adr.accepted_by)}, {adr.accepted_at:%Y-%m-%d}" if adr.accepted_at else "–"
    waiting = state_badge("fired") if adr.fires else "–"
    listed.append(
        f"| {state_badge(adr.status)} | {plain(short(adr))} | {plain(cases[adr.case].title)} | {by} | {waiting} |"
    )
st.markdown("\n".join(listed))

# What waits for an answer comes first, then what stands, then what is under way.
ranked = sorted(
    newest_first,
    key=lambda a: (not a.fires, a.status is not Status.ACCEPTED, a.status not in (Status.PROPOSED, Status.DRAFT)),
)
titles = {a.id: short(a) for a in ranked}
ids = list(titles)
linked_to = st.query_params.get("adr")  # a link to one record, by its id: titles change
adr_id = st.selectbox(
    t("Look at"), ids, index=ids.index(linked_to) if linked_to in ids else 0, format_func=titles.get,
    key=f"adr-{sha256_of(titles)[:8]}",
)  # fmt: skip
st.query_params["adr"] = adr_id
adr = adrs[adr_id]
of_case: CaseState = state if adr.case == state.case.id else read_state(adr.case)
flips = judge_adr(of_case, adr)

st.header(plain(short(adr)), divider="gray")
st.markdown(f"{state_badge(adr.status)} **{plain(adr.headline)}**")
for warning in speed_warnings(adr, of_case.evidence, of_case.context_of(adr)):
    st.warning(plain(warning), icon=":material/rule:")
for old in adr.supersedes:
    verb = t("Supersedes") if adr.status is Status.ACCEPTED else t("Would supersede")
    st.markdown(f":material/redo: {verb}: {linked(old)}")
if adr.superseded_by:
    st.markdown(f":material/redo: {t('Superseded by')}: {linked(adr.superseded_by)}")
successors = [a for a in of_case.adrs if adr_id in a.supersedes and a.status in (Status.DRAFT, Status.PROPOSED)]
for successor in successors:
    go_to("decision", t("Under way to supersede it: {title}", title=plain(successor.title)))

for fire in adr.fires:
    with st.container(border=True):
        st.markdown(
            f"{state_badge('fired')} **{t('{id} fired on {at}', id=plain(fire.condition), at=f'{fire.at:%Y-%m-%d}')}**"
        )
        st.markdown(plain(fire.sentence))
        then = adr.condition(fire.condition).consequence
        if then:
            st.markdown(f"**{t('Agreed beforehand')}:** {plain(then)}")
        reason = st.text_input(t("Why does it stand, or why is it re-opened?"), key=f"reason-{adr_id}-{fire.condition}")
        with st.container(horizontal=True):
            if st.button(
                t("Re-open: begin the superseding draft"), type="primary", icon=":material/redo:",
                key=f"reopen-{adr_id}-{fire.condition}",
            ) and (name := signed()):  # fmt: skip
                with shown_errors():
                    draft = answer_fire(ws, adr_id, fire.condition, name, reason, reopen=True)
                    st.session_state["open-adr"] = draft.id if draft else None
                    flash(t("The superseding draft is begun. The old decision stands until it is accepted."))
                    st.switch_page("pages/decision.py")
            if st.button(t("It stands"), icon=":material/shield:", key=f"stands-{adr_id}-{fire.condition}") and (
                name := signed()
            ):
                with shown_errors():
                    answer_fire(ws, adr_id, fire.condition, name, reason, reopen=False)
                    flash(t("It stands; the reason is in the log."))
                    st.rerun()


today, record, history, verdicts, integrity = st.tabs(
    [t("Conditions today"), t("Record"), t("History"), t("Verdicts in time"), t("Integrity and export")]
)
with today:
    conditions_today(ws, of_case, adr, flips)

with record:
    written_part(adr)

edits = ws.store.adrs.edits(adr_id)
with history:
    if not edits:
        st.markdown(t("A draft has no history; it begins when it is proposed."))
    for edit in reversed(edits):
        st.markdown(history_line(edit, linked))
    if edits:
        with st.form(f"comment-{adr_id}", border=False, clear_on_submit=True):
            words = st.text_input(t("Comment"), key=f"words-{adr_id}")
            if st.form_submit_button(t("Add"), icon=":material/comment:") and (name := signed()):
                with shown_errors():
                    comment(ws, adr_id, name, words)
                    flash(t("The comment is in the log."))
                    st.rerun()

with verdicts:
    verdicts_in_time(ws, adr)

with integrity:
    chain_head = ws.store.adrs.head(adr_id)
    if edits:
        st.markdown(f"{t('Last hash of this record')}: `{chain_head}`")
        st.caption(t("Each edit covers the one before it, so a change is found. This is no signature."))
    known = st.text_input(t("Hash from an earlier export, to compare"), key=f"known-{adr_id}",
                          placeholder=t("the line 'head' of the exported file"))  # fmt: skip
    if st.button(t("Check all records"), icon=":material/verified_user:", key="verify"):
        broken = ws.store.adrs.verify({adr_id: known.strip()} if known.strip() else None)
        for link in broken:
            st.error(f"{linked(link.adr)}: {plain(t('edit {n} {why}', n=link.seq, why=link.why))}",
                     icon=":material/gpp_bad:")  # fmt: skip
        if not broken:
            st.success(t("Every record is whole."), icon=":material/verified_user:")
    files_section(ws, adr)

next_step("adr-log")
