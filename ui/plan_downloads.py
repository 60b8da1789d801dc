"""What goes to the GPU box and to whoever approves its time: the ready folder and the request."""

from __future__ import annotations

import streamlit as st

from planner.poc import Plan
from planner.requirements import Requirements
from services.gpu_request import Asking, as_html, as_markdown, gpu_request
from services.plan_costs import DEFAULT_MBIT_S
from services.ready_folder import as_zip, ready_folder
from services.workspace import Workspace, now
from ui.parts import shown_errors
from ui.session import author
from ui.text import t


def take_along(ws: Workspace, r: Requirements, slug: str, plan: Plan, body: bytes) -> None:
    """The request's own fields, and every download of the stored plan; `body` is the plan file as stored."""
    a, b, c, d = st.columns(4)
    key = f"request-{slug}"
    price = a.number_input(
        t("Price per hour ({currency})", currency=r.budget.currency), min_value=0.0, value=None, key=f"{key}-price",
        placeholder=t("not stated"), help=t("Empty: the machine's share of the capital, where that is stated."),
    )  # fmt: skip
    mbit_s = b.number_input(t("Line to the box (Mbit/s)"), min_value=1.0, value=DEFAULT_MBIT_S, format="%.0f",
                            key=f"{key}-line")  # fmt: skip
    approver = c.text_input(t("Who approves"), key=f"{key}-approver", placeholder=t("left to sign"))
    wanted = d.text_input(t("Wanted"), key=f"{key}-wanted", placeholder=t("in week 50"))
    with shown_errors():
        asking = Asking(price, mbit_s, author(), approver.strip(), wanted.strip())
        request = gpu_request(ws, r, plan, now().date(), asking)
        texts = {"request.md": as_markdown(request), "request.html": as_html(request)}
        st.markdown(t("**{time}** with downloads. Cost: {cost}.", time=request.total, cost=request.cost))
        with st.container(horizontal=True):
            st.download_button(
                t("Ready folder (.zip)"), as_zip(ready_folder(plan, body, texts), f"{slug}-poc"), f"{slug}-poc.zip",
                "application/zip", type="primary", icon=":material/folder_zip:", on_click="ignore", key=f"{key}-zip",
                help=t("Plan, a start script per candidate, the request, and a README with the commands to type."),
            )  # fmt: skip
            for name, label, mime in (
                ("request.html", t("Request, to print (.html)"), "text/html"),
                ("request.md", t("Request (.md)"), "text/markdown"),
            ):
                st.download_button(label, texts[name], f"{slug}-{name}", mime, icon=":material/description:",
                                   on_click="ignore", key=f"{key}-{name}")  # fmt: skip
    st.caption(t("A box without network gets the instrument by `make gpu-kit PLAN=plan.yaml`; the README says how."))
