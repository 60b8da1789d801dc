"""Decision: the record prefilled from the case, the conditions that would flip it, and who decides."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from decisions.flips import TEMPLATES, from_template
from decisions.lint import definition_of_done, lint
from decisions.record import Action, AdrText, FlipCondition, Status
from planner.errors import ConflictError, FliplineError
from planner.frozen import sha256_of
from services.adr_form import differences, flip_from, flip_rows, flips_from, lines, text_from
from services.decisions import (
    Opened,
    accept,
    begin_draft,
    open_adr,
    preview,
    propose_draft,
    reject,
    save,
)
from services.exporting import export_markdown
from ui.cached import workspace
from ui.parts import flash, go_to, head, judged, kind_badge, next_step, plain, short, shown_errors, state_badge
from ui.session import author, open_case, signed
from ui.text import t
from ui.words import in_words

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
            st.markdown(t("A draft that would supersede it is under way: {title}", title=plain(drafted.title)))
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
slot = f"opened-{adr_id}"
opened: Opened | None = st.session_state.get(slot)
fresh = open_adr(ws, adr_id)
if (
    opened is None
    or opened.adr.status is not fresh.adr.status
    or f"title-{adr_id}-{opened.version}" not in st.session_state
):
    opened = fresh
    st.session_state[slot] = opened
adr, version = opened
key = f"{adr_id}-{version}"
proposed = adr.status is Status.PROPOSED

st.markdown(state_badge(adr.status))
for old in adr.supersedes:
    superseded = next((a for a in state.adrs if a.id == old), None)
    if superseded:
        st.info(t("Once accepted, this supersedes {name}.", name=plain(short(superseded))), icon=":material/redo:")

written, flips_tab, done_tab, text_tab = st.tabs(
    [t("Record"), t("Flip conditions"), t("Checklist"), t("Markdown")]
)  # fmt: skip


def line(label: str, value: str, name: str, **more: object) -> str:
    return st.text_input(label, value, key=f"{name}-{key}", persist_state="session", **more)


def area(label: str, value: str, name: str, height: int = 110, **more: object) -> str:
    return st.text_area(label, value, key=f"{name}-{key}", height=height, persist_state="session", **more)


with written:
    title = line(t("Title"), adr.title, "title")
    headline = line(t("Headline: one sentence for people"), adr.headline, "headline")
    context = area(t("Context and problem"), adr.context, "context", 160)
    left, right = st.columns(2)
    with left:
        drivers = area(t("Drivers, one a line"), "\n".join(adr.drivers), "drivers", 190)
    with right:
        option_titles = ["", *(o.title for o in adr.options)]
        chosen = st.selectbox(
            t("Chosen option"), option_titles,
            index=option_titles.index(adr.chosen) if adr.chosen in option_titles else 0,
            format_func=lambda o: o or t("none yet"), key=f"chosen-{key}", persist_state="session",
        )  # fmt: skip
        outcome = area(t("… because"), adr.outcome, "outcome", 110)
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
    confirmation = area(t("Confirmation: how it is checked"), adr.confirmation, "confirmation", 140)
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
        st.markdown(f"- {kind_badge(piece.kind)} {plain(piece.says)}")
    absent = line(
        t("If there is none, say why"), adr.evidence_absent, "absent",
        placeholder=t("Nothing was measured yet; the choice rests on documents."),
    )  # fmt: skip

with flips_tab:
    findings = lint(adr, state.evidence, state.context_of(adr))
    for finding in findings:
        show = st.error if finding.severity == "error" else st.warning
        show(f"`{finding.rule}` {plain(finding.sentence)}")
    if adr.conditions:
        table = st.data_editor(
            pd.DataFrame(flip_rows(adr.conditions)).astype({"recheck_on": "datetime64[ns]"}),
            key=f"flips-{key}", num_rows="delete", hide_index=True, disabled=["id"], row_height=56,
            column_config={
                "id": st.column_config.TextColumn(t("Id"), width="medium"),
                "line": st.column_config.TextColumn(t("Condition, or what is judged by hand"), width="medium"),
                "fires_when": st.column_config.SelectboxColumn(
                    t("Fires when it"), options=["holds", "fails"], required=True, width="small"
                ),
                "owner": st.column_config.TextColumn(t("Owner")),
                "recheck_on": st.column_config.DateColumn(t("Re-check"), format="YYYY-MM-DD"),
                "action": st.column_config.SelectboxColumn(
                    t("Action"), options=[a.value for a in Action], required=True
                ),
                "consequence": st.column_config.TextColumn(t("Then"), width="large"),
                "retired": st.column_config.CheckboxColumn(t("Retired"), width="small"),
            },
            alt=t("Flip conditions of this decision, to edit"),
        )  # fmt: skip
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        st.caption(t("Select rows to remove them. Changes count when you save."))
    else:
        rows = []
        st.markdown(t("Nothing would re-open this decision yet. Add what would."))


def typed(extra: tuple[FlipCondition, ...] = ()) -> AdrText:
    """All that stands on this page, and conditions that are added to it; raises InputError."""
    return text_from(
        adr,
        {
            "title": title, "headline": headline, "context": context, "drivers": lines(drivers),
            "chosen": chosen, "outcome": outcome, "confirmation": confirmation, "evidence_absent": absent,
            "review_on": review,
        },
        good=good, neutral=neutral, bad=bad, decided=decided, consulted=consulted, informed=informed,
        conditions=(*flips_from(adr.conditions, rows), *extra),
    )  # fmt: skip


def store(text: AdrText, name: str) -> Opened:
    """Save what was typed; on a conflict the screen keeps it and says what the other one changed."""
    try:
        saved = save(ws, opened, text, name)
    except ConflictError:
        st.session_state[f"conflict-{adr_id}"] = True
        raise
    st.session_state[slot] = saved
    st.session_state.pop(f"conflict-{adr_id}", None)
    return saved


with flips_tab, st.expander(t("Add a condition"), icon=":material/add:", expanded=not adr.conditions):
    how = st.segmented_control(
        t("How"), ["template", "line", "hand"], default="template", required=True, key=f"how-{key}",
        format_func={"template": t("From a template"), "line": t("Write a condition"), "hand": t("Judged by hand")}.get,
        label_visibility="collapsed",
    )  # fmt: skip
    candidates = [c.id for c in state.plan.candidates] if state.plan else []
    points = [p.name for p in state.plan.load_points] if state.plan else []
    a, b = st.columns(2)
    owner = a.text_input(t("Owner"), author(), key=f"new-owner-{key}")
    recheck = b.date_input(t("Re-check on"), adr.review_on, key=f"new-recheck-{key}", format="YYYY-MM-DD")
    added: FlipCondition | None = None
    problem = ""
    if how == "template":
        by_id = {x.id: x for x in TEMPLATES}
        free = [x for x in by_id if x not in {c.id for c in adr.conditions}]
        chosen_template = st.selectbox(
            t("Template"), free, format_func=lambda i: t(by_id[i].title), key=f"new-template-{key}"
        )
        needs = by_id[chosen_template].needs if chosen_template else ()
        candidate = st.selectbox(t("Candidate"), candidates, key=f"new-cand-{key}") if "candidate" in needs else None
        point = st.selectbox(t("Load point"), points, key=f"new-point-{key}") if "point" in needs else None
        try:
            if chosen_template:
                added = from_template(
                    chosen_template, candidate=candidate, point=point, owner=owner, recheck_on=recheck
                )
        except FliplineError as e:
            problem = str(e)
    else:
        a, b, c = st.columns([2, 1, 1])
        new_id = a.text_input(t("Short id"), placeholder="ttft-too-slow", key=f"new-id-{key}")
        fires = b.selectbox(t("Fires when it"), ["fails", "holds"], key=f"new-fires-{key}", disabled=how == "hand")
        action = c.selectbox(t("Action"), [x.value for x in Action], key=f"new-action-{key}")
        words = st.text_input(
            t("Condition") if how == "line" else t("What a person looks at"), key=f"new-line-{how}-{key}",
            placeholder="vllm: ttft p95 <= 2 s at peak near 10 %" if how == "line" else t("The licence changes"),
        )  # fmt: skip
        then = st.text_input(t("Then"), key=f"new-then-{key}")
        if new_id and words:
            try:
                added = flip_from(
                    new_id, words, manual=how == "hand", fires_when=fires if how == "line" else "holds", owner=owner,
                    recheck_on=recheck, action=action, consequence=then,
                )  # fmt: skip
            except FliplineError as e:
                problem = str(e)
    if problem:
        st.error(plain(problem), icon=":material/error:")
    if added:
        seen = preview(ws, state, adr, added)
        st.markdown(f"{t('Today')}: {state_badge(seen.state)} {judged(seen)}")
        st.markdown(f"`{added.in_words()}` · {t('fires when it {side}', side=t(added.fires_when))} · "
                    f"{t('Then')}: {plain(added.consequence) or '–'}")  # fmt: skip
        if st.button(t("Add it and save"), icon=":material/add:", key=f"add-{key}") and (name := signed()):
            with shown_errors():
                store(typed((added,)), name)
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
        store(typed(), name)
        flash(t("Saved."))
        st.rerun()
if proposing and (name := signed()):
    with shown_errors():
        propose_draft(ws, adr_id, store(typed(), name).version, name)
        flash(t("Proposed. From here on the record only grows; it can still be amended until it is decided."))
        st.rerun()

if st.session_state.get(f"conflict-{adr_id}"):
    with st.container(border=True):
        st.markdown(f"**{t('Somebody saved this while you were writing. What you typed is still here.')}**")
        with shown_errors():
            mine = typed()
            for field, theirs in differences(mine, fresh.adr.text):
                st.markdown(f"- {plain(field.replace('_', ' '))}, {t('theirs')}: *{plain(theirs[:400])}*")
        with st.container(horizontal=True):
            if st.button(t("Show theirs, drop mine"), key=f"theirs-{key}"):
                st.session_state[slot] = fresh
                st.session_state.pop(f"conflict-{adr_id}", None)
                st.rerun()
            if st.button(t("Save mine over theirs"), key=f"mine-{key}") and (name := signed()):
                with shown_errors():
                    opened = Opened(adr, fresh.version)
                    store(typed(), name)
                    flash(t("Saved."))
                    st.rerun()

if proposed:
    with st.container(border=True):
        st.markdown(f"**{t('Decide')}**")
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
