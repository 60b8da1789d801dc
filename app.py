"""The screen entry: navigation, case and name. Cheap, because it runs at every rerun."""

from __future__ import annotations

import streamlit as st

from ui.registry import PAGES
from ui.session import sidebar
from ui.text import t

st.set_page_config(page_title="Flipline", page_icon=":material/alt_route:", layout="wide")

sections: dict[str, list[st.Page]] = {}
for info in PAGES:
    page = st.Page(info.file, title=t(info.title), icon=info.icon, url_path=info.url, help=t(info.help))
    sections.setdefault(t(info.section) if info.section else "", []).append(page)

chosen = st.navigation(sections)
sidebar()
chosen.run()
