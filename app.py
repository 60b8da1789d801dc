"""The screen entry: navigation, case and name. Cheap, because it runs at every rerun."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui.registry import PAGES
from ui.session import sidebar
from ui.text import t

st.set_page_config(page_title="Flipline", page_icon=":material/alt_route:", layout="wide")

sections: dict[str, list[st.Page]] = {}
for info in PAGES:
    # The address is the file's name: the first visitor's link is looked up before st.navigation has named any.
    address = Path(info.file).stem
    page = st.Page(info.file, title=t(info.title), icon=info.icon, url_path=address, help=t(info.help))
    sections.setdefault(t(info.section) if info.section else "", []).append(page)

chosen = st.navigation(sections)
sidebar()
chosen.run()
