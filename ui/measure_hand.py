"""Measure by hand: a table that came back from a GPU box, filled in here or pasted from a spreadsheet."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.poc import Plan
from services.arrivals import bring_in_table
from services.attachments import MOST_BYTES, attached_bytes, attachments
from services.filled import Filled, Machine, blank_table, columns_of, outdated, rows_of
from services.plans import unstated_fields
from services.verdicts import CaseState
from services.workspace import Workspace, now
from ui.measure_arrived import tell
from ui.measure_paste import pasted_rows
from ui.parts import kind_badge, plain, shown_errors
from ui.session import author, signed
from ui.text import t

WHOLE = {
    "n": "Requests (n)",
    "in_flight": "In flight",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
}


def section(ws: Workspace, state: CaseState) -> None:
    """Figures, who measured them, from where and when, and the raw file behind them."""
    plan, stored, slug = state.plan, state.stored_plan, state.case.slug
    assert plan is not None and stored is not None
    st.markdown(
        f"{kind_badge('entered')} "
        + t("Figures without load and lengths mean nothing, so they stand beside each row. Leave empty what nobody "
            "measured.")
    )  # fmt: skip
    version = len([e for e in state.evidence if e.kind == "entered"])  # what was stored is no longer asked for
    key = f"hand-{slug}-{stored.sha256[:12]}-{version}"
    how = st.segmented_control(
        t("How"), ["fill", "paste"], default="fill", required=True, key=f"hand-how-{slug}",
        format_func={"fill": t("The plan's table"), "paste": t("Paste from a spreadsheet")}.get,
        label_visibility="collapsed",
    )  # fmt: skip
    rows: tuple[Filled, ...] = ()
    with shown_errors():
        rows = pasted_rows(plan, key) if how == "paste" else _filled(plan, key)
    a, b, c = st.columns(3)
    by = a.text_input(t("Measured by"), value=author(), key=f"hand-by-{slug}-{author()}")
    source = b.text_input(t("From"), placeholder=t("log, sheet or message"), key=f"hand-from-{slug}-{version}")
    day = c.date_input(t("Day of the run"), value=now().date(), max_value=now().date(), format="YYYY-MM-DD",
                       help=t("A date in the sheet comes before it."))  # fmt: skip
    machine = _machine(plan, f"{key}-ran")
    if machine is None and (names := outdated(state.evidence, rows, day)):
        st.warning(
            t("Earlier figures of {names} kept to the plan's contract; the newest count, so ratios with {names} are "
              "refused unless these kept to it too.", names=plain(", ".join(names))),
            icon=":material/report:",
        )  # fmt: skip
    raw = st.file_uploader(
        t("Raw file, kept with the figures (optional)"), max_upload_size=MOST_BYTES // 2**20, key=f"{key}-raw"
    )
    ready = how == "fill" or bool(rows)
    if st.button(t("Store these figures"), type="primary", icon=":material/save:", disabled=not ready) and signed():
        with shown_errors():
            arrived = bring_in_table(
                ws, state.case.id, rows, by=by, source=source, measured_at=day,
                raw=(raw.name, raw.getvalue()) if raw else None, machine=machine,
            )  # fmt: skip
            tell(arrived, t("Figures stored as entered by {who}: {n}.", n=len(rows), who=plain(by)))
    with shown_errors():
        _raw_files(ws, slug)


def _machine(plan: Plan, key: str) -> Machine | None:
    """What the runs took place on, where a person says that they kept to the plan; else they state no contract."""
    a, b, c = st.columns(3, vertical_alignment="bottom")
    kept = a.checkbox(
        t("The runs kept to the plan's contract"), key=key,
        help=t("Model, revision, settings and lengths as the plan states them. Only then do two candidates compare."),
    )  # fmt: skip
    if not kept:
        return None
    gpu = b.text_input(t("GPU"), placeholder=t("as nvidia-smi -L names it"), key=f"{key}-gpu")
    gpus = c.number_input(t("GPUs used"), min_value=1, value=1, key=f"{key}-gpus")
    if unstated := unstated_fields(plan):
        st.caption(
            ":material/report: " + t("The plan does not state {fields}: two candidates do not compare on it.",
                                     fields=plain(", ".join(unstated)))
        )  # fmt: skip
    return Machine(gpu, gpus)


def _filled(plan: Plan, key: str) -> tuple[Filled, ...]:
    """The plan's load points as a table to fill in."""
    figures = [c.name for c in columns_of(plan)]
    config = {
        "candidate": st.column_config.TextColumn(t("Candidate")),
        "load_point": st.column_config.TextColumn(t("Load point")),
        "rate_per_s": st.column_config.NumberColumn(t("Rate (req/s)"), min_value=0.0),
        **{name: st.column_config.NumberColumn(t(name), min_value=0.0) for name in figures},
        **{name: st.column_config.NumberColumn(t(label), min_value=1, step=1) for name, label in WHOLE.items()},
    }
    blank = pd.DataFrame(blank_table(plan)).astype(
        {"in_flight": "Int64", "rate_per_s": "Float64", "n": "Int64", **dict.fromkeys(figures, "Float64")}
    )
    table = st.data_editor(
        blank, key=key, hide_index=True, column_config=config, disabled=["candidate", "load_point"], placeholder="–",
        column_order=["candidate", "load_point", *figures, "n", "in_flight", "rate_per_s", "input_tokens",
                      "output_tokens"],
        alt=t("Results by load point, to fill in"),
    )  # fmt: skip
    return rows_of(plan, table.astype(object).where(table.notna(), None).to_dict("records"))


def _raw_files(ws: Workspace, slug: str) -> None:
    """Files that came with figures, byte for byte as they were brought."""
    kept = attachments(ws, slug)
    if not kept:
        return
    st.markdown(f"**{t('Raw files')}**")
    for file in kept:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button(
                t("Download"), lambda entry=file.entry: attached_bytes(ws, slug, entry), file_name=file.name,
                icon=":material/download:", on_click="ignore", key=f"raw-{file.entry}",
            )  # fmt: skip
            st.markdown(
                f"{plain(file.name)} · {t('{n:,} bytes', n=file.size)} · {file.at:%Y-%m-%d %H:%M} UTC · "
                f"{plain(file.by)} · `{file.sha256[:12]}`"
            )
