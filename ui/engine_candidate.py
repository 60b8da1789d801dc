"""Which model plan and machine the engines are scored on; the plan and the decision keep to the favourite."""

from __future__ import annotations

import streamlit as st

from planner.requirements import Requirements
from services.scores import on_candidate
from services.workspace import Workspace
from ui.parts import plain
from ui.text import t


def chosen_candidate(ws: Workspace, r: Requirements, key: str) -> Requirements:
    """Controls for what there is a choice of, and the requirements with what was chosen in the first place."""
    plans = {p.id: f"{p.id} · {p.label}" for p in r.model_plans}
    machines = {h.gpu: ws.catalog.gpu(h.gpu).name for h in r.hardware}
    favourite, first = r.favourite_plan.id, r.hardware[0].gpu
    plan, machine = favourite, first
    if len(machines) > 1:
        machine = st.segmented_control(t("Machine"), list(machines), default=first, required=True,
                                       format_func=machines.get, key=f"{key}-machine")  # fmt: skip
    if len(plans) > 1:
        plan = st.segmented_control(t("Model plan"), list(plans), default=favourite, required=True,
                                    format_func=plans.get, key=f"{key}-plan", label_visibility="collapsed"
                                    )  # fmt: skip
    if (plan, machine) != (favourite, first):
        st.caption(t("Scored on plan {plan} and {machine}. The PoC plan and the decision keep to plan {favourite} on "
                     "{first}.", plan=plain(str(plan)), machine=plain(machines[str(machine)]),
                     favourite=plain(favourite), first=plain(machines[first])))  # fmt: skip
    return on_candidate(r, str(plan), str(machine))
