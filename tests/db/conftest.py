import pytest

from tests.db.made import a_store


@pytest.fixture
def store(tmp_path):
    store = a_store(tmp_path)
    yield store
    store.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "flipline.db"
