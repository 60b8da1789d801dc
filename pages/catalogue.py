"""Catalogue: the facts that everything here is computed from, with source, confidence and age; gaps said aloud."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.catalog import REPOSITORY_CATALOG
from planner.engine_facts import age
from services.own_models import architecture_words
from services.workspace import now
from ui import engine_facts_view, own_model
from ui.cached import workspace
from ui.parts import head, plain
from ui.text import t

ws = workspace()
today = now().date()

OWN_GPU = """schema: 1
gpus:
  - id: our-card
    name: Our card
    memory_gb: 96
    device_total_gib: 94.5
    unified_memory: false
    bandwidth_gb_s: 1600
    dense_tflops: {bf16: 250, fp8: 500}
    compute_capability: "12.0"
    architecture: Blackwell
    sources: ["data sheet, 2026-11-01"]
    confidence: high
  # a known entry: only what differs here
  - id: nvidia-rtx-3090
    tdp_w: 300
    sources: ["power limit set on our machine"]
"""

head("catalogue", t("What is known about models, GPUs and engines, from where, and how sure."))


def known(value: object, form: str = "{}") -> str:
    """A figure as text; a gap is said in words."""
    return t("not known") if value is None else form.format(value)


def table(rows: list[dict[str, object]], figures: tuple[str, ...], alt: str) -> None:
    """Facts as a table: names stay in sight when it is scrolled, figures are right-aligned even beside words."""
    columns = {name: st.column_config.Column(alignment="right") for name in figures}
    columns[next(iter(rows[0]))] = st.column_config.Column(pinned=True)
    height = 560 if len(rows) > 12 else "auto"
    st.dataframe(pd.DataFrame(rows), hide_index=True, alt=alt, column_config=columns, height=height)


for refusal in ws.catalog.refused:
    st.error(plain(t("An own entry was left out: {sentence}", sentence=refusal.sentence)), icon=":material/block:")
engines, gpus, models, own, notice = st.tabs([t("Engines"), t("GPUs"), t("Models"), t("Own entries"), t("Notice")])
with engines:
    rows = []
    for e in ws.catalog.engines.values():
        old = age(e, today)
        rows.append(
            {
                t("Engine"): f"{e.name} {e.version}",
                t("Facts"): t("stale") if old.stale else t("current"),
                t("Age (days)"): old.days,
                t("Hold for (days)"): known(old.allowed_days),
                t("Read on"): str(e.read_on),
                t("State"): t(e.maintenance.status),
                t("Licence"): e.licence.spdx,
                t("API"): ", ".join(e.api),
                t("GPUs proven (compute capability)"): ", ".join(e.hardware.known_on),
                t("Source"): e.hardware.known_basis,
            }
        )
    table(rows, (t("Age (days)"), t("Hold for (days)")), t("Engines of the catalogue with age and source"))
    for e in ws.catalog.engines.values():
        if age(e, today).stale:
            st.warning(plain(age(e, today).sentence), icon=":material/history:")
    chosen = st.selectbox(
        t("Facts, traps and reports of"), list(ws.catalog.engines), format_func=lambda i: ws.catalog.engines[i].name
    )
    engine = ws.catalog.engines[chosen]
    with st.expander(t("What was read about it")):
        sources = [
            {
                t("Source"): name,
                t("Version"): source.version,
                t("Read on"): str(source.read_on),
                t("Published"): known(source.published),
                t("What it says"): source.read,
                t("Address"): source.address,
            }
            for name, source in engine.sources.items()
        ]
        table(sources, (), t("Sources of an engine's facts"))
    engine_facts_view.show(engine)
    for trap in engine.traps:
        st.markdown(f"- {plain(trap.text)}  \n  :small[{plain(trap.source)}]")
    for report in engine.hardware.reports:
        works = t("works") if report.works else t("does not work")
        st.markdown(
            f"- {plain(report.compute_capability)} {works}: {plain(report.what)}  \n  :small[{plain(report.source)}]"
        )
with gpus:
    rows = [
        {
            t("GPU"): g.name,
            t("Memory (GB)"): known(g.memory_gb, "{:g}"),
            t("Driver total (GiB)"): known(g.device_total_gib, "{:g}"),
            t("Bandwidth (GB/s)"): known(g.bandwidth_gb_s, "{:,.0f}"),
            t("BF16 (TFLOPS)"): known(g.tflops("bf16"), "{0[0]:g}, {0[1]}"),
            t("FP8 (TFLOPS)"): known(g.tflops("fp8"), "{0[0]:g}, {0[1]}"),
            t("Compute capability"): known(g.compute_capability),
            t("Power (W)"): known(g.tdp_w, "{:g}"),
            t("Confidence"): t(g.confidence),
            t("Source"): g.source,
            t("Id"): g.id,
        }
        for g in ws.catalog.gpus.values()
    ]
    table(
        rows,
        (t("Memory (GB)"), t("Driver total (GiB)"), t("Bandwidth (GB/s)"), t("Compute capability"), t("Power (W)")),
        t("GPUs of the catalogue"),
    )
with models:
    rows = [
        {
            t("Model"): m.id,
            t("Kind"): ", ".join(t(word) for word in architecture_words(m)),
            t("Layers"): m.num_hidden_layers,
            t("Hidden size"): m.hidden_size,
            t("Heads / KV heads"): f"{m.num_attention_heads} / {m.num_key_value_heads}",
            t("Experts (used)"): f"{m.moe.n_routed_experts} ({m.moe.experts_per_token})" if m.moe else t("none"),
            t("Active, as named (B)"): known(m.nominal_active_params_b, "{:g}"),
            t("Longest context"): f"{m.max_position_embeddings:,}",
            t("Confidence"): t(m.confidence),
            t("Source"): m.source,
        }
        for m in ws.catalog.models.values()
    ]
    table(
        rows,
        (t("Heads / KV heads"), t("Experts (used)"), t("Active, as named (B)"), t("Longest context")),
        t("Models of the catalogue"),
    )
    st.caption(t("Models and GPUs carry no day of reading; their sources name a commit, a log or a page."))
    st.caption(t("A model that is not here is added under Own entries, from its config.json."))
with own:
    own_model.show(ws)
    st.subheader(t("Entries by hand"))
    st.markdown(
        t(
            "Put {models}, {gpus} or {engines} into {folder}. An entry with a known id changes the fields that it "
            "states, one with a new id is added. They are read when the app starts; {command} says whether they are "
            "right.",
            models="`models.yaml`", gpus="`gpus.yaml`", engines="`engines/NAME.yaml`",
            folder=f"`{ws.home / 'catalog'}`", command="`python cli.py catalog check`",
        )
    )  # fmt: skip
    st.code(OWN_GPU, language="yaml")
with notice:
    st.code((REPOSITORY_CATALOG / "NOTICE").read_text(encoding="utf-8"), language=None)
