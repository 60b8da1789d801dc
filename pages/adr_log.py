"""ADR log: what was decided, what would change it today, and everything that happened to it since."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from decisions.edits import ConditionFired, Edit, FireConfirmed
from decisions.lint import speed_warnings
from decisions.record import Status
from planner.frozen import sha256_of
from planner.metrics import quantity
from services.decisions import answer_fire, comment
from services.exporting import export_all, export_markdown
from services.verdicts import CaseState, judge_adr
from ui.adr_view import in_production, written_part
from ui.cached import state as read_state
from ui.cached import workspace
from ui.parts import (
    flash,
    go_to,
    head,
    judged,
    nearness,
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


def what_happened(edit: Edit) -> str:
    """An edit in a few words beside its kind."""
    if isinstance(edit, ConditionFired):
        return plain(edit.fire.sentence)
    if isinstance(edit, FireConfirmed):
        answer = t("re-opened") if edit.answer == "reopen" else t("it stands")
        return f"{plain(edit.condition)}: {answer}"
    if edit.kind == "comment":
        return plain(edit.text)
    if edit.kind == "accepted":
        return t("as ADR-{n:04d}", n=edit.number)
    if edit.kind in ("condition_added", "condition_retired"):
        condition = edit.condition
        return plain(condition if isinstance(condition, str) else condition.in_words())
    if edit.kind == "superseded":
        return linked(edit.by)
    return ""


today, record, history, verdicts, integrity = st.tabs(
    [t("Conditions today"), t("Record"), t("History"), t("Verdicts in time"), t("Integrity and export")]
)
with today:
    if not flips:
        st.markdown(t("It has no flip condition: nothing re-opens it."))
    for v in flips:
        flip = adr.condition(v.condition)
        with st.container(border=True):
            st.markdown(f"{state_badge(v.state)} **{plain(v.condition)}** `{flip.in_words()}`")
            st.markdown(judged(v))
            near = nearness(v.relative_distance)
            if near is not None and v.distance is not None:
                room = quantity(abs(v.distance), v.unit)
                fired = v.state == "fired"
                st.progress(near, text=t("{x} beyond", x=room) if fired else t("{x} of room before it fires", x=room))
            when = flip.recheck_on.isoformat() if flip.recheck_on else t("no date")
            late = f" :red[{t('overdue')}]" if v.overdue else ""
            st.caption(
                t("Fires when it {side}. Owner: {owner}. Re-check: {when}", side=t(flip.fires_when),
                  owner=plain(flip.owner) or t("nobody"), when=when) + late
                + (f" · {t('Then')}: {plain(flip.consequence)}" if flip.consequence else "")
            )  # fmt: skip
    for flip in adr.conditions:
        if flip.retired:
            st.caption(f"{t('Retired')}: {plain(flip.id)} `{flip.in_words()}`")
    if adr.status is Status.ACCEPTED:
        in_production(ws, of_case, adr)

with record:
    written_part(adr)

edits = ws.store.adrs.edits(adr_id)
with history:
    if not edits:
        st.markdown(t("A draft has no history; it begins when it is proposed."))
    for edit in reversed(edits):
        words = [
            f"{edit.at:%Y-%m-%d %H:%M} UTC", f"**{plain(edit.author)}**", t(edit.kind.replace("_", " ")),
            what_happened(edit), t("because {why}", why=plain(edit.reason)) if edit.reason else "",
        ]  # fmt: skip
        st.markdown("- " + " · ".join(w for w in words if w))
    if edits:
        with st.form(f"comment-{adr_id}", border=False, clear_on_submit=True):
            words = st.text_input(t("Comment"), key=f"words-{adr_id}")
            if st.form_submit_button(t("Add"), icon=":material/comment:") and (name := signed()):
                with shown_errors():
                    comment(ws, adr_id, name, words)
                    flash(t("The comment is in the log."))
                    st.rerun()

with verdicts:
    changes = ws.store.verdicts.history(adr.case, adr=adr_id)
    if not changes:
        st.markdown(t("Conditions are judged from the acceptance on, whenever evidence arrives."))
    else:
        st.dataframe(
            pd.DataFrame(
                [
                    {
                        t("When (UTC)"): f"{j.at:%Y-%m-%d %H:%M:%S}", t("Condition"): j.condition,
                        t("State"): t(j.state), t("Why"): j.sentence,
                    }
                    for j in reversed(changes)
                ]
            ),
            hide_index=True, alt=t("How the conditions stood in time, newest first"),
        )  # fmt: skip

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
    st.subheader(t("Markdown"))
    file, markdown = export_markdown(ws, adr_id)
    st.download_button(t("Download {file}", file=file), markdown, file_name=file, mime="text/markdown",
                       icon=":material/download:", on_click="ignore", key=f"md-{adr_id}")  # fmt: skip
    folder = st.text_input(t("Write all numbered records of this case into a folder"), key="export-folder",
                           placeholder="docs/decisions")  # fmt: skip
    if st.button(t("Write"), icon=":material/folder:", disabled=not folder.strip(), key="export"):
        with shown_errors():
            paths = export_all(ws, Path(folder.strip()).expanduser(), adr.case)
            st.success(t("{n} files written: {names}", n=len(paths), names=plain(", ".join(p.name for p in paths))))

next_step("adr-log")
