"""Flip conditions of a decision: the table to edit, and the form that makes one, with what it says today."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pandas as pd
import streamlit as st

from decisions.flip_condition import Action, FlipCondition
from decisions.flips import TEMPLATES, from_template, template
from decisions.record import Adr
from planner.errors import FliplineError
from services.adr_form import flip_from, flip_rows
from services.decisions import preview
from services.prefill import RECHECK_AFTER_DAYS
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.flip_gauge import condition_words, gauge
from ui.parts import judged, plain, state_badge
from ui.session import author
from ui.text import t

NEAR_MOST_PERCENT = 50.0


def edited_conditions(adr: Adr, key: str) -> list[dict[str, object]]:
    """Show the table; its rows as they stand on the screen."""
    if not adr.conditions:
        st.markdown(t("Nothing would re-open this decision yet. Add what would."))
        return []
    table = st.data_editor(
        pd.DataFrame(flip_rows(adr.conditions)).astype({"recheck_on": "datetime64[ns]", "near_percent": "float"}),
        key=f"flips-{key}", num_rows="delete", hide_index=True, disabled=["id"], row_height=56,
        column_config={
            "id": st.column_config.TextColumn(t("Id"), width="medium"),
            "line": st.column_config.TextColumn(t("Condition, or what is judged by hand"), width=310),
            "fires_when": st.column_config.SelectboxColumn(
                t("Fires when it"), options=["holds", "fails"], required=True, width=140
            ),
            "near_percent": st.column_config.NumberColumn(
                t("Near, %"), min_value=0.0, max_value=NEAR_MOST_PERCENT, format="%g", width=110,
                help=t("Within this share of the limit it is shown as near, before it fires."),
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
    rows: list[dict[str, object]] = table.astype(object).where(table.notna(), None).to_dict("records")
    st.caption(t("Select rows to remove them. Changes count when you save."))
    return rows


class _Begun(NamedTuple):
    """What a form starts from; `key` changes with it, so that the fields show what was chosen."""

    key: str
    id: str = ""
    line: str = ""
    by_hand: bool = False
    fires_when: str = "fails"
    near_percent: float = 0.0
    action: str = Action.REOPEN.value
    consequence: str = ""


def new_condition(ws: Workspace, state: CaseState, adr: Adr, key: str) -> FlipCondition | None:
    """Show the form and what the condition says today; the condition once it can be read, else what is wrong."""
    how = st.segmented_control(
        t("How"), ["template", "line", "hand"], default="template", required=True, key=f"how-{key}",
        format_func={"template": t("From a template"), "line": t("Write a condition"), "hand": t("Judged by hand")}.get,
        label_visibility="collapsed",
    )  # fmt: skip
    begun = _of_template(state, adr, key) if how == "template" else _free(key, by_hand=how == "hand")
    try:
        added = _fields(adr, begun) if begun else None
    except FliplineError as e:
        st.error(plain(str(e)), icon=":material/error:")
        return None
    if added:
        _shown(ws, state, adr, added)
    return added


def _of_template(state: CaseState, adr: Adr, key: str) -> _Begun | None:
    titles = {x.id: x.title for x in TEMPLATES if x.id not in {c.id for c in adr.conditions}}
    if not titles:
        st.markdown(t("Every template is used. Write one."))
        return None
    a, b, c = st.columns([2, 1, 1])
    chosen = a.selectbox(t("Template"), list(titles), format_func=lambda i: t(titles[i]), key=f"new-template-{key}")
    needs = template(chosen).needs
    candidates = [x.id for x in state.plan.candidates] if state.plan else []
    points = [x.name for x in state.plan.load_points] if state.plan else []
    candidate = b.selectbox(t("Candidate"), candidates, key=f"new-cand-{key}") if "candidate" in needs else None
    point = c.selectbox(t("Load point"), points, key=f"new-point-{key}") if "point" in needs else None
    try:
        (row,) = flip_rows([from_template(chosen, candidate=candidate, point=point)])
    except FliplineError as e:  # a plan without candidates or points
        st.error(plain(str(e)), icon=":material/error:")
        return None
    margin = row["near_percent"]
    return _Begun(
        f"{chosen}-{candidate}-{point}-{key}", chosen, str(row["line"]), template(chosen).by_hand,
        str(row["fires_when"]), float(margin) if isinstance(margin, float) else 0.0, str(row["action"]),
        str(row["consequence"]),
    )  # fmt: skip


def _free(key: str, *, by_hand: bool) -> _Begun | None:
    given = st.text_input(t("Short id"), placeholder="ttft-too-slow", key=f"new-id-{key}").strip()
    return _Begun(f"{'hand' if by_hand else 'line'}-{key}", given, by_hand=by_hand)


def _fields(adr: Adr, begun: _Begun) -> FlipCondition | None:
    """The fields of one condition; raises InputError for what cannot be read."""
    key, fires, near = begun.key, begun.fires_when, 0.0
    if begun.by_hand:
        line = st.text_input(
            t("What a person looks at"), begun.line, key=f"new-hand-{key}", placeholder=t("The licence changes")
        )
    else:
        a, b, c = st.columns([3, 1, 1])
        line = a.text_input(t("Condition"), begun.line, key=f"new-line-{key}",
                            placeholder="vllm: ttft p95 <= 2 s at peak")  # fmt: skip
        sides = ["fails", "holds"]
        fires = b.selectbox(t("Fires when it"), sides, index=sides.index(fires), format_func=t, key=f"new-fires-{key}")
        near = c.number_input(
            t("Near, %"), 0.0, NEAR_MOST_PERCENT, begun.near_percent, step=5.0, format="%g", key=f"new-near-{key}",
            help=t("Within this share of the limit it is shown as near, before it fires."),
        )  # fmt: skip
    a, b, c, d = st.columns([2, 1, 1, 1])
    then = a.text_input(t("Then"), begun.consequence, key=f"new-then-{key}")
    actions = [x.value for x in Action]
    action = b.selectbox(t("Action"), actions, index=actions.index(begun.action), key=f"new-action-{key}")
    owner = c.text_input(t("Owner"), author(), key=f"new-owner-{key}")
    soon = now().date() + timedelta(days=RECHECK_AFTER_DAYS)
    recheck = d.date_input(t("Re-check on"), min(soon, adr.review_on or soon), key=f"new-recheck-{key}",
                           format="YYYY-MM-DD")  # fmt: skip
    if not begun.id or not line.strip():
        return None
    return flip_from(
        begun.id, line, manual=begun.by_hand, fires_when="holds" if begun.by_hand else fires, owner=owner,
        recheck_on=recheck, action=action, consequence=then, near_percent=near,
    )  # fmt: skip


def _shown(ws: Workspace, state: CaseState, adr: Adr, added: FlipCondition) -> None:
    """What the evidence of today says about it."""
    seen = preview(ws, state, adr, added)
    st.markdown(f"{t('Today')}: {state_badge(seen.state)} {judged(seen.sentence, seen.state)}")
    gauge(seen)
    side = "" if added.manual else f" · {t('fires when it {side}', side=t(added.fires_when))}"
    st.markdown(f"{condition_words(added)}{side} · {t('Then')}: {plain(added.consequence) or '–'}")
