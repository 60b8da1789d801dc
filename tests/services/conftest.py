import shutil

import pytest

from services.shipped import CASES, install
from services.workspace import open_workspace


def opened(folder):
    return open_workspace(folder / "home", url=f"sqlite:///{folder}/flipline.db")


@pytest.fixture
def ws(tmp_path):
    """An empty workspace in a folder of its own."""
    workspace = opened(tmp_path)
    yield workspace
    workspace.store.close()


@pytest.fixture(scope="session")
def with_two_cores(tmp_path_factory):
    """The folder of a workspace with the case "two cores" as it ships: to be copied, never to be opened."""
    folder = tmp_path_factory.mktemp("two-cores")
    workspace = opened(folder)
    install(workspace, CASES / "two-cores.yaml")
    workspace.store.close()
    return folder


@pytest.fixture(scope="session")
def with_nortia(tmp_path_factory):
    """The folder of a workspace with the Nortia case as it ships: to be copied, never to be opened."""
    folder = tmp_path_factory.mktemp("nortia")
    workspace = opened(folder)
    install(workspace, CASES / "nortia.yaml")
    workspace.store.close()
    return folder


@pytest.fixture
def shipped(with_nortia, tmp_path):
    """A workspace with the Nortia case."""
    shutil.copytree(with_nortia, tmp_path, dirs_exist_ok=True)
    workspace = opened(tmp_path)
    yield workspace
    workspace.store.close()
