"""A table pasted from a spreadsheet: what its columns hold, and what of it would be stored."""

from __future__ import annotations

import hashlib

import pandas as pd
import streamlit as st

from planner.metrics import METRICS
from planner.poc import Plan
from services.filled import Filled
from services.pasted import Pasted, Stated, figures_of
from services.pasted_sheet import Sheet, proposed, read_sheet
from services.pasted_words import UNITS_BY_HAND, Heading, meanings
from ui.parts import plain, shown_errors
from ui.text import t
from ui.words import metrics_in_words

EXAMPLE = "Engine\tIn flight\tInput tokens\tOutput tokens\tTTFT p95 [s]\ttok/s in total\nvllm\t16\t3596\t500\t1.8\t412"
MARKS = {None: "as the cells tell", "point": "1,234.5", "comma": "1.234,5"}
SHOWN = 20


def pasted_rows(plan: Plan, key: str) -> tuple[Filled, ...]:
    """The figures to store, empty while there are none or a row is refused that nobody left out."""
    text = st.text_area(
        t("Cells with their headings, copied from the sheet"), placeholder=EXAMPLE, height=160, key=f"{key}-paste"
    )
    if not text.strip():
        return ()
    with shown_errors():
        sheet = read_sheet(text)
        stated, mark = _not_said(plan, key)
        columns = _columns(sheet, f"{key}-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
        return _looked_at(figures_of(sheet, columns, plan, stated, mark), key)
    return ()


def _not_said(plan: Plan, key: str) -> tuple[Stated, str | None]:
    """What holds for every row and does not stand in the sheet."""
    with st.expander(t("What the sheet does not say")):
        a, b, c, d, e = st.columns(5)
        ids = [x.id for x in plan.candidates]
        who = a.selectbox(t("Candidate"), ids, index=None, placeholder=t("as in the sheet"), key=f"{key}-who")
        numbers = [
            column.number_input(t(label), min_value=1, value=None, key=f"{key}-{name}")
            for column, name, label in ((b, "in", "In flight"), (c, "input", "Input tokens"),
                                        (d, "output", "Output tokens"), (e, "n", "Requests (n)"))
        ]  # fmt: skip
        mark = st.segmented_control(
            t("Decimals"), list(MARKS), default=None, format_func=lambda m: t(MARKS[m]), key=f"{key}-mark"
        )
    in_flight, given, answered, n = numbers
    return Stated(who or "", in_flight, None, given, answered, n), mark


def _columns(sheet: Sheet, key: str) -> tuple[Heading, ...]:
    """What each column holds, as read from its heading; every cell of this table can be changed."""
    read, words = proposed(sheet), {name: metrics_in_words(label) for name, label in meanings().items()}
    with st.expander(t("What the columns hold"), expanded=any(c.why for c in read)):
        shown = pd.DataFrame(
            {
                "heading": sheet.headings, "example": [sheet.example(i) for i in range(len(read))],
                "holds": [words[c.holds] for c in read], "unit": [c.unit for c in read],
                "why": [t(c.why) for c in read],
            }
        )  # fmt: skip
        edited = st.data_editor(
            shown, key=key, hide_index=True, height="content", placeholder="–", disabled=["heading", "example", "why"],
            column_config={
                "heading": st.column_config.TextColumn(t("Heading")),
                "example": st.column_config.TextColumn(t("Example")),
                "holds": st.column_config.SelectboxColumn(t("Holds"), options=list(words.values()), required=True),
                "unit": st.column_config.SelectboxColumn(t("Unit"), options=["", *UNITS_BY_HAND, *{c.unit for c in read
                                                         if c.unit and c.unit not in UNITS_BY_HAND}]),
                "why": st.column_config.TextColumn(t("Not understood"), width="medium"),
            },
            alt=t("Columns of the sheet and what each holds"),
        )  # fmt: skip
    ids = {label: name for name, label in words.items()}
    return tuple(
        c if words[c.holds] == holds and c.unit == (unit or "") else Heading(ids[holds], unit or "")
        for c, holds, unit in zip(read, edited["holds"], edited["unit"], strict=True)
    )


def _looked_at(pasted: Pasted, key: str) -> tuple[Filled, ...]:
    """Show what would be stored, what is refused and what is odd."""
    for finding in pasted.findings:
        st.caption(f":material/info: {plain(finding)}")
    if pasted.rows:
        st.markdown(t("Figures as they will be stored: {n}", n=len(pasted.rows)))
        st.dataframe(
            figures_frame(pasted.rows), hide_index=True, placeholder="–",
            height="content" if len(pasted.rows) < SHOWN else 400, alt=t("Figures in base units, to be stored"),
        )  # fmt: skip
    if not pasted.refused:
        return pasted.rows
    told = [f"- {plain(r)}" for r in pasted.refused[:SHOWN]]
    more = [t("… and {n} more", n=len(pasted.refused) - SHOWN)] if len(pasted.refused) > SHOWN else []
    head = t("Rows refused: {n}", n=len(pasted.refused))
    st.warning("\n".join([head, "", *told, *more]), icon=":material/report:")
    left_out = bool(pasted.rows) and st.checkbox(t("Leave these rows out"), key=f"{key}-leave")
    return pasted.rows if left_out else ()


def figures_frame(rows: tuple[Filled, ...]) -> pd.DataFrame:
    """One row a figure, in its base unit; what no figure has is no column."""
    frame = pd.DataFrame(
        [
            {
                t("Row"): f.row, t("Candidate"): f.candidate, t("Load point"): f.load_point, t("Start"): f.start,
                t("Repeat"): f.repeat, t("Figure"): metrics_in_words(METRICS[f.metric].name),
                t("Statistic"): f.statistic, t("Of the repeats"): f.spread or None, t("Value"): f.value,
                t("Unit"): METRICS[f.metric].unit,
                t("n"): f.n, t("When"): f"{f.at:%Y-%m-%d}" if f.at else None,
            }
            for f in rows
        ]
    )  # fmt: skip
    return frame.dropna(axis="columns", how="all").astype(
        {c: "Int64" for c in (t("Start"), t("Repeat"), t("n")) if c in frame and frame[c].notna().any()}
    )
