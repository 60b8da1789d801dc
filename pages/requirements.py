"""Requirements: a form with validation, kept as versions; contradictions are named at once."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.quantization import QUANTIZATIONS
from planner.requirements import PRESETS, ModelPlan, Requirements, contradictions
from services.cases import begin_case, requirements_from, save_requirements
from ui.cached import workspace
from ui.diff_view import requirements_history
from ui.parts import flash, go_to, head, next_step, plain, shown_errors
from ui.session import open_case, open_next, signed
from ui.text import t
from ui.traffic import show as show_traffic

ws = workspace()
state = open_case()
r = state.requirements
assert r is not None  # a case begins with requirements

head("requirements", t("What the team needs. Every save is a version; sizing, score and plan follow from it."))

for c in contradictions(r):
    st.warning(f"**{plain(c.sentence)}** {plain(c.way_out)}", icon=":material/report:")
if state.plan_is_stale:
    go_to("poc-plan", t("The plan was made for older requirements: its hypotheses and launch commands may not fit."))

# A preset fills the form; nothing is stored before Save.
with st.container(horizontal=True, vertical_alignment="bottom"):
    preset = st.selectbox(
        t("Start from a preset"), [None, *PRESETS], format_func=lambda p: t(p) if p else "–", width=260
    )
show_traffic(ws, state, r)
shown = r.model_copy(update=PRESETS[preset]) if preset else r  # values of a preset are checked when saved
key = f"{state.case.slug}-{state.version.n if state.version else 0}-{preset}"


def number(label: str, value: float | int | None, name: str, **more: object) -> float | int | None:
    """A number field whose key changes with case, version and preset, so that it shows what is stored."""
    if isinstance(value, float):
        more = {"format": "%g"} | more
    return st.number_input(label, value=value, key=f"req-{name}-{key}", **more)


def percent(label: str, share: float | None, name: str, **more: object) -> float | None:
    """A share, shown and typed in percent."""
    shown_as = None if share is None else round(100 * share, 4)
    given = number(label, shown_as, name, min_value=0.0, max_value=100.0, **more)
    return None if given is None else round(given / 100, 6)  # 1.1 / 100 is not quite 0.011


with st.form(f"requirements-{key}", border=False):
    users, speed, length = st.columns(3)
    with users:
        st.subheader(t("Users"))
        peak_min = number(t("Peak users at once, from"), shown.peak_users_min, "min", min_value=1, step=1)
        peak_max = number(t("Peak users at once, to"), shown.peak_users_max, "max", min_value=1, step=1)
        per_min = number(t("Requests per user and minute"), shown.requests_per_user_per_min, "rpm", min_value=0.01)
        arrival = st.selectbox(
            t("Arrival"),
            ["constant", "poisson", "gamma"],
            index=["constant", "poisson", "gamma"].index(shown.arrival),
            key=f"req-arrival-{key}",
        )
    with speed:
        st.subheader(t("Promise"))
        promise = number(t("Speed promised per user (tok/s)"), shown.user_tok_s_promise, "promise", min_value=0.1)
        target = number(t("Speed aimed at per user (tok/s)"), shown.user_tok_s_target, "target", min_value=0.1)
        ttft = number(t("First token within (s), queue included"), shown.ttft_s, "ttft", min_value=0.01)
        percentile = number(
            t("… for this share of requests (%)"), shown.ttft_percentile, "pct", min_value=50, max_value=99
        )
        completion = number(t("Answer complete within (s)"), shown.completion_s, "completion", min_value=0.1)
        answer = number(
            t("… for answers of this many tokens"),
            shown.completion_answer_tokens,
            "answer",
            min_value=1,
            step=1,
            help=t("A completion time means nothing without the answer length it applies to."),
        )
    with length:
        st.subheader(t("Lengths"))
        prompt = number(t("Prompt (tokens)"), shown.input_tokens, "in", min_value=1, step=1)
        output = number(t("Answer (tokens)"), shown.output_tokens, "out", min_value=1, step=1)
        context = number(
            t("Context, prompt and answer together (tokens)"), shown.context_tokens, "ctx", min_value=16, step=1
        )
        prefix = percent(t("Shared prefix (% of the prompt)"), shown.shared_prefix_share, "prefix",
                         placeholder=t("not known"))  # fmt: skip
        errors = percent(t("Failed requests allowed (%)"), shown.error_share_max, "err")

    st.subheader(t("Model plans"))
    models = pd.DataFrame([p.model_dump() for p in shown.model_plans])
    plans = st.data_editor(
        models,
        key=f"plans-{key}",
        num_rows="dynamic",
        hide_index=True,
        column_config={
            "id": st.column_config.TextColumn(t("Id"), required=True),
            "label": st.column_config.TextColumn(t("Label"), required=True),
            "model": st.column_config.SelectboxColumn(
                t("Model"),
                options=sorted(ws.catalog.models),
                required=True,
                help=t("Not in the list? Add it on the Catalogue page, under Own entries."),
            ),
            "weight_format": st.column_config.SelectboxColumn(
                t("Format"), options=["safetensors", "gguf"], required=True
            ),
            "quantization": st.column_config.SelectboxColumn(
                t("Quantization"), options=sorted(QUANTIZATIONS), required=True
            ),
            "kv_cache_dtype": st.column_config.SelectboxColumn(
                t("KV cache"), options=["fp16", "bf16", "fp8", "fp32"], required=True
            ),
            "favourite": st.column_config.CheckboxColumn(t("Favourite")),
            "note": st.column_config.TextColumn(t("Note")),
        },
        alt=t("Model plans of this case"),
    )

    machine, team, must = st.columns(3)
    with machine:
        st.subheader(t("Machine"))
        gpus = sorted(ws.catalog.gpus)
        gpu = st.selectbox(
            t("GPU"),
            gpus,
            index=gpus.index(ws.catalog.gpu(shown.hardware[0].gpu).id),
            format_func=lambda id: ws.catalog.gpus[id].name,
            key=f"req-gpu-{key}",
        )
        count = number(t("GPUs"), shown.hardware[0].count, "gpus", min_value=1, step=1)
        tenants = number(
            t("Memory taken by others on it (GB)"), shown.hardware[0].other_tenants_gb, "tenants", min_value=0.0
        )
        in_house = st.checkbox(t("In house already"), shown.hardware[0].in_house, key=f"req-house-{key}")
    with team:
        st.subheader(t("Team"))
        full = number(t("Operators, full time"), shown.operators_full_time, "full", min_value=0.0, step=0.5)
        part = number(t("Operators, part time"), shown.operators_part_time, "part", min_value=0.0, step=1.0)
        efforts = ["low", "medium", "high"]
        effort = st.selectbox(
            t("Upgrade effort they can carry"),
            efforts,
            index=efforts.index(shown.upgrade_effort),
            key=f"req-effort-{key}",
        )
        engines = [None, *sorted(ws.catalog.engines)]
        current = st.selectbox(
            t("Engine in use today"),
            engines,
            index=engines.index(shown.current_engine),
            format_func=lambda e: ws.catalog.engines[e].name if e else t("none"),
            key=f"req-engine-{key}",
        )
    with must:
        st.subheader(t("Must have"))
        apis = ["openai-chat", "openai-completions", "any"]
        api = st.selectbox(t("API form"), apis, index=apis.index(shown.api), key=f"req-api-{key}")
        metrics = st.checkbox(t("Metrics from the server"), shown.metrics_needed, key=f"req-m-{key}")
        structured = st.checkbox(t("Structured output"), shown.structured_output, key=f"req-s-{key}")
        lora = st.checkbox(t("LoRA adapters"), shown.lora, key=f"req-l-{key}")
        multimodal = st.checkbox(t("Images or audio"), shown.multimodal, key=f"req-mm-{key}")
        later = st.checkbox(t("Several GPUs later"), shown.multi_gpu_later, key=f"req-later-{key}")
        air_gap = st.checkbox(t("No network on the machine"), shown.air_gap, key=f"req-gap-{key}")
    notes = st.text_area(t("Notes"), shown.notes, key=f"req-notes-{key}")
    save = st.form_submit_button(t("Save as a new version"), type="primary", icon=":material/save:")


def entered() -> Requirements:
    """The form as requirements; raises InputError with the field that is wrong."""
    hardware = {
        "gpu": gpu,
        "count": count,
        "in_house": in_house,
        "other_tenants_gb": tenants,
        "os": shown.hardware[0].os,
    }
    rows = [
        ModelPlan.model_validate(row).model_dump()
        for row in plans.fillna({"note": "", "favourite": False}).to_dict("records")
    ]
    return requirements_from(
        r.model_dump()
        | {
            "peak_users_min": peak_min, "peak_users_max": peak_max, "requests_per_user_per_min": per_min,
            "arrival": arrival, "user_tok_s_promise": promise, "user_tok_s_target": target, "ttft_s": ttft,
            "ttft_percentile": percentile, "completion_s": completion, "completion_answer_tokens": answer,
            "input_tokens": prompt, "output_tokens": output, "context_tokens": context, "shared_prefix_share": prefix,
            "error_share_max": errors, "model_plans": rows, "hardware": [hardware, *r.model_dump()["hardware"][1:]],
            "operators_full_time": full, "operators_part_time": part, "upgrade_effort": effort,
            "current_engine": current, "api": api, "metrics_needed": metrics, "structured_output": structured,
            "lora": lora, "multimodal": multimodal, "multi_gpu_later": later, "air_gap": air_gap, "notes": notes,
        }
    )  # fmt: skip


if save and (name := signed()):
    with shown_errors():
        before = state.version.n if state.version else 0
        version = save_requirements(ws, state.case.id, entered(), name, before)
        if version.n == before:
            flash(t("Nothing changed: version {n} stands.", n=version.n))
        else:
            flash(t("Saved as version {n}.", n=version.n))
        st.rerun()

requirements_history(ws, state.case.id)

with (
    st.expander(t("Start your own case"), icon=":material/add:"),
    st.form("new-case", border=False, clear_on_submit=False),
):
    title = st.text_input(t("What is decided?"), placeholder=t("Acme, support assistant"))
    st.caption(t("The new case begins with the requirements of this one; change them in the form above."))
    if st.form_submit_button(t("Begin")) and (name := signed()):
        with shown_errors():
            case = begin_case(ws, title, r, name)
            open_next(case.slug)
            flash(t("'{title}' is begun and open: change its requirements below.", title=plain(case.title)))
            st.rerun()

next_step("requirements")
