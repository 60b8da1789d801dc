"""Decision: the record prefilled from the case, the conditions that would flip it, and who decides."""

from __future__ import annotations

import streamlit as st

from decisions.flip_condition import FlipCondition
from decisions.lint import definition_of_done, lint
from decisions.record import AdrText, Status
from planner.errors import ConflictError
from planner.frozen import sha256_of
from services.adr_form import flips_from, text_from
from services.decisions import (
    Opened,
    accept,
    begin_draft,
    merge_with_stored,
    open_adr,
    propose_draft,
    reject,
    save,
)
from services.exporting import export_markdown
from ui.cached import workspace
from ui.flip_forms import edited_conditions, new_condition
from ui.merge_view import came_from_them, chosen_sides
from ui.opinions_view import opinions
from ui.parts import flash, go_to, head, next_step, plain, short, shown_errors, state_badge
from ui.record_form import record_form
from ui.session import author, open_case, signed
from ui.text import t

ws = workspace()
state = open_case()
case = state.case

head("decision", t("What is decided, why, by whom, and what would re-open it."))


def begin(supersedes: str | None = None) -> None:
    """Begin a draft and open it."""
    if name := signed():
        with shown_errors():
            draft = begin_draft(ws, case.id, name, supersedes=supersedes)
            st.session_state["open-adr"] = draft.adr.id
            flash(t("A draft is begun, prefilled from what is known."))
            st.rerun()


under_way = [a for a in state.adrs if a.status in (Status.DRAFT, Status.PROPOSED)]
standing = [a for a in state.adrs if a.status is Status.ACCEPTED]

for adr in standing:
    st.markdown(f"{state_badge(adr.status)} **{plain(short(adr))}**")
    drafted = next((a for a in under_way if adr.id in a.supersedes), None)
    with st.container(horizontal=True, vertical_alignment="center"):
        if drafted:
            said = t("Under way to supersede it: {title}", title=plain(drafted.title))
            st.markdown(f"{said} {state_badge(drafted.status)}")
        elif st.button(t("Begin a draft that supersedes it"), icon=":material/redo:", key=f"supersede-{adr.id}"):
            begin(supersedes=adr.id)

if not under_way:
    if not standing:
        st.markdown(
            t("No decision is drafted. A draft takes the options, doubts, conditions and evidence of this case.")
        )
        if state.requirements is None:
            go_to("requirements", t("Write the requirements first:"))
        elif st.button(t("Begin a draft"), type="primary", icon=":material/edit_note:"):
            begin()
    next_step("decision", primary=bool(standing))
    st.stop()

titles = {a.id: short(a) for a in under_way}
ids = list(titles)
wanted = st.session_state.get("open-adr")
adr_id = st.selectbox(
    t("Draft or proposal"), ids, index=ids.index(wanted) if wanted in ids else len(ids) - 1, format_func=titles.get,
    key=f"adr-{case.slug}-{sha256_of(titles)[:8]}", label_visibility="collapsed" if len(ids) == 1 else "visible",
)  # fmt: skip
st.session_state["open-adr"] = adr_id

# What was opened stays with the screen: a save by somebody else is found at the next save, and nothing typed is lost.
# The form is keyed by the version it was filled from; an edit that leaves the text alone (a comment, an opinion) only
# moves the version that the next save is held against.
slot, form = f"opened-{adr_id}", f"form-{adr_id}"
opened: Opened | None = st.session_state.get(slot)
fresh = open_adr(ws, adr_id)
if (
    opened is None
    or opened.adr.status is not fresh.adr.status
    or f"title-{adr_id}-{st.session_state.get(form)}" not in st.session_state
):
    opened = fresh
    st.session_state[form] = fresh.version
elif opened.adr.text == fresh.adr.text:
    opened = fresh
st.session_state[slot] = opened
adr, version = opened
key = f"{adr_id}-{st.session_state[form]}"
proposed = adr.status is Status.PROPOSED

st.markdown(state_badge(adr.status))
for old in adr.supersedes:
    superseded = next((a for a in state.adrs if a.id == old), None)
    if superseded:
        st.info(t("Once accepted, this supersedes {name}.", name=plain(short(superseded))), icon=":material/redo:")

written, flips_tab, done_tab, text_tab = st.tabs(
    [t("Record"), t("Flip conditions"), t("Checklist"), t("Markdown")]
)  # fmt: skip


with written:
    record = record_form(adr, key)

with flips_tab:
    findings = lint(adr, state.evidence, state.context_of(adr))
    for finding in findings:
        show = st.error if finding.severity == "error" else st.warning
        show(f"`{finding.rule}` {plain(finding.sentence)}")
    rows = edited_conditions(adr, key)


def typed(extra: tuple[FlipCondition, ...] = ()) -> AdrText:
    """All that stands on this page, and conditions that are added to it; raises InputError."""
    return text_from(adr, **record, conditions=(*flips_from(adr.conditions, rows), *extra))


def store(text: AdrText, name: str, at: Opened) -> Opened:
    """Save what was typed; on a conflict the screen keeps it and says what the other one changed."""
    try:
        saved = save(ws, at, text, name)
    except ConflictError:
        st.session_state[f"conflict-{adr_id}"] = True
        st.rerun()
    st.session_state[slot] = saved
    st.session_state[form] = saved.version
    st.session_state.pop(f"conflict-{adr_id}", None)
    return saved


with flips_tab, st.expander(t("Add a condition"), icon=":material/add:", expanded=not adr.conditions):
    added = new_condition(ws, state, adr, key)
    if (
        added and st.button(t("Add it and save"), icon=":material/add:", key=f"add-{key}") and (name := signed())
    ):  # fmt: skip
        with shown_errors():
            store(typed((added,)), name, opened)
            flash(t("'{id}' is added.", id=plain(added.id)))
            st.rerun()

with done_tab:
    checks = definition_of_done(adr, state.evidence, state.context_of(adr))
    st.markdown(t("{n} of {all} done, as last saved.", n=sum(c.done for c in checks), all=len(checks)))
    for check in checks:
        icon = ":green[:material/check_box:]" if check.done else ":red[:material/check_box_outline_blank:]"
        st.markdown(f"{icon} {plain(check.sentence)}")
with text_tab:
    file, markdown = export_markdown(ws, adr_id)
    st.download_button(t("Markdown"), markdown, file_name=file, mime="text/markdown", icon=":material/download:",
                       on_click="ignore")  # fmt: skip
    st.code(markdown, language="markdown", wrap_lines=True)

with st.container(horizontal=True):
    label = t("Save the proposal") if proposed else t("Save draft")
    saving = st.button(label, icon=":material/save:", key=f"save-{key}", type="secondary" if proposed else "primary")
    proposing = not proposed and st.button(t("Propose"), icon=":material/how_to_vote:", key=f"propose-{key}")

if saving and (name := signed()):
    with shown_errors():
        store(typed(), name, opened)
        flash(t("Saved."))
        st.rerun()
if proposing and (name := signed()):
    with shown_errors():
        propose_draft(ws, adr_id, store(typed(), name, opened).version, name)
        flash(t("Proposed. From here on the record only grows; it can still be amended until it is decided."))
        st.rerun()

if st.session_state.get(f"conflict-{adr_id}"):
    with st.container(border=True), shown_errors():
        mine = typed()
        merging = merge_with_stored(ws, opened, mine)
        came_from_them(merging)
        sides = chosen_sides(merging, f"{key}-{merging.stored.version}")
        with st.container(horizontal=True):
            if st.button(t("Save both"), type="primary", icon=":material/merge:", key=f"both-{key}") and (
                name := signed()
            ):
                merged = merge_with_stored(ws, opened, mine, sides)
                store(merged.merged.text, name, merging.stored)
                flash(t("Saved, with what {who} changed.", who=plain(merging.by)))
                st.rerun()
            if st.button(t("Show theirs, drop mine"), key=f"theirs-{key}"):
                st.session_state[slot] = fresh
                st.session_state[form] = fresh.version
                st.session_state.pop(f"conflict-{adr_id}", None)
                st.rerun()

if proposed:
    with st.container(border=True):
        st.markdown(f"**{t('Decide')}**")
        opinions(ws, adr)
        missing = [c for c in checks if not c.done]
        if missing:
            st.markdown(t("Before it can be accepted: {what}", what=plain(" ".join(c.sentence for c in missing))))
        who = author()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            label = t("Accept as {who}", who=who) if who else t("Accept")
            if st.button(label, type="primary", icon=":material/verified:", disabled=bool(missing),
                         key=f"accept-{key}") and (name := signed()):  # fmt: skip
                with shown_errors():
                    decided_now = accept(ws, adr_id, name, seen=version)
                    flash(t("{name} is accepted by {who}.", name=decided_now.name, who=plain(name)))
                    st.rerun()
            why = st.text_input(t("Reason, if rejected"), key=f"why-{adr_id}", width=360)
            if st.button(t("Reject"), icon=":material/thumb_down:", key=f"reject-{key}") and (name := signed()):
                with shown_errors():
                    reject(ws, adr_id, name, why)
                    flash(t("Rejected, with the reason kept."))
                    st.rerun()

next_step("decision", primary=False)
