"""The app on a workspace of its own: empty (the shipped cases alone), or full (measured, decided, re-opened)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from decisions.record import People
from services.arrivals import bring_in, bring_in_usage
from services.decisions import accept, begin_draft, propose_draft, save_draft
from services.filled import Filled, fill_in
from services.usage import Usage
from services.verdicts import case_state
from services.workspace import ROOT, Workspace, now, open_workspace
from tests.bundle.made import bundle
from ui.registry import BY_URL

Launch = Callable[[str], AppTest]
# Every AppTest searches the metadata of all installed packages for components, a third of its time; a running app does
# so once.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture
def home(tmp_path: Path, shipped_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = shutil.copytree(shipped_home, tmp_path / "home")
    monkeypatch.setenv("FLIPLINE_HOME", str(home))
    st.cache_resource.clear()
    st.cache_data.clear()
    yield home
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def gap(home: Path) -> str:
    """The id of a GPU whose bandwidth is not known here: our figure is taken back in the team's own catalogue."""
    gpu = "nvidia-jetson-agx-thor-t5000"
    (home / "catalog").mkdir()
    (home / "catalog" / "gpus.yaml").write_text(f"schema: 1\ngpus:\n  - {{id: {gpu}, bandwidth_gb_s: null}}\n")
    return gpu


@pytest.fixture
def launch(home: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Open a page of the app by its address.

    AppTest forgets at every run that st.navigation was called in this process, which makes each run look like the very
    first visit (see ui/cached.py) and loses its click. Here it is remembered, as in a running app.
    """
    begin = PagesManager.__init__

    def remembered(manager: PagesManager, *args: Any, **more: Any) -> None:
        begin(manager, *args, **more)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", remembered)

    def opened(url: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app.session_state["case"] = "nortia"
        return app.switch_page(BY_URL[url].file).run()

    return opened


@pytest.fixture(scope="session")
def decided_home(shipped_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nortia with a run, a failed start, figures by hand, an accepted ADR, usage that fires it, and the next draft."""
    folder = tmp_path_factory.mktemp("decided")
    home = shutil.copytree(shipped_home, folder / "home")
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    state = case_state(ws, "nortia")
    plan = state.plan
    assert plan is not None
    runs = folder / "runs"
    bundle(runs / "vllm-1", point=plan.point("parallel-2"), plan_sha256=plan.sha256())
    bundle(runs / "ollama-1", started=False, candidate="ollama", point=plan.point("single"), plan_sha256=plan.sha256())
    bring_in(ws, "nortia", runs, "Test")
    row = Filled("vllm", "parallel-16", 16, None, 3596, 500, "user_tok_s", "p5", 9.0, 64)
    fill_in(ws, state.case.id, [row], by="Test", source="a sheet", measured_at=now().date() - timedelta(days=1),
            plan=plan)  # fmt: skip
    stored = ws.store.adrs.draft(state.adrs[0].id)
    named = stored.adr.model_copy(update={"people": People(decided=("Test",))})
    saved = save_draft(ws, named, stored.version, "Test")
    proposed = propose_draft(ws, named.id, saved.version, "Test")
    accept(ws, proposed.id, "Test")
    begin = now().date() - timedelta(days=29)
    usage = [Usage(begin + timedelta(days=i), 4.0, 100.0) for i in range(28)]
    assert bring_in_usage(ws, "nortia", usage, by="Test", source="gateway log").fired
    begin_draft(ws, "nortia", "Test", supersedes=proposed.id)
    ws.store.close()
    return home


@pytest.fixture
def full(home: Path, decided_home: Path) -> Workspace:
    """The workspace at `home`, measured and decided."""
    shutil.copytree(decided_home, home, dirs_exist_ok=True)
    return open_workspace(home)
