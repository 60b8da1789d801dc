"""Quality sets on the Results page: what each candidate passed, and what one loses against another."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.conditions import Kind
from planner.metrics import quantity
from services.quality import Differing, PairOfRates, Rate, differing, pairs, precision_warnings, rates
from services.verdicts import CaseState
from ui.cached import workspace
from ui.parts import kind_badge, plain, shown_errors
from ui.text import t

OUTCOMES: dict[str, tuple[str, str]] = {
    "loss shown": ("red", ":material/trending_down:"),
    "no loss shown": ("blue", ":material/balance:"),
    "gain shown": ("green", ":material/trending_up:"),
}


def precision_notes(state: CaseState) -> None:
    """A warning for each two candidates whose speeds stand side by side in different precisions."""
    for warning in precision_warnings(state):
        st.warning(plain(warning), icon=":material/rule:")


def quality_section(state: CaseState) -> None:
    """Pass rates and the candidates paired by item; nothing where neither plan nor runs have a quality set."""
    found = rates(state)
    planned = [p for p in state.plan.load_points if p.shape == "quality"] if state.plan else []
    if not found and not planned:
        return
    st.subheader(t("Quality"))
    if not found:
        st.markdown(t("Not measured."))
        return
    st.dataframe(rates_frame(found), hide_index=True, alt=t("What each candidate passed of a quality set"))
    for pair in pairs(state):
        _pair(state, pair)


def rates_frame(found: tuple[Rate, ...]) -> pd.DataFrame:
    """One row per candidate, set and kind."""
    return pd.DataFrame(
        [
            {
                t("Candidate"): r.candidate, t("Quality set"): r.point, t("Passed"): quantity(r.value, "share"),
                t("95 % interval"): " – ".join(quantity(x, "share") for x in r.interval) if r.interval else "–",
                t("Items"): f"{r.items:,}" if r.items else t("not stated"), t("Starts"): r.starts,
                t("Kind"): t(r.kind.value), t("Left out because"): "; ".join(r.spoiled_by) or "–",
            }
            for r in found
        ]
    )  # fmt: skip


def _pair(state: CaseState, pair: PairOfRates) -> None:
    who = t("{a} against {b} on {where}", a=plain(pair.left.candidate), b=plain(pair.right.candidate),
            where=plain(pair.left.point))  # fmt: skip
    kind = "" if pair.left.kind is Kind.MEASURED else f" {kind_badge(pair.left.kind)}"
    if pair.found is None:
        st.markdown(f"**{who}**{kind}: {t('not comparable: {why}', why=plain(pair.refused))}")
        return
    colour, icon = OUTCOMES[pair.found.outcome]
    named = f" :small[{plain('; '.join(pair.differences))}]" if pair.differences else ""
    told = pair.found.sentence[:1].upper() + pair.found.sentence[1:]
    badge = f":{colour}-badge[{icon} {t(pair.found.outcome)}]"
    st.markdown(f"{badge}{kind} **{who}**{named}  \n{plain(told)}.")
    if any(pair.found.only):
        _items(state, pair)


@st.fragment
def _items(state: CaseState, pair: PairOfRates) -> None:
    """The items that only one side passed; read from the bundles when it is opened."""
    key = f"items-{pair.left.candidate}-{pair.right.candidate}-{pair.left.point}-{pair.left.kind}"
    with st.expander(
        t("{n} items differ", n=sum(pair.found.only if pair.found else ())), icon=":material/difference:", key=key,
        on_change="rerun",
    ) as shown:  # fmt: skip
        if not shown.open:
            return
        with shown_errors():
            found = differing(workspace(), state, pair)
            st.dataframe(items_frame(pair, found), hide_index=True, alt=t("Items that only one side passed"))


def items_frame(pair: PairOfRates, found: tuple[Differing, ...]) -> pd.DataFrame:
    """One row an item: what it expects, who passed it, and both answers."""
    left, right = pair.left.candidate, pair.right.candidate
    return pd.DataFrame(
        [
            {
                t("Item"): d.item, t("Expects"): t(d.expects), t("Passed by"): d.passed_by,
                t("Answer of {who}", who=left): d.left, t("Answer of {who}", who=right): d.right,
            }
            for d in found
        ]
    )  # fmt: skip
