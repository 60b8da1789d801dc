"""What other requirements would do: when the simplest engine is enough, and who comes first along a requirement."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from planner.what_if_engine import Enough, Reign, Strip, simplest_that_suffices
from services.scores import WhatIf
from ui.charts import reign_strip
from ui.parts import kind_badge, plain
from ui.text import t
from ui.words import in_words


def what_if(found: WhatIf, names: Mapping[str, str]) -> None:
    """When the simplest engine is enough; the two strips; and each requirement changed by itself."""
    if found.enough:
        _enough(found.enough)
    _users(found.users, names)
    _shared_prefix(found.shared_prefix, names)
    st.markdown(f"**{t('If one requirement were another')}**")
    rows = [
        {
            t("What if"): in_words(t(o.words)),
            t("Comes first"): names[o.first] if o.first else t("nobody passes the gates"),
            t("Against today"): t("another winner") if o.changes_winner else t("the same"),
        }
        for o in found.outcomes
    ]
    st.table(pd.DataFrame(rows).set_index(t("What if")), border="horizontal")


def _enough(enough: tuple[Enough, ...]) -> None:
    """The simplest engine first: up to how many users it keeps the promise, and what it lacks."""
    simplest = enough[0]
    suffices = simplest_that_suffices(enough)
    st.markdown(f"**{t('When would {name} be enough?', name=plain(simplest.engine_name))}**")
    mark = ":green[:material/check_circle:]" if suffices else ":material/group:"
    st.markdown(f"{mark} {plain((suffices or simplest).sentence)} {kind_badge('planning')}")
    for gap in (suffices or simplest).gaps:
        st.markdown(t(":orange[:material/warning: Lacks] {what}", what=plain(in_words(gap))))
    st.caption(
        t("The planning value knows no engine: it holds for the format that the engine would load. An engine that "
          "shares its steps badly falls below it first, so the boundary is an upper one until somebody measures.")
    )  # fmt: skip


def _users(strip: Strip, names: Mapping[str, str]) -> None:
    if not strip.reigns:
        return
    st.markdown(
        t("**By the rules:** {who}.", who=", ".join(
            t("{name} comes first from {low:g} to {high:g} users", name=plain(names[x.engine]), low=x.low, high=x.high)
            for x in strip.reigns
        ))
    )  # fmt: skip
    # A peak of n users reaches to n + 1 on the axis, so that neighbours touch.
    frame = _frame(strip.reigns, names, t("{low:g} to {high:g} users"), 1)
    stated = (strip.stated[0], strip.stated[1] + 1) if strip.stated else None
    st.altair_chart(
        reign_strip(frame, x_title=t("Peak users (log scale; your peak is outlined)"), stated=stated, log=True),
        alt=t("Who comes first by peak users: {all}", all="; ".join(frame["words"] + " " + frame["name"])),
    )


def _shared_prefix(strip: Strip, names: Mapping[str, str]) -> None:
    if not strip.reigns:
        return
    known = t("you state {share:.0%}", share=strip.stated[0]) if strip.stated else t("not known yet")
    frame = _frame(strip.reigns, names, t("{low:.0%} to {high:.0%} shared"), 0.01)
    st.altair_chart(
        reign_strip(frame, x_title=t("Share of the prompt in common ({known})", known=known), stated=strip.stated,
                    log=False),
        alt=t("Who comes first by shared prefix: {all}", all="; ".join(frame["words"] + " " + frame["name"])),
    )  # fmt: skip


def _frame(reigns: tuple[Reign, ...], names: Mapping[str, str], words: str, step: float) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"engine": x.engine, "name": names[x.engine], "low": x.low, "high": x.high + step,
             "words": words.format(low=x.low, high=x.high)}
            for x in reigns
        ]
    )  # fmt: skip
