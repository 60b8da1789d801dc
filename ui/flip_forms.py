"""Flip conditions of a decision: the table to edit, and the form that adds one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from decisions.flips import TEMPLATES, from_template
from decisions.record import Action, Adr, FlipCondition
from planner.errors import FliplineError
from services.adr_form import flip_from, flip_rows
from services.verdicts import CaseState
from ui.parts import plain
from ui.session import author
from ui.text import t


def edited_conditions(adr: Adr, key: str) -> list[dict[str, object]]:
    """Show the table; its rows as they stand on the screen."""
    if not adr.conditions:
        st.markdown(t("Nothing would re-open this decision yet. Add what would."))
        return []
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
    rows: list[dict[str, object]] = table.astype(object).where(table.notna(), None).to_dict("records")
    st.caption(t("Select rows to remove them. Changes count when you save."))
    return rows


def new_condition(state: CaseState, adr: Adr, key: str) -> FlipCondition | None:
    """Show the form; the condition once it can be read, else what is wrong with it is said."""
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
    return added
