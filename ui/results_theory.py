"""Theory against measurement: measured over bound and planning value per regime, and what the sizing takes over."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.calibration import Calibration
from planner.metrics import quantity
from planner.theory import Ratio, Regime, Theory
from services.calibrations import calibration
from services.results import theory_of
from services.verdicts import CaseState
from ui.cached import workspace
from ui.charts import Picture, against_concurrency
from ui.parts import go_to
from ui.results_chart import chart_of
from ui.results_figures import bound_table
from ui.sizing_calibration import figure_name, take_out_or_back
from ui.text import t


def theory_section(state: CaseState) -> None:
    """A table and a chart of ratios; the sizing follows those that are marked, and a person can take a point out."""
    st.subheader(t("Theory against measurement"))
    known = calibration(workspace())
    found = theory_of(known, state)
    if found.regimes:
        st.dataframe(theory_frame(found), hide_index=True, alt=t("Measured over theory by regime"))
        frame = ratios_frame(found)
        chart_of(state.case.slug, "theory", *theory_picture(frame), frame)
        go_to("sizing", t("The sizing follows the ratios marked as used, in their own regime only. See it there:"))
    bound_table(state)
    _left_out(found, known)


def theory_picture(frame: pd.DataFrame) -> Picture:
    """Ratios of measured over computed speed against requests in flight."""
    chart = against_concurrency(
        frame, y="value", y_title=t("Measured / theory, speed per user"), required=1.0,
        required_label=t("as computed"), series="series",
    )  # fmt: skip
    return Picture(chart, t("Measured speed over bound and planning value, by in flight"))


def theory_frame(found: Theory) -> pd.DataFrame:
    """One row a regime: the measured speed, over bound and over planning value, and what it rests on."""
    return pd.DataFrame([
        {
            t("Engine"): r.setting.engine,
            t("Quantization"): r.setting.quantization,
            t("In flight"): r.batches,
            t("tok/s per user"): quantity(r.measured_tok_s, "count"),
            t("Over bound"): _words(r.over_bound),
            t("Over planning value"): _words(r.over_planning),
            t("Points (starts)"): f"{r.n} ({r.starts})",
            t("Sizing"): t("used") if r.calibrates else t("shown only"),
            t("Kind"): t(r.kind.value),
            t("Over coverage bound"): _words(r.over_coverage),
            t("Context (tokens)"): r.setting.context,
            t("Load"): t(r.setting.mix),
        }
        for r in found.regimes
    ])  # fmt: skip


def _words(ratio: Ratio) -> str:
    spread = f" ({ratio.low:.2f} – {ratio.high:.2f})" if ratio.low != ratio.high else ""
    return f"{ratio.value:.2f}{spread}"


def ratios_frame(found: Theory) -> pd.DataFrame:
    """One row a regime and divisor; an engine that was seen in several settings is named with what differs in them."""
    settings = {r.setting for r in found.regimes}

    def name(r: Regime) -> str:
        mine = [(s.quantization, s.context, t(s.mix)) for s in settings if s.engine == r.setting.engine]
        here = (r.setting.quantization, r.setting.context, t(r.setting.mix))
        differing = (part for part, others in zip(here, zip(*mine, strict=True), strict=True) if len({*others}) > 1)
        return ", ".join((r.setting.engine, *differing))

    divisors = (("over_bound", t("over bound")), ("over_planning", t("over planning value")))
    rows = []
    for r in found.regimes:
        for field, words in divisors:
            ratio: Ratio = getattr(r, field)
            rows.append({
                "series": f"{name(r)} {words}", "kind": r.kind.value, "batch": r.batch, "value": ratio.value,
                "low": ratio.low, "high": ratio.high, "n": r.n,
            })  # fmt: skip
    return pd.DataFrame(rows)


def _left_out(found: Theory, known: Calibration) -> None:
    if found.left_out:
        rows = [{t("Figure"): figure_name(x.evidence), t("Because"): x.reason} for x in found.left_out]
        with st.expander(t("Calibrates nothing: {n}", n=len(rows))):
            st.dataframe(pd.DataFrame(rows), hide_index=True, alt=t("Figures that calibrate nothing, and why"))
    if found.regimes:
        points = {p.id for r in found.regimes for p in r.points}
        take_out_or_back(workspace(), known, [g for g in known.groups if points & {p.id for p in g.points}])
