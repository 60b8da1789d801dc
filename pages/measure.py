"""Measure: run the plan here, take in bundles from a GPU box, fill a table in by hand, or bring observed usage."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from db.jobs import FINAL
from planner.units import format_duration
from services.arrivals import Arrived, bring_in_foreign, bring_in_table, bring_in_usage, bring_in_zip
from services.filled import blank_table, columns_of, rows_of
from services.foreign import Said
from services.jobs import cancel_job, collect, progress, start_job, stop_job
from services.usage import EXAMPLE, read_usage_file
from services.workspace import now
from ui.cached import seen_in, workspace
from ui.parts import flash, go_to, head, kind_badge, next_step, plain, shown_errors
from ui.session import author, open_case, signed
from ui.text import t
from ui.views import foreign_frame, runs_frame

ws = workspace()
state = open_case()
case = state.case

head("measure", t("Run the plan where the GPU is, and bring back what came out."))
for finding in state.findings:
    st.warning(plain(finding), icon=":material/report:")


@st.fragment(run_every="1s")
def watch(job_id: str) -> None:
    """A measurement that is under way; the page reruns once when it has ended."""
    job = ws.store.jobs.get(job_id)
    seen = progress(ws, job)
    if not seen.alive:
        with shown_errors():
            new = collect(ws, job)
            ended = ws.store.jobs.get(job_id)
            flash(
                t("The measurement has ended: {state}, {n} new bundles. {why}", state=t(ended.state.value), n=new,
                  why=plain(ended.message))
            )  # fmt: skip
            st.rerun()
    with st.container(border=True):
        st.markdown(f"**{t('Measuring')}** · {plain(seen.where) or t('starting')}")
        share = seen.done / seen.total if seen.total else 0.0
        st.progress(min(1.0, share), text=t("{done} of {total} requests", done=seen.done, total=seen.total or "?"))
        rate = t("{x:.2g} requests/s", x=seen.rate_per_s) if seen.rate_per_s else t("rate not known yet")
        left = (
            t("about {x} left", x=format_duration(seen.eta_s)) if seen.eta_s is not None else t("time left not known")
        )
        st.caption(f"{rate} · {left} · {t('started by {who}', who=plain(job.created_by))}")
        if seen.last_error:
            st.warning(plain(seen.last_error), icon=":material/warning:")
        with st.container(horizontal=True):
            if st.button(t("Cancel"), icon=":material/stop_circle:", key=f"cancel-{job_id}"):
                cancel_job(ws, job)
                st.toast(t("Cancelling: what is sealed so far is kept."))
            if st.button(t("Stop at once"), type="tertiary", key=f"stop-{job_id}"):
                stop_job(ws, job)


def tell(arrived: Arrived, what: str) -> None:
    """Say after the rerun what came in, and whether it re-opens a decision."""
    st.session_state["fired"] = [v.sentence for v in arrived.fired]
    flash(what)
    st.rerun()


for sentence in st.session_state.pop("fired", []):
    st.error(f"**{t('A flip condition fired.')}** {plain(sentence)}", icon=":material/notifications_active:")
    go_to("adr-log", t("A person answers it:"))

jobs = ws.store.jobs.of_case(case.id)
active = [j for j in jobs if j.state not in FINAL]
for job in active:
    watch(job.id)

WAYS = {
    "here": t("Run here"),
    "box": t("On the GPU box"),
    "theirs": t("Import results"),
    "hand": t("Fill in by hand"),
    "usage": t("Observed usage"),
}
way = st.segmented_control(
    t("Way in"), list(WAYS), default="here", format_func=WAYS.get, key="way", required=True, bind="query-params",
    label_visibility="collapsed",
)  # fmt: skip

if way != "usage" and (state.plan is None or state.stored_plan is None):
    go_to("poc-plan", t("There is no plan to measure yet. Make it first:"))

elif way == "here":
    plan, stored = state.plan, state.stored_plan
    st.markdown(
        t(
            "Runs the plan on this machine: {candidates} at {points} load points, {starts} starts each. Only where the "
            "GPU is; elsewhere the start fails, and that is a result too.",
            candidates=plain(", ".join(c.id for c in plan.candidates)), points=len(plan.load_points),
            starts=plan.starts,
        )
    )  # fmt: skip
    if state.plan_is_stale:
        go_to("poc-plan", t("The requirements changed after this plan was made."))
    if st.button(t("Run the plan"), type="primary", icon=":material/play_arrow:", disabled=bool(active)) and (
        name := signed()
    ):
        with shown_errors():
            start_job(ws, case.id, stored.sha256, name)
            st.rerun()
    st.caption(t("It goes on when you close the browser. The emulator's answers are marked simulated."))

elif way == "box":
    stored = state.stored_plan
    st.markdown(t("Take the plan to the GPU box, run it there, bring the folder back as a .zip."))
    st.download_button(
        t("Plan file"), stored.body, file_name="plan.yaml", mime="application/yaml", icon=":material/download:",
        on_click="ignore",
    )  # fmt: skip
    st.code(
        "scp plan.yaml gpu-box:\npython -m bench run plan.yaml --out results\nzip -r results.zip results",
        language="bash",
    )
    upload = st.file_uploader(t("Bundles (.zip)"), type="zip", key=f"zip-{case.slug}")
    if st.button(t("Take in"), type="primary", icon=":material/move_to_inbox:", disabled=upload is None) and (
        name := signed()
    ):
        with shown_errors():
            arrived = bring_in_zip(ws, case.id, upload.name, upload.getvalue(), name)
            new = sum(taken.new for taken in arrived.taken)
            tell(
                arrived,
                t("{new} runs came in, {old} were there already.", new=new, old=len(arrived.taken) - new),
            )

elif way == "theirs":
    st.markdown(
        f"{kind_badge('imported')} "
        + t("A result of `vllm bench serve`, SGLang, GuideLLM, AIPerf, `llama-bench`, `llama-batched-bench` or "
            "llama-benchy. The load is read from the file; what it defines otherwise is left out by name.")
    )  # fmt: skip
    upload = st.file_uploader(t("Result file"), type=["json", "jsonl", "md", "txt", "log"], key=f"theirs-{case.slug}")
    a, b, c = st.columns(3)
    candidate = a.selectbox(t("Candidate"), [x.id for x in state.plan.candidates], key=f"theirs-who-{case.slug}")
    source = b.text_input(t("From"), placeholder=t("who measured it, or its address"), key=f"theirs-from-{case.slug}")
    licence = c.text_input(t("Licence"), placeholder=t("or who allowed its use"), key=f"theirs-may-{case.slug}")
    with st.expander(t("What the file does not say")):
        d, e, f = st.columns(3)
        in_flight = d.number_input(t("In flight"), min_value=1, value=None, key=f"theirs-n-{case.slug}")
        rate = e.number_input(t("Rate (req/s)"), min_value=0.001, value=None, key=f"theirs-rate-{case.slug}")
        day = f.date_input(t("Day of the run"), value=None, max_value=now().date(), format="YYYY-MM-DD",
                           key=f"theirs-day-{case.slug}")  # fmt: skip
    said = Said(candidate, {}, source.strip(), licence.strip(), in_flight, rate, day)
    if upload is not None:
        with shown_errors():
            seen = seen_in(upload.name, upload.getvalue(), said, state.stored_plan.body)
            origin = t("from {n} requests", n=seen.requests) if seen.requests else t("as the tool computed them")
            st.markdown(f"**{plain(seen.tool)}**: " + t("{n} figures, {origin}", n=seen.figures, origin=origin))
            for finding in seen.findings:
                st.caption(plain(finding))
            stands_for = {}
            for load, words in seen.loads.items():
                stands_for[load] = st.selectbox(
                    t("{load} stands for", load=words), [p.name for p in state.plan.load_points], index=None,
                    placeholder=t("no load point of the plan"), key=f"theirs-{case.slug}-{upload.file_id}-{load}",
                    format_func=lambda name: f"{name}: {state.plan.point(name).in_words()}",
                )  # fmt: skip
            st.dataframe(
                foreign_frame(seen), hide_index=True, height="content",
                column_config={t("Here"): st.column_config.TextColumn(width="large")},
                alt=t("Terms of the file and what becomes of them"),
            )  # fmt: skip
            points = {load: point for load, point in stands_for.items() if point}
            if st.button(t("Import"), type="primary", icon=":material/move_to_inbox:") and (name := signed()):
                arrived = bring_in_foreign(
                    ws, case.id, upload.name, upload.getvalue(), said._replace(points=points), name
                )
                new = any(taken.new for taken in arrived.taken)
                tell(
                    arrived,
                    t("{n} figures came in from {tool}.", n=seen.figures, tool=plain(seen.tool)) if new
                    else t("This result was there already."),
                )  # fmt: skip

elif way == "hand":
    plan = state.plan
    st.markdown(
        f"{kind_badge('entered')} "
        + t("Figures without load and lengths mean nothing, so they stand beside each row. Leave empty what nobody "
            "measured.")
    )  # fmt: skip
    version = len([e for e in state.evidence if e.kind == "entered"])
    figures = [c.name for c in columns_of(plan)]
    whole = {
        "n": t("Requests (n)"), "in_flight": t("In flight"), "input_tokens": t("Input tokens"),
        "output_tokens": t("Output tokens"),
    }  # fmt: skip
    config = {
        "candidate": st.column_config.TextColumn(t("Candidate")),
        "load_point": st.column_config.TextColumn(t("Load point")),
        "rate_per_s": st.column_config.NumberColumn(t("Rate (req/s)"), min_value=0.0),
        **{name: st.column_config.NumberColumn(t(name), min_value=0.0) for name in figures},
        **{name: st.column_config.NumberColumn(label, min_value=1, step=1) for name, label in whole.items()},
    }
    blank = pd.DataFrame(blank_table(plan)).astype(
        {"in_flight": "Int64", "rate_per_s": "Float64", "n": "Int64", **dict.fromkeys(figures, "Float64")}
    )
    table = st.data_editor(
        blank, key=f"hand-{case.slug}-{state.stored_plan.sha256[:12]}-{version}", hide_index=True,
        column_config=config, disabled=["candidate", "load_point"], placeholder="–",
        column_order=["candidate", "load_point", *figures, "n", "in_flight", "rate_per_s", "input_tokens",
                      "output_tokens"],
        alt=t("Results by load point, to fill in"),
    )  # fmt: skip
    a, b, c = st.columns(3)
    by = a.text_input(t("Measured by"), value=author(), key=f"hand-by-{case.slug}")
    source = b.text_input(t("From"), placeholder=t("log, sheet or message"), key=f"hand-from-{case.slug}-{version}")
    day = c.date_input(t("Day of the run"), value=now().date(), max_value=now().date(), format="YYYY-MM-DD")
    if st.button(t("Store these figures"), type="primary", icon=":material/save:") and signed():
        with shown_errors():
            rows = rows_of(plan, table.astype(object).where(table.notna(), None).to_dict("records"))
            arrived = bring_in_table(ws, case.id, rows, by=by, source=source, measured_at=day)
            tell(arrived, t("{n} figures are stored, as entered by {who}.", n=len(arrived.evidence), who=plain(by)))

else:
    st.markdown(
        f"{kind_badge('observed')} "
        + t("What users really did, from monitoring or request logs. Load in a benchmark never counts as this.")
    )
    st.markdown(
        "- " + t("A row a day: `date,peak_in_flight` and, if known, `requests`.")
        + "\n- " + t("Or a row a request: `start,end` in ISO 8601; the daily peak is counted from them.")
    )  # fmt: skip
    st.download_button(
        t("Example"), EXAMPLE, file_name="usage.csv", mime="text/csv", icon=":material/download:", on_click="ignore"
    )
    upload = st.file_uploader(t("Usage (.csv)"), type="csv", key=f"usage-{case.slug}")
    if st.button(t("Bring in"), type="primary", icon=":material/move_to_inbox:", disabled=upload is None) and (
        name := signed()
    ):
        with shown_errors():
            usage = read_usage_file(upload.name, upload.getvalue())
            arrived = bring_in_usage(ws, case.id, usage, by=name, source=upload.name)
            tell(
                arrived,
                t(
                    "{n} days came in, {first} to {last}; the highest peak was {peak:g} in flight.", n=len(usage),
                    first=usage[0].day, last=usage[-1].day, peak=max(u.peak_in_flight for u in usage),
                ),
            )  # fmt: skip

st.subheader(t("Runs"))
if state.runs:
    st.markdown(" ".join(kind_badge(k) for k in dict.fromkeys(r.kind.value for r in state.runs)))
    st.dataframe(
        runs_frame(state), hide_index=True, height="content", alt=t("Runs of this case with status and findings")
    )
else:
    st.markdown(t("Nothing was measured yet."))

past = [j for j in jobs if j.state in FINAL]
if past:
    with st.expander(t("Earlier measurements from this page ({n})", n=len(past)), icon=":material/history:"):
        for job in past:
            st.markdown(
                f"- {job.created_at:%Y-%m-%d %H:%M} UTC · **{t(job.state.value)}** · {plain(job.created_by)}"
                + (f" · {plain(job.message)}" if job.message else "")
            )

next_step("measure", primary=bool(state.runs))
