"""The screen entry: navigation, case and name. Cheap, because it runs at every rerun."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui.registry import PAGES
from ui.session import sidebar
from ui.text import t

# A file of ours: the icon font's picture would be fetched from Google by every browser.
ICON = Path(__file__).parent / "ui" / "icon.svg"
st.set_page_config(page_title="Flipline", page_icon=ICON, layout="wide")

sections: dict[str, list[st.Page]] = {}
for info in PAGES:
    # The address is the file's name: the first visitor's link is looked up before st.navigation has named any.
    address = Path(info.file).stem if info is not PAGES[0] else "home"
    page = st.Page(info.file, title=t(info.title), icon=info.icon, url_path=address, help=t(info.help))
    sections.setdefault(t(info.section) if info.section else "", []).append(page)

# The first page answers at "/" and at no name of its own; a link that was written by its name has to open it too.
first = PAGES[0]
by_name = st.Page(first.file, title=t(first.title), url_path=Path(first.file).stem, visibility="hidden")
sections[""].append(by_name)

chosen = st.navigation(sections)
sidebar()
chosen.run()
