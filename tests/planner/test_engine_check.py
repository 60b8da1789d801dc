"""Over the real data: every statement leads to an address, a version and a day, and no document proves a speed."""

from __future__ import annotations

import re
from datetime import date

import pytest

from bench.dialects import ROLES
from planner.catalog import load_catalog
from planner.engine_check import METRIC_ROLES, NOT_READ, citations, cited, faults
from planner.engine_schema import PERFORMANCE_AXES

ENGINES = load_catalog().engines
LAST_READ = date(2026, 11, 30)  # nothing can have been read after that; move it with the reading


@pytest.mark.parametrize("id", ENGINES)
def test_nothing_is_wrong_in_our_files(id: str) -> None:
    assert faults(ENGINES[id]) == ()


@pytest.mark.parametrize("id", ENGINES)
def test_every_statement_leads_to_what_was_read_where_and_when(id: str) -> None:
    engine = ENGINES[id]
    found = list(citations(engine))
    assert len(found) > 50
    for place, text in found:
        source = cited(engine, text)
        if source is None:
            assert text == NOT_READ and place[0] == "air_gap"
            continue
        assert "/" in source.address and source.version and source.read
        assert date(2026, 1, 1) <= source.read_on <= LAST_READ


@pytest.mark.parametrize("id", ENGINES)
def test_every_rating_says_for_which_versions_since_when_and_how_it_is_known(id: str) -> None:
    for axis in ENGINES[id].axes.values():
        assert axis.statement and axis.reason and axis.source and axis.versions
        assert axis.read_on == ENGINES[id].read_on


def test_ratings_of_performance_from_documents_alone_are_marked() -> None:
    marked = {(e.id, name) for e in ENGINES.values() for name, axis in e.axes.items() if axis.only_documented}
    assert marked == {
        ("tensorrt_llm", "quantization"), ("tensorrt_llm", "speculative_decoding"), ("tgi", "chunked_prefill"),
        ("tgi", "speculative_decoding"), ("tgi", "structured_output"), ("ollama", "structured_output"),
        ("ollama", "lora"),
    }  # fmt: skip
    assert {name for _, name in marked} <= PERFORMANCE_AXES
    assert set(ENGINES["vllm"].axes) > PERFORMANCE_AXES


DOCUMENT = re.compile(r"\.mdx?\b|\bdocs?\b|README|METADATA|release notes|\bindex\b", re.IGNORECASE)


@pytest.mark.parametrize("id", ENGINES)
def test_what_is_said_to_be_read_in_code_names_code(id: str) -> None:
    for name, axis in ENGINES[id].axes.items():
        # "ollama at fb307609: docs/faq.mdx; envconfig/config.go" names a document and a file of code.
        places = [place for text in axis.source for place in (text.partition(": ")[2] or text).split("; ")]
        if axis.evidence_kind == "read in code":
            assert not all(DOCUMENT.search(place) for place in places), (name, axis.source)


@pytest.mark.parametrize("id", ENGINES)
def test_every_engine_has_traps_that_somebody_reported(id: str) -> None:
    engine = ENGINES[id]
    addresses = [source.address for trap in engine.traps if (source := cited(engine, trap.source))]
    assert any("/issues/" in a or "/pull/" in a for a in addresses)


def test_what_bench_reads_from_a_page_is_what_a_file_must_name() -> None:
    assert {role for role, _ in ROLES.values()} <= set(METRIC_ROLES)
