"""A workspace with the shipped cases, installed once a session: a test works on a copy of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.shipped import install_shipped
from services.workspace import open_workspace


@pytest.fixture(scope="session")
def shipped_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be copied, never to be opened."""
    home = tmp_path_factory.mktemp("shipped") / "home"
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    install_shipped(ws)
    ws.store.close()
    return home
