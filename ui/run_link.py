"""Links to one run on the Results page: how they read, and which run the address asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import streamlit as st

from db.runs import Run
from ui.parts import plain
from ui.text import t

ANCHOR = "run"  # of the section "One run in time"


def run_words(run: Run) -> str:
    """A run as it is called: whose, which stage and start, and the beginning of its hash."""
    words = t("{who} stage {stage} start {n}", who=run.candidate, stage=run.stage, n=run.start)
    return f"{words} ({run.sha256[:12]})"


def in_order(named: Iterable[str], runs: Mapping[str, Run]) -> list[Run]:
    """Those of `runs` that are named, by candidate, stage and start."""
    found = (runs[name] for name in set(named) if name in runs)
    return sorted(found, key=lambda r: (r.candidate, r.stage, r.start, r.created_at))


def run_link(slug: str, run: Run, page: str = "") -> str:
    """A run as a link, in Markdown; without a link where the server never came up, since nothing ran in time.

    `page` is the address of the Results page, seen from another one.
    """
    words = plain(run_words(run))
    return words if run.status == "failed" else f"[{words}]({page}?case={slug}&run={run.sha256[:12]}#{ANCHOR})"


def linked_run(hashes: Sequence[str]) -> int:
    """The place of the run that the address names, else the last."""
    asked = st.query_params.get("run") or "-"
    return next((i for i, sha256 in enumerate(hashes) if sha256.startswith(asked)), len(hashes) - 1)
