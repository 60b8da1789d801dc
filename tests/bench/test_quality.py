"""The quality set: what passes, what a bundle says of it, and how two bundles differ."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.__main__ import main
from bench.compare import compare
from bench.inputs import Inputs, read_inputs
from bench.json_schema import check_schema, fits
from bench.quality import item_of, judge_answer
from bundle.quality import Judged, read_quality, write_quality
from bundle.summary import summarise
from planner.catalog import REPOSITORY_CATALOG
from planner.conditions import Kind
from planner.contract import Contract
from planner.errors import BundleError, FliplineError, InputError
from tests.bench.answering import run_answered, text_of
from tests.bench.helpers import candidate, only_bundle, plan, point
from tests.bundle.made import bundle
from tests.planner.made import ASKED, SEEN, SHARED

PERSON = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@pytest.mark.parametrize(
    ("expectation", "good", "bad"),
    [
        ({"exact": "yes"}, [" yes\n"], ["Yes", "yes.", ""]),
        ({"contains": "Lisbon"}, ["It is lisbon.", "LISBON"], ["Porto"]),
        ({"regex": r"^\d{4}$"}, ["2027"], ["in 2027", "20270"]),
        ({"json_schema": PERSON}, ['{"age": 36}', '```json\n{"age": 36}\n```', '{"age": 36.0}'],
         ['{"age": "36"}', "{}", 'Here: {"age": 36}', '{"age": 3', '{"age": NaN}']),
        ({"number": 1250}, ["1250", "It is 1,250.", "first 7, then 1250.0"], ["1250 of 2000", "none", "-1250"]),
        ({"number": 1.41, "tolerance": 0.005}, ["1.414", "about 1.405"], ["1.42"]),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)  # fmt: skip
def test_an_answer_is_held_against_its_expectation(
    expectation: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    item = item_of({"id": "a", "prompt": "?"} | expectation, "line 1")
    assert [judge_answer(item, text).passed for text in good] == [True] * len(good)
    assert [judge_answer(item, text).passed for text in bad] == [False] * len(bad)


def test_a_request_that_failed_does_not_pass_and_keeps_its_reason() -> None:
    judged = judge_answer(item_of({"prompt": "?", "regex": ".*"}, "set line 3"), None, "HTTP 500")
    assert (judged.id, judged.passed, judged.answer) == ("3", False, "[HTTP 500]")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("nonsense", "line 1: is not a JSON object"),
        ('{"exact": "x"}', "line 1: an item needs a prompt"),
        ('{"prompt": "?"}', "line 1: an item has exactly one expectation"),
        ('{"prompt": "?", "exact": "x", "regex": "x"}', "line 1: an item has exactly one expectation"),
        ('{"prompt": "?", "equals": "x"}', "line 1: unknown field 'equals'"),
        ('{"prompt": "?", "exact": 5}', "line 1: exact takes a text"),
        ('{"prompt": "?", "regex": "("}', "line 1: '\\(' is not a regular expression"),
        ('{"prompt": "?", "number": "5"}', "line 1: number and tolerance are finite numbers"),
        ('{"prompt": "?", "number": NaN}', "line 1: number and tolerance are finite numbers"),
        ('{"prompt": "?", "exact": "x", "tolerance": 1}', "line 1: tolerance goes with number only"),
        ('{"prompt": "?", "json_schema": {"typ": "object"}}', "line 1: unknown JSON schema keyword 'typ'"),
        ('{"prompt": "?", "exact": "x"}', "holds 1 items, and the plan says requests: 6. Write requests: 1"),
        ("\n".join(['{"prompt": "?", "exact": "x", "id": "a"}'] * 6), "two items carry the same id"),
    ],
)
def test_a_set_that_cannot_be_judged_is_refused_in_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "set.jsonl").write_text(line)
    digest = hashlib.sha256(line.encode()).hexdigest()
    asked = point("set", shape="quality", quality_file="set.jsonl", file_sha256=digest)
    with pytest.raises(FliplineError, match=sentence):
        read_inputs(plan(candidate(1), points=[asked]), tmp_path)


def example() -> tuple[dict[str, Any], Inputs]:
    """The shipped set as a load point, and what it holds."""
    path = REPOSITORY_CATALOG / "quality" / "example.jsonl"
    data = path.read_bytes()
    asked = point("set", shape="quality", quality_file=path.name, file_sha256=hashlib.sha256(data).hexdigest(),
                  requests=data.count(b"\n"), output_tokens=200)  # fmt: skip
    return asked, read_inputs(plan(candidate(1), points=[asked]), path.parent).points["set"]


GOOD = {
    "sum": "43", "product": "132", "share": "36", "root": "1.41", "capital": "Lisbon",
    "word-problem": "2 h 25 min are 145",
    "element": "Iron", "reverse": "enots", "sort": "apple mango pear", "order": "yes", "date": "2027-07-04",
    "extract-mail": "help@example.com", "translate": "Guten Morgen", "json-person": '{"name": "Ada", "age": 36}',
    "json-list": "[2, 3, 5]", "json-nested": '{"items": [{"article": "lamp", "count": 2, "price": 19.5}]}',
}  # fmt: skip


def run_set(out: Path, wrong: set[str]) -> tuple[Path, list[dict[str, Any]]]:
    """Run the shipped set against a server that knows every answer but the `wrong` ones."""
    asked, inputs = example()
    known = {item.prompt: "no idea" if item.id in wrong else GOOD[item.id] for item in inputs.quality}

    def answer(body: dict[str, Any]) -> list[str]:
        text = known.get(text_of(body), "word " * min(8, int(body["max_tokens"])))
        return text.split(" ") if text_of(body) not in known else [text]

    result, bodies = run_answered(answer, out, REPOSITORY_CATALOG / "quality", points=[asked],
                                  sampling={"temperature": 0.7})  # fmt: skip
    return result.bundles[0], [b for b in bodies if text_of(b) in known]


def test_every_item_of_the_shipped_set_can_be_met(tmp_path: Path) -> None:
    _, inputs = example()
    assert [i.id for i in inputs.quality if not judge_answer(i, GOOD[i.id]).passed] == []


def test_a_run_of_the_set_gives_a_pass_rate_with_its_interval(tmp_path: Path) -> None:
    folder, bodies = run_set(tmp_path, {"sum", "root"})
    assert len(bodies) == 16
    assert all(b["temperature"] == 0.0 and "ignore_eos" not in b for b in bodies)
    rate = next(e for e in summarise(folder) if e.metric == "pass_rate")
    assert (rate.value, rate.n, rate.load_point) == (14 / 16, 16, "set")
    # Clopper-Pearson for 14 of 16 (R: binom.test(14, 16)): 0.6165 to 0.9845.
    assert rate.interval == pytest.approx((0.6165, 0.9845), abs=5e-4)
    judged = read_quality(folder / "set-1.quality.json")
    assert [j.id for j in judged if not j.passed] == ["sum", "root"]
    assert not any("output-length" in s for e in summarise(folder) for s in e.spoiled_by)


def test_two_bundles_are_paired_by_item(tmp_path: Path) -> None:
    left, _ = run_set(tmp_path / "a", set())
    right, _ = run_set(tmp_path / "b", {"sum", "root", "date", "sort", "order", "capital"})
    ((words, found),) = compare(left, right).quality
    assert words == "quality set example.jsonl, 2 in flight"
    assert (found.items, found.passed, found.only) == (16, (16, 10), (6, 0))
    assert found.p_value == pytest.approx(2 / 2**6)  # six differences, all on one side
    told = subprocess.run([".venv/bin/python", "-m", "bench", "compare", left, right], capture_output=True, text=True)
    assert "of 16 items 16 passed against 10, 6 only here and 0 only there, p = 0.031" in told.stdout


def test_results_that_were_damaged_are_refused(tmp_path: Path) -> None:
    folder, _ = run_set(tmp_path, set())
    (folder / "set-1.quality.json").write_text("[1]")
    with pytest.raises(BundleError):
        summarise(folder)
    with pytest.raises(BundleError, match="is not a list of judged items"):
        read_quality(folder / "set-1.quality.json")


def test_requests_of_a_set_stand_in_the_records_like_any_other(tmp_path: Path) -> None:
    asked, _ = example()
    result, _ = run_answered(lambda b: ["word "] * min(8, int(b["max_tokens"])), tmp_path,
                             REPOSITORY_CATALOG / "quality", points=[asked])  # fmt: skip
    _, records = only_bundle(result)
    assert [r.request for r in records] == list(range(16))  # no tail: every item is asked once
    assert all(r.outcome == "ok" and r.asked_prompt_tokens == 0 for r in records)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        # From the examples of json-schema.org/understanding-json-schema.
        ({"type": ["number", "string"]}, [42, "Life"], [["Life"], True]),
        ({"type": "integer"}, [42, 1.0], [3.14, "42", True]),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 100}, [0, 99], [-1, 100, True]),
        ({"enum": ["red", 42, None]}, ["red", 42, None], ["blue", 0, False]),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}, [[1, 2]], [[1], [1, "2"]]),
        ({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"n": {"type": "number"}}},
         [{"n": 1, "k": "x"}], [{"n": 1, "k": 2}]),
        ({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "number", "minimum": 0}]}, ["short", 12],
         ["too long", -5]),
        ({"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 3}]}, [1, 9], [4]),
        ({"not": {"type": "string"}, "allOf": [{"minimum": 1}]}, [1], ["x", 0]),
        ({"pattern": "^a+$"}, ["aa", 5], ["ab"]),
    ],
)  # fmt: skip
def test_keywords_mean_what_the_standard_says(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    check_schema(schema, where="here")
    assert [fits(v, schema) for v in good] == [True] * len(good)
    assert [fits(v, schema) for v in bad] == [False] * len(bad)


@pytest.mark.parametrize(
    "schema",
    [7, {"type": "text"}, {"enum": "a"}, {"minimum": "1"}, {"pattern": "("}, {"items": [1]}, {"required": "a"}],
)
def test_a_malformed_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InputError):
        check_schema(schema, where="here")


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)
                    | st.dictionaries(st.text(), inner), max_leaves=8)  # fmt: skip


@given(JSON)
def test_every_value_equals_itself_as_a_constant(value: Any) -> None:
    assert fits(json.loads(json.dumps(value)), {"const": value})


def in_bits(folder: Path, engine: str, quantization: str, *, answered: bool = False) -> Path:
    """A measured start of an engine in this precision; `answered` adds ten items, all passed."""
    asked = ASKED | {"engine": engine, "quantization": quantization}
    contract = Contract(shared=SHARED, candidate=asked, observed=SEEN, declared_differences=("quantization",))
    more: dict[str, Any] = {}
    if answered:
        folder.mkdir()
        write_quality(
            folder / "q.json", [Judged(id=str(i), expects="exact", passed=True, answer="") for i in range(10)]
        )
        more = {"quality": "q.json"}
    return bundle(folder, candidate=engine, kind=Kind.MEASURED, contract=contract, **more)


def test_bundles_in_two_precisions_warn_until_both_answered_a_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bits = (("vllm", "fp8"), ("ollama", "q8_0"))
    bare = [in_bits(tmp_path / engine, engine, q) for engine, q in bits]
    warned = "vllm and ollama differ in quantization (fp8 -> q8_0), and no quality result stands beside their speeds."
    assert compare(*bare).warning == f"Warning: {warned}"
    for more in ((), ("--json",)):
        assert main(["compare", *map(str, bare), *more]) == 0
        assert warned in capsys.readouterr().out
    both = [in_bits(tmp_path / f"{engine}-q", engine, q, answered=True) for engine, q in bits]
    assert compare(*both).warning == ""
    assert compare(bare[0], bare[0]).warning == ""
