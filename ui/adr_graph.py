"""What supersedes what, and what a decision rests on: drawn, and as sentences for those who do not see the picture."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from decisions.graph import Graph, to_dot
from decisions.record import Adr
from services.adr_graph import graph_around, graph_of, tied
from services.workspace import Workspace
from ui.text import t


def decision_graph(ws: Workspace, adr: Adr, log: Sequence[Adr]) -> None:
    """The line of one decision with what it rests on, or how the decisions of the log are tied."""
    ways = {"one": t("This decision"), "log": t("Every decision that is listed")}
    way = st.segmented_control(t("Show"), list(ways), default="one", format_func=ways.get, key="graph-way",
                               required=True, label_visibility="collapsed")  # fmt: skip
    if way == "one":
        graph = graph_around(ws, adr)
    else:
        listed = tied(log)
        graph = graph_of(ws, listed, inputs=False)
        if not listed:
            st.markdown(t("No decision is tied to another one."))
            return
        if len(listed) < len(log):
            st.caption(t("{n} of {all} are tied to another one and are drawn.", n=len(listed), all=len(log)))
    _drawn(graph, adr.id)


def _drawn(graph: Graph, focus: str) -> None:
    sentences = graph.sentences()
    st.graphviz_chart(
        to_dot(graph, focus), width="stretch" if len(graph.nodes) > 4 else "content",
        alt=t("{n} decisions and what they rest on; the table below says the same", n=len(graph.nodes)),
    )  # fmt: skip
    if not sentences:
        st.markdown(t("It supersedes nothing, and nothing that it rests on was stored yet."))
        return
    rows = [{t("Decision"): a, t("Relation"): t(relation), t("To"): b} for a, relation, b in sentences]
    with st.expander(t("As text"), icon=":material/list:"):
        st.dataframe(pd.DataFrame(rows), hide_index=True, alt=t("The relations of the picture, one a row"))
        st.download_button(t("Download the picture's text (.dot)"), to_dot(graph, focus), "decisions.dot",
                           "text/vnd.graphviz", icon=":material/download:", on_click="ignore")  # fmt: skip
