"""Several people save at once and one of them is killed: a short run of what perf/writers.py does for a minute."""

import pytest

from perf.writers import in_words, report

WRITERS, SECONDS = 3, 1.0


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    if request.param == "sqlite":
        yield None
        return
    server = request.getfixturevalue("postgres")
    name = server.make()
    yield server.url(name)
    server.drop(name)


def test_nothing_is_lost_and_nothing_doubled(url):
    found = report(url, WRITERS, SECONDS)
    assert found["reached"], in_words(found)
    assert found["database"].startswith("postgresql" if url else "sqlite")
    assert found["comments"] > WRITERS
    assert found["accepted"] > 0
