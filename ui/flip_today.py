"""The flip conditions of a decision as they stand today."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from decisions.flips import FlipVerdict
from decisions.record import Adr, Status
from planner.metrics import quantity
from services.verdicts import CaseState
from services.workspace import Workspace
from ui.adr_view import in_production
from ui.parts import judged, nearness, plain, state_badge
from ui.text import t


def conditions_today(ws: Workspace, of_case: CaseState, adr: Adr, flips: Sequence[FlipVerdict]) -> None:
    """Each condition with its state, the room that is left and who looks after it."""
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
