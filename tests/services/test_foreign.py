"""Another tool's result is looked at, taken in as imported, and decides with these words; a bad file leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.conditions import Kind
from planner.errors import InputError
from planner.loads import LoadPoint
from services.arrivals import bring_in_foreign
from services.foreign import Said, look
from services.verdicts import case_state, judge_levels
from tests.services.made import CASE, small_plan, with_plan

FOREIGN = Path(__file__).parents[1] / "golden" / "foreign"
POINT = LoadPoint(name="pair", in_flight=2, input_tokens=1000, output_tokens=200)


@pytest.fixture
def case(shipped):
    made = small_plan(POINT)
    levels = tuple(
        c for c in case_state(shipped, CASE).requirements.service_levels() if c.metric == "user_tok_s"
    )  # at least 20 tok/s for the slowest 5 %: seed 001
    return with_plan(shipped, made.model_copy(update={"service_levels": levels}))


def benchy() -> bytes:
    return (FOREIGN / "llama-benchy.json").read_bytes()


SAID = Said("vllm", {"in-flight-2-1000-200": "pair"}, source="team B", licence="their own")


def test_looking_stores_nothing(shipped, case):
    seen = look("b.json", benchy(), Said("vllm"), None)
    assert (seen.tool, seen.loads) == (
        "llama-benchy 0.4.0",
        {"in-flight-2-1000-200": "2 in flight, 1,000 in / 200 out"},
    )
    assert seen.taken == {"tg t/s (req)": "user_tok_s", "e2e_ttft": "ttft_service_ms"}
    assert shipped.store.runs.of_case(case) == ()


def test_an_imported_result_decides_as_imported_with_its_source_in_the_sentence(shipped, case):
    (taken,) = bring_in_foreign(shipped, case, "b.json", benchy(), SAID, "Kim").taken
    assert (taken.new, taken.run.kind, taken.run.imported_by) == (True, Kind.IMPORTED, "Kim")
    verdict = judge_levels(case_state(shipped, CASE))["vllm", "pair"]
    assert verdict.state == "holds"  # 30, 32, 34, 36 tok/s
    assert "as imported, n = 4 (llama-benchy 0.4.0, b.json, team B, their own; 2 in flight" in verdict.sentence


def test_an_engine_without_a_server_gives_an_expectation_and_decides_nothing(shipped):
    point = LoadPoint(name="alone", in_flight=1, input_tokens=4096, output_tokens=128)
    levels = tuple(
        c for c in case_state(shipped, CASE).requirements.service_levels() if c.metric == "user_tok_s"
    )  # at least 20 tok/s for the slowest 5 %: seed 001
    case = with_plan(shipped, small_plan(point).model_copy(update={"service_levels": levels}))
    said = Said("vllm", {"in-flight-1-4096-128": "alone"})
    file = (FOREIGN / "llama-bench.json").read_bytes()
    assert look("l.json", file, said, None).findings == (
        "the engine alone was timed, so its figures give an expectation and decide nothing",
    )
    bring_in_foreign(shipped, case, "l.json", file, said, "Kim")
    verdict = judge_levels(case_state(shipped, CASE))["vllm", "alone"]
    assert (verdict.state, verdict.kind) == ("unmeasured", None)
    assert verdict.expectation == "predicted to hold: 30 tok/s against 20 tok/s (engine-alone)"


def test_the_same_result_twice_is_one_run(shipped, case):
    bring_in_foreign(shipped, case, "b.json", benchy(), SAID, "Kim")
    (again,) = bring_in_foreign(shipped, case, "b.json", benchy(), SAID, "Lee").taken
    assert not again.new
    assert len(shipped.store.runs.of_case(case)) == 1


@pytest.mark.parametrize(
    ("content", "said", "sentence"),
    [
        (b"", SAID, r"^b\.json: is empty"),
        (b'{"tokens": 3}', SAID, r"^b\.json: is no result that can be read here"),
        (benchy()[:-200], SAID, r"^b\.json: is not whole: the JSON breaks off at line"),
        (benchy(), SAID._replace(candidate="vlm"), r"unknown candidate 'vlm'. Did you mean 'vllm'"),
        (benchy(), SAID._replace(source="--help me", points={"": "peak"}), r"unknown load point 'peak'"),
    ],
)
def test_a_bad_upload_is_one_sentence_and_leaves_the_store_as_it_was(shipped, case, content, said, sentence):
    before = len(shipped.store.evidence.of_case(case)), sorted(shipped.runs.iterdir())
    with pytest.raises(InputError, match=sentence):
        bring_in_foreign(shipped, case, "b.json", content, said, "Kim")
    assert (len(shipped.store.evidence.of_case(case)), sorted(shipped.runs.iterdir())) == before
    assert shipped.store.runs.of_case(case) == ()
