import pytest

from services.workspace import open_workspace
from tests.services.made import nortia


@pytest.fixture
def ws(tmp_path):
    """An empty workspace in a folder of its own."""
    workspace = open_workspace(tmp_path / "home", url=f"sqlite:///{tmp_path}/flipline.db")
    yield workspace
    workspace.store.close()


@pytest.fixture
def shipped(ws):
    """The same with the Nortia case as it ships."""
    nortia(ws)
    return ws
