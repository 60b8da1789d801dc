"""How properties are tried, which files begin, and a workspace with the shipped cases, installed once to be copied."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import settings

from services.shipped import install_shipped
from services.workspace import open_workspace
from tests.postgres import postgres

__all__ = ["postgres", "shipped_home"]

# A deadline would fail on a busy machine what is right; fewer examples than usual keep the whole quick.
settings.register_profile("flipline", deadline=None, max_examples=50)
settings.load_profile("flipline")

# Files are given to processes in this order; a long one that began last would end alone.
LONGEST = ("test_runner", "test_faults", "test_lifecycle", "test_shards", "test_gpu_kit", "test_pages")
# Folders that hold limits of time or drive a browser; single tests elsewhere carry the mark themselves.
ALONE_FOLDERS = ("perf", "browser")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, all others keep their order; what is timed runs alone, which -m is to see."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    for item in items:
        if item.path.parent.name in ALONE_FOLDERS:
            item.add_marker("alone")


def pytest_collection_finish() -> None:
    """Spare the collector what is loaded by now and stays: going through it took a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def shipped_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be copied, never to be opened."""
    home = tmp_path_factory.mktemp("shipped") / "home"
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    install_shipped(ws)
    ws.store.close()
    return home
