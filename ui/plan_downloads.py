"""What goes to the GPU box and to whoever approves its time: the ready folder and the request."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from planner.poc import Plan
from planner.requirements import Requirements
from services.gpu_kit import PROCESSORS, gpu_kit
from services.gpu_request import Asking, as_html, as_markdown, gpu_request
from services.plan_costs import DEFAULT_MBIT_S
from services.plan_files import shipped_beside
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
        arch = st.segmented_control(
            t("The instrument on the box"), ["", *PROCESSORS], default="", required=True, key=f"{key}-arch",
            format_func=lambda a: t("packed for {arch}", arch=a) if a else t("is installed there"),
            help=t("Packed, it needs no network on the box; packing takes about a minute and a package index here."),
        )  # fmt: skip
        kit = _packed(arch, plan, body, f"{key}-kit") if arch else {}
        with st.container(horizontal=True):
            if kit is not None:
                st.download_button(
                    t("Ready folder (.zip)"), lambda: as_zip(ready_folder(plan, body, texts, kit), f"{slug}-poc"),
                    f"{slug}-poc.zip", "application/zip", type="primary", icon=":material/folder_zip:",
                    on_click="ignore", key=f"{key}-zip",
                    help=t("Plan, a start script per candidate, the request, and a README with the commands to type."),
                )  # fmt: skip
            for name, label, mime in (
                ("request.html", t("Request, to print (.html)"), "text/html"),
                ("request.md", t("Request (.md)"), "text/markdown"),
            ):
                st.download_button(label, texts[name], f"{slug}-{name}", mime, icon=":material/description:",
                                   on_click="ignore", key=f"{key}-{name}")  # fmt: skip


def _packed(arch: str, plan: Plan, body: bytes, key: str) -> Mapping[str, bytes] | None:
    """The instrument for a processor once somebody had it packed; None until then."""
    wanted = (arch, plan.sha256())
    if st.button(t("Pack the instrument"), icon=":material/inventory_2:", key=key):
        with st.spinner(t("Fetching the packages for {arch}", arch=arch)):
            st.session_state[f"{key}-packed"] = wanted, gpu_kit(arch, body, shipped_beside(plan))
    found, kit = st.session_state.get(f"{key}-packed", (None, None))
    return kit if found == wanted else None
