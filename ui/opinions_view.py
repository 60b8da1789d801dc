"""Who approves of a decision and who objects, and the form to say so."""

from __future__ import annotations

import streamlit as st

from decisions.record import Adr, Opinion, Status
from planner.frozen import sha256_of
from services.opinions import answer_objection, approve, object_to, withdraw
from services.workspace import Workspace
from ui.parts import flash, plain, shown_errors
from ui.session import author, signed
from ui.text import t


def opinion_line(o: Opinion) -> str:
    """One opinion as a line: who, for or against, why, and what was answered."""
    icon = ":green[:material/thumb_up:]" if o.stance == "approves" else ":red[:material/front_hand:]"
    verb = t("approves") if o.stance == "approves" else t("objects")
    earlier = f" ({t('of the text before it was amended')})" if o.outdated else ""
    why = f": {plain(o.reason)}" if o.reason else ""
    answer = f"  \n{t('{who} answers', who=plain(o.answered_by))}: {plain(o.answer)}" if o.answer else ""
    return f"{icon} **{plain(o.author)}** {verb}, {o.at:%Y-%m-%d}{earlier}{why}{answer}"


def opinions(ws: Workspace, adr: Adr) -> None:
    """What people said by name, and one's own word while the decision can still be spoken to."""
    for o in adr.opinions:
        st.markdown(opinion_line(o))
    if adr.status not in (Status.PROPOSED, Status.ACCEPTED):
        return
    waiting = [o.author for o in adr.opinions if o.stands_in_the_way]
    said_before = author() in {o.author for o in adr.opinions}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # Empty again once something is said.
        said = sha256_of([o.model_dump(mode="json") for o in adr.opinions])[:8]
        reason = st.text_input(t("Reason, or answer"), key=f"opinion-{adr.id}-{said}", width=360)
        actions = [
            (t("Approve"), ":material/thumb_up:", lambda name: approve(ws, adr.id, name, reason)),
            (t("Object"), ":material/front_hand:", lambda name: object_to(ws, adr.id, name, reason)),
        ]
        if said_before:
            actions.append((t("Take back"), ":material/undo:", lambda name: withdraw(ws, adr.id, name, reason)))
        for objector in waiting:
            label = t("Answer {who}", who=plain(objector))
            actions.append((label, ":material/reply:",
                            lambda name, to=objector: answer_objection(ws, adr.id, to, name, reason)))  # fmt: skip
        for label, icon, act in actions:
            if st.button(label, icon=icon, key=f"{icon}-{label}-{adr.id}") and (name := signed()):
                with shown_errors():
                    act(name)
                    flash(t("It is in the log."))
                    st.rerun()
