"""The sections of the Sizing page that follow the controls: each takes a sizing and draws it."""

from __future__ import annotations

import altair as alt
import pandas as pd
import streamlit as st

from planner.capacity import Sizing
from planner.conditions import Kind
from planner.requirements import Requirements
from planner.throughput import KINDS
from planner.tornado import Tornado
from planner.units import GB, format_gb
from ui.charts import against_concurrency, memory_split
from ui.parts import explained, kind_badge
from ui.sizing_controls import MONEY, ask_for, required_first_token
from ui.sizing_figures import Figure, batch_lines, figures, leg_words
from ui.text import t
from ui.tornado_chart import tornado_chart

BY_BOUND = ("completion_sequential", "completion_batched")


def _card(figure: Figure, badge: str = "", caption: str = "") -> None:
    """One figure with its label, value and explanation."""
    with st.container(border=True, height="stretch"):
        if badge:
            st.markdown(badge)
        st.metric(t(figure.label), figure.value)
        if caption:
            st.caption(caption)
        explained(figure.derivation)


def _draw(chart: alt.Chart | alt.LayerChart, words: str) -> None:
    """A chart without Altair's own validation, which takes longer than the sizing behind it."""
    st.vega_lite_chart(spec=chart.to_dict(validate=False), alt=words)


def units(s: Sizing, r: Requirements) -> None:
    """How many units: three kinds of estimate under both constraints, and by requests per second."""
    shown = {f.derivation.key: f for f in figures(s, "Units")}
    for column, kind in zip(st.columns(3), KINDS, strict=True):
        need = s.units_for(kind, r.peak_users_max)
        if need is None:
            continue
        spare = t("{n} with one spare", n=need.units_with_spare) if need.units_with_spare else t("no number is enough")
        caption = t(
            "{spare}. At most {batch} at once keep the target. By total: {total}. Decides: {binding}.",
            spare=spare, batch=need.largest_batch, total=need.units_by_total, binding=t(need.binding),
        )  # fmt: skip
        with column:
            _card(shown[f"units_{kind.value}"], kind_badge(kind), caption)
    if s.by_rate and "request_rate" in shown:
        rate = s.by_rate
        spare = t("{n} with one spare", n=rate.units_with_spare) if rate.units_with_spare else t("no number is enough")
        left, right = st.columns([6, 1], vertical_alignment="center")
        with left:
            st.markdown(
                t(
                    "By requests: {rate:.3g} per second at the peak, units loaded to {share:.0%}: **{units}**, {spare} "
                    "(planning value). At the target speed that rate is {n:.0f} in flight, without waiting.",
                    rate=rate.peak_rate_per_s, share=rate.utilisation, units=shown["request_rate"].value, spare=spare,
                    n=rate.in_flight,
                )
            )  # fmt: skip
        with right:
            explained(shown["request_rate"].derivation)


def memory(s: Sizing) -> None:
    """How one device's memory splits, and what fits."""
    st.subheader(t("Memory"))
    budget = s.memory.budget
    parts = [
        (t("weights"), budget.weights), (t("KV cache"), budget.kv), (t("engine reserve"), budget.reserve),
        (t("other tenants"), budget.tenants), (t("left outside"), budget.outside),
    ]  # fmt: skip
    frame = pd.DataFrame([{"part": name, "gb": size / GB} for name, size in parts if size > 0])
    left, right = st.columns(2, gap="large")
    with left:
        _draw(memory_split(frame), t("Split of the device memory in GB"))
        fraction = s.memory.device.gpu_memory_utilization
        st.caption(
            t("{total} on one device; the engine takes {share:.0%} of it.", total=format_gb(budget.device_total),
              share=fraction)
        )  # fmt: skip
    with right:
        rows(figures(s, "Memory"))
    if in_words := figures(s, "Engine settings"):
        with st.expander(t("The same KV cache in each engine's words"), icon=":material/translate:"):
            rows(in_words)


def rows(shown: tuple[Figure, ...]) -> None:
    """Figures one under the other, each with its explanation at the right."""
    for figure in shown:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"{t(figure.label)}: **{figure.value}**")
            explained(figure.derivation)


def batches(s: Sizing, r: Requirements, key: str) -> None:
    """Speed against requests in flight: two charts, the table to 512, and any cell explained."""
    st.subheader(t("Speed"))
    frame = pd.DataFrame(
        [
            {"batch": row.batch, "kind": kind.value, "user_tok_s": row.user_tok_s, "total_tok_s": row.total_tok_s}
            for kind in KINDS
            for row in s.tables[kind]
            if row.fits
        ]
    )
    needed = r.peak_users_max * r.user_tok_s_target
    left, right = st.columns(2)
    with left:
        st.markdown(f"**{t('Per user')}**")
        _draw(
            against_concurrency(
                frame, y="user_tok_s", y_title=t("tok/s per user"), required=r.user_tok_s_promise,
                required_label=t("promised {x:g} tok/s", x=r.user_tok_s_promise), log=True,
            ),
            t("Speed per user against requests in flight, with the promised speed"),
        )  # fmt: skip
    with right:
        st.markdown(f"**{t('In total, one unit')}**")
        _draw(
            against_concurrency(
                frame, y="total_tok_s", y_title=t("tok/s in total"), required=needed,
                required_label=t("needed {x:,.0f} tok/s", x=needed),
            ),
            t("Total speed against requests in flight, with the needed total"),
        )  # fmt: skip
    with st.expander(t("Batch table, and how each of its figures came about"), icon=":material/table_rows:"):
        _batch_table(s, r, key)
    shown = figures(s, "Speed")
    for column, figure in zip(st.columns(len(shown)), shown, strict=True):
        with column:
            _card(figure, kind_badge(Kind.BOUND if figure.derivation.key in BY_BOUND else Kind.PLANNING))


def _batch_table(s: Sizing, r: Requirements, key: str) -> None:
    lines = batch_lines(s)
    table = pd.DataFrame(
        [
            {
                t("In flight"): line.batch,
                t("Promise"): t(line.verdict),
                **{f"{t(k.value)}, {t('per user')}": line.user[k] for k in KINDS},
                **{f"{t(k.value)}, {t('in total')}": line.total[k] for k in KINDS},
            }
            for line in lines
        ]
    )
    right = {name: st.column_config.TextColumn(alignment="right") for name in table.columns[2:]}
    st.dataframe(
        table, hide_index=True, column_config=right,
        alt=t("Batch table: speed per user and in total by kind of estimate"),
    )  # fmt: skip
    known = [line.batch for line in lines]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        batch = st.selectbox(
            t("Explain the row of"), known, index=known.index(r.peak_users_max), key=f"{key}-explain",
            format_func=lambda n: t("{n:,} in flight", n=n), width=220,
        )  # fmt: skip
        for kind in KINDS:
            explained(s.derivation(f"{kind.value}@{batch}"), t(kind.value))


def first_token(s: Sizing, r: Requirements) -> None:
    """Time to first token when nobody waits, and what other users' prompts take from the speed."""
    st.subheader(t("First token"))
    shown = figures(s, "First token")
    if not shown:
        st.markdown(t("Not known: the matrix rate of this GPU is not in the catalogue. State it above."))
        return
    for column, figure in zip(st.columns(len(shown)), shown, strict=True):
        with column:
            _card(figure, kind_badge(Kind.BOUND if figure.derivation.key == "first_token_floor" else Kind.PLANNING))
    st.caption(required_first_token(r))


def swings(found: Tornado, key: str) -> None:
    """Which input moves the answer most."""
    st.subheader(t("What moves the answer most"))
    st.caption(t("One input at a time goes to the ends of its range, by the planning value; the others stay."))
    by_units = found.base.units is not None
    choice = st.segmented_control(
        t("Answer"), ["units", "speed"], default="units" if by_units else "speed", required=True,
        format_func={"units": t("Units"), "speed": t("Speed per user, all on one unit")}.get, key=f"{key}-swing",
        label_visibility="collapsed",
    )  # fmt: skip
    legs = (found.base, *(leg for swing in found.swings for leg in (swing.low, swing.high)))
    if len({leg.units if choice == "units" else leg.user_tok_s for leg in legs}) > 1:
        _draw(
            tornado_chart(found, by_units=choice == "units"),
            t("Inputs by how much they move the answer, the largest first"),
        )
    else:
        st.markdown(t("None moves it: at either end of every range it stays as it is."))
    with st.expander(t("The ranges and why these"), icon=":material/straighten:"):
        frame = pd.DataFrame([
            {
                t("Input"): t(swing.title), t("At one end"): leg_words(swing.low),
                t("At the other"): leg_words(swing.high), t("Why this range"): t(swing.why),
            }
            for swing in found.swings
        ])  # fmt: skip
        st.table(frame.set_index(t("Input")), border="horizontal")  # unlike a dataframe it wraps the reasons


def cost(s: Sizing, key: str) -> None:
    """Energy and money per million output tokens, and fields for what is not known."""
    st.subheader(t("Cost and energy"))
    known = figures(s, "Cost")
    for column, figure in zip(st.columns(2), known, strict=False):
        with column:
            _card(figure, kind_badge(Kind.PLANNING))
    missing = [f for f in s.gaps if f.field in MONEY]
    if missing:
        st.markdown(t("Not stated in the requirements; write it here to see what it comes to:"))
        ask_for(missing, key, s.cost.currency)
