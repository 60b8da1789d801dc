"""The Sizing page's calibration: measured over coverage bound by regime beside the defaults, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from planner.calibration import Calibration, Group, MeasuredPoint, Setting
from planner.capacity import Sizing
from planner.conditions import Kind
from planner.derive_calibration import ratio_derivation
from planner.throughput import extrapolated
from services.calibrations import exclude, include, setting_of
from services.what_if import Question
from services.workspace import Workspace
from ui.parts import explained, flash, plain, shown_errors
from ui.session import signed
from ui.text import t


def show(ws: Workspace, known: Calibration, asked: Question, sizing: Sizing) -> None:
    """Ratios of this machine with n and spread, which planning values follow them, and a form to take points out."""
    here = None
    if asked.engine:
        devices = asked.settings.tensor_parallel
        here = setting_of(ws.catalog, asked.requirements, asked.plan, asked.hardware, asked.engine, devices)
    groups = [g for g in known.groups if g.setting.gpu == sizing.gpu]
    st.subheader(t("Calibration"))
    if not groups:
        st.markdown(t("No measured runs yet: default constants are used."))
    else:
        _replaced(sizing, here, asked.requirements.peak_users_max)
        st.dataframe(_table(groups, here), hide_index=True, alt=t("Measured over coverage bound by engine and regime"))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            group = st.selectbox(
                t("Explain the ratio of"), groups, key="ratio-explain", width=420,
                format_func=lambda g: t("{engine}, {quant}, {n} in flight, {context}", engine=g.setting.engine,
                                        quant=g.setting.quantization, n=g.batches, context=g.setting.context),
            )  # fmt: skip
            explained(ratio_derivation(group))
        for outlier in (o for g in groups for o in g.outliers):
            st.warning(t("Outlier, not counted: {point}. {reason}.", point=plain(_name(outlier.point)),
                         reason=plain(outlier.reason)), icon=":material/report:")  # fmt: skip
    _left_out(known)
    take_out_or_back(ws, known, groups)


def _replaced(sizing: Sizing, here: Setting | None, users: int) -> None:
    """Which figures of the page follow the ratios, and whether they still do at the peak of users."""
    if sizing.inputs and sizing.inputs.measured:
        st.markdown(t("Planning values on this page (speeds, units, cost) follow the ratios marked as used. Bound and "
                      "coverage stay as computed."))  # fmt: skip
        if extrapolated(sizing.inputs, users):
            st.caption(t("No run had {n} in flight: the ratio of the nearest batch is carried on to it.", n=users))
    elif here is None:
        st.markdown(t("Default constants are used: no engine passes the gates."))
    else:
        st.markdown(
            t("Default constants are used: {engine} was not measured here with {quant} at {context} tokens of "
              "context, {mix}.", engine=plain(here.engine), quant=here.quantization, context=here.context,
              mix=t(here.mix))
        )  # fmt: skip


def _table(groups: Sequence[Group], here: Setting | None) -> pd.DataFrame:
    return pd.DataFrame([
        {
            t("Engine"): g.setting.engine,
            t("Quantization"): g.setting.quantization,
            t("In flight"): g.batches,
            t("Measured / coverage bound"): f"{g.ratio:.2f}",
            t("Range"): f"{g.spread[0]:.2f} – {g.spread[1]:.2f}",
            t("Points (starts)"): f"{g.n} ({g.runs})" + (f" · {t('few')}" if g.few else ""),
            t("Used"): g.setting == here and g.kind is Kind.MEASURED,
            t("Context (tokens)"): g.setting.context,
            t("Default"): f"{g.default_ratio:.2f}",
            t("Load"): t(g.setting.mix),
            t("Kind"): t(g.kind.value),
            t("Family"): t(g.setting.family),
            t("Devices"): g.setting.devices,
        }
        for g in groups
    ])  # fmt: skip


def _name(p: MeasuredPoint) -> str:
    return f"{p.setting.engine}, {p.load_point}, run {p.run[:8]}"


def figure_name(evidence: str) -> str:
    """A figure's id (run/load point/repeat/metric/statistic) as words; any other id as it is."""
    parts = evidence.split("/")
    if len(parts) != 5:
        return evidence
    return t("{point}, repeat {n}, run {run}", point=parts[1], n=parts[2], run=parts[0][:8])


def _left_out(known: Calibration) -> None:
    """Figures that calibrate nothing, each with the reason."""
    rows = [
        {t("Figure"): figure_name(x.evidence), t("Left out"): how, t("Because"): x.reason}
        for how, found in ((t("by the team"), known.excluded), (t("by rule"), known.passed_over))
        for x in found
    ]
    if rows:
        with st.expander(t("Left out: {n}", n=len(rows))):
            st.dataframe(pd.DataFrame(rows), hide_index=True, alt=t("Figures left out of the calibration, and why"))


def take_out_or_back(ws: Workspace, known: Calibration, groups: Sequence[Group]) -> None:
    """A form that takes one point out with a reason, or back in."""
    counted = {p.id: f"{_name(p)}: {p.ratio:.2f}" for g in groups for p in g.points}
    outliers = {o.point.id: f"{_name(o.point)}: {o.point.ratio:.2f}" for g in groups for o in g.outliers}
    taken_out = {x.evidence: x.reason for x in known.excluded}
    labels = counted | outliers | {id: f"{figure_name(id)} ({reason})" for id, reason in taken_out.items()}
    if not labels:
        return
    with st.popover(t("Take a point out, or back in"), icon=":material/tune:"), st.form("calibration", border=False):
        point = st.selectbox(t("Point"), list(labels), format_func=lambda id: labels[id])
        reason = st.text_input(t("Reason"), placeholder=t("what was wrong with the run"))
        out = st.form_submit_button(t("Take out"))
        back = st.form_submit_button(t("Put back"))
    if (out or back) and (name := signed()):
        with shown_errors():
            (exclude if out else include)(ws, point, reason, name)
            flash(t("Calibration changed: {point}", point=labels[point]))
            st.rerun()
