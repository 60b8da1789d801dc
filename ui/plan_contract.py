"""The contract of a plan: how complete it is, what each candidate states, what contradicts, and the editor."""

from __future__ import annotations

import streamlit as st

from planner.contract import FIELDS, Field
from planner.contract_check import Contradiction, completeness, undeclared_differences
from planner.contract_edit import LOCKED, Edit, check_edit, editable
from planner.poc import Plan
from services.plans import Drafted, PlanChoices, unstated_fields
from ui.parts import plain, shown_errors
from ui.text import t
from ui.whole_table import whole_table


def contract_edits(slug: str, was: PlanChoices) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
    """What is stated by hand in this session, else what the stored plan states by hand."""
    found: tuple[tuple[Edit, ...], tuple[str, ...]] = st.session_state.get(
        f"contract-{slug}", (was.contract, was.declared)
    )
    return found


def forget_edits(slug: str) -> None:
    """Let the stored plan speak again."""
    st.session_state.pop(f"contract-{slug}", None)


def meter(plan: Plan) -> None:
    """The stated share of the material fields, a bar per candidate, with what is missing."""
    for column, c in zip(st.columns(len(plan.candidates)), completeness(plan), strict=True):
        with column:
            n, of = len(c.stated), len(c.stated) + len(c.missing)
            st.progress(c.share, text=t("**{who}**: {n} of {of} fields stated", who=plain(c.candidate), n=n, of=of))
            if c.missing:
                st.caption(t("Missing: {fields}", fields=plain(", ".join(c.missing))))


def faults(plan: Plan, found: tuple[Contradiction, ...]) -> None:
    """What contradicts, what is not stated, and what would refuse a comparison."""
    for f in found:
        st.error(plain(str(f)), icon=":material/error:")
    open_fields = unstated_fields(plan)
    if open_fields:
        st.warning(
            t("Not stated: {fields}. An unstated field is not equal: a comparison of two candidates is refused until "
              "it is stated.", fields=plain(", ".join(open_fields))),
            icon=":material/report:",
        )  # fmt: skip
    undeclared = undeclared_differences(plan)
    if undeclared:
        st.warning(
            t("Differs and is not declared: {fields}. A comparison will be refused.",
              fields=plain(", ".join(undeclared))),
            icon=":material/report:",
        )  # fmt: skip
    if plan.declared_differences:
        st.markdown(
            t("Declared beforehand as different: {fields}. Ratios name them.",
              fields=plain(", ".join(plan.declared_differences)))
        )  # fmt: skip


def table(plan: Plan) -> None:
    """Every field of the contract, who states it, and what each candidate says."""
    missing, rows = t("not stated"), []
    for f in FIELDS:
        if f.part == "observed":
            continue
        said = {
            c.id: ((plan.shared_contract if f.part == "shared" else c.contract).get(f.name) or missing)
            + (" ✎" if f.name in c.by_hand else "")
            for c in plan.candidates
        }
        rows.append({t("Field"): f.name, **said, t("Between candidates"): t(f.between), t("Meaning"): t(f.meaning)})
    whole_table(rows, t("Measurement contract, a column per candidate"))
    seen = ", ".join(f.name for f in FIELDS if f.part == "observed")
    by_hand = t(" ✎ is stated by hand.") if any(c.by_hand for c in plan.candidates) else ""
    st.caption(t("Recorded by the instrument at each start: {fields}.", fields=plain(seen)) + by_hand)


def editor(slug: str, drafted: Drafted) -> None:
    """A field a row, a candidate a column; what differs from the derived value is stated by hand."""
    plan, fields = drafted.plan, [f for f in FIELDS if f.part == "candidate" and f.name not in LOCKED]
    key = f"edit-{slug}-{plan.sha256()[:12]}"
    with st.expander(t("Edit the contract"), icon=":material/edit:"):
        with st.form(key):
            heads = st.columns([2, *[3] * len(plan.candidates)])
            for column, c in zip(heads[1:], plan.candidates, strict=True):
                column.markdown(f"**{plain(c.id)}**")
            typed = [edit for f in fields for edit in _row(plan, f, key)]
            differing = [f.name for f in fields if f.between == "may be declared"]
            besides = st.multiselect(
                t("Declared as different"), differing, [d for d in plan.declared_differences if d in differing],
                key=f"{key}-declared", help=t("Chosen before the run. Ratios are then per token and name it."),
            )  # fmt: skip
            a, b = st.columns(2)
            apply = a.form_submit_button(t("Apply"), icon=":material/check:", width="stretch")
            reset = b.form_submit_button(t("As derived"), icon=":material/undo:", width="stretch")
        if apply:
            derived = drafted.contracts
            changed = tuple(e for e in typed if e.value != derived.get(e.candidate, {}).get(e.field, ""))
            with shown_errors():
                for e in changed:
                    check_edit(e)
                st.session_state[f"contract-{slug}"] = changed, tuple(besides)
                st.rerun()
        if reset:
            st.session_state[f"contract-{slug}"] = (), ()
            st.rerun()


def _row(plan: Plan, field: Field, key: str) -> list[Edit]:
    """One field for every candidate."""
    how, name = editable(field.name), field.name
    first, *columns = st.columns([2, *[3] * len(plan.candidates)], vertical_alignment="center")
    first.markdown(plain(name), help=t(field.meaning))
    edits = []
    for column, c in zip(columns, plan.candidates, strict=True):
        now, label, at = c.contract.get(name, ""), f"{name}, {c.id}", f"{key}-{c.id}-{name}"
        if how.choices:
            options = list(dict.fromkeys((now, "", *how.choices)))
            value = column.selectbox(label, options, key=at, label_visibility="collapsed",
                                     format_func=lambda v: v or t("not stated"))  # fmt: skip
        else:
            value = column.text_input(label, now, key=at, label_visibility="collapsed",
                                      placeholder=t("not stated")).strip()  # fmt: skip
        edits.append(Edit(c.id, name, value))
    return edits
