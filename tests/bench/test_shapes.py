"""Every load shape from plan to bundle, and the files that shapes need."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bench.emulator.settings import Settings
from bench.inputs import read_inputs, read_trace
from bench.runner import run_plan
from bench.schedule import TraceRow
from bundle.records import Record
from bundle.samples import gaps
from bundle.summary import summarise
from planner.conditions import Evidence
from planner.errors import FliplineError, InputError
from tests.bench.answering import run_answered, text_of
from tests.bench.helpers import FAST, candidate, only_bundle, plan, point, run_attached, with_emulator

HEAD = "t_s,input_tokens,output_tokens\n"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def shaped(shape: str, **more: Any) -> dict[str, Any]:
    """A small point of a shape that has no in_flight of its own."""
    return point(shape, shape=shape) | {"in_flight": None} | more


def written(path: Path, text: str) -> dict[str, str]:
    """Write a file that a plan names; its name and checksum as a load point states them."""
    path.write_text(text, encoding="utf-8")
    return {"name": path.name, "file_sha256": hashlib.sha256(text.encode()).hexdigest()}


def of(evidence: list[Evidence], metric: str, statistic: str = "value") -> Evidence:
    return next(e for e in evidence if (e.metric, e.statistic) == (metric, statistic))


def cohort(records: list[Record], name: str) -> list[Record]:
    return [r for r in records if r.cohort == name]


def test_a_ramp_is_sent_at_its_times_and_counted_after_it(tmp_path: Path) -> None:
    ramp = shaped("ramp", rate_per_s=20, rate_to_per_s=60, ramp_s=0.5, arrival="constant", requests=32)
    folder = tmp_path / "emu-A-start1"
    manifest, records = only_bundle(run_attached(FAST, tmp_path, points=[ramp]))
    load = cohort(records, "load")
    # 20 t + 80 t^2 / 2 = n: the tenth at 0.309 s; 20 requests in the ramp, then one each 1/60 s.
    assert load[9].scheduled_s == pytest.approx((-20 + (400 + 1600) ** 0.5) / 80)
    assert load[31].scheduled_s == pytest.approx(0.5 + 12 / 60)
    assert all(r.outcome == "ok" for r in load)
    # Counted from the end of the ramp: 12 are due behind it, and the 20th at its very end, give or take a rounding.
    assert of(summarise(folder), "ttft_ms", "p50").n == sum(r.scheduled_s >= 0.5 for r in load) in (12, 13)
    assert manifest.points[0].in_words() == "20 to 60 req/s constant in 0.5 s, 40 in / 6 out"


def test_a_sweep_gives_a_point_for_each_step(tmp_path: Path) -> None:
    sweep = point("up", shape="sweep", in_flight=4, requests=4)
    made = plan(candidate(1), points=[sweep])
    assert made.stages[0].points == ("up-1", "up-2", "up-4")
    manifest, _ = only_bundle(run_attached(FAST, tmp_path, points=[sweep]))
    assert [(r.load_point, r.ok) for r in manifest.repeats] == [("up-1", 4), ("up-2", 8), ("up-4", 16)]


def test_a_trace_is_replayed_with_its_times_and_lengths(tmp_path: Path) -> None:
    file = written(
        tmp_path / "day.csv", "t_s,input_tokens,output_tokens\n100,40,3\n100.05,60,4\n100.2,30,5\n100.3,20,2\n"
    )
    trace = shaped("trace", trace_file=file["name"], file_sha256=file["file_sha256"], requests=3)
    out = tmp_path / "out"
    result = with_emulator(
        FAST, lambda e: run_plan(plan(candidate(e.port), points=[trace]), out, folder=tmp_path)
    )  # fmt: skip
    _, records = only_bundle(result)
    load = cohort(records, "load")
    assert [r.scheduled_s for r in load] == pytest.approx([0.0, 0.05, 0.2])
    assert [(r.prompt_tokens, r.output_tokens) for r in load] == [(40, 3), (60, 4), (30, 5)]
    assert [(r.asked_prompt_tokens, r.asked_output_tokens) for r in cohort(records, "tail")] in ([], [(20, 2)])


def test_long_prompts_come_amid_the_victims_and_their_gaps_are_parted(tmp_path: Path) -> None:
    fight = point("fight", shape="interference", in_flight=2, requests=6, output_tokens=30, aggressors=3,
                  aggressor_at_s=0.15, aggressor_input_tokens=200, aggressor_output_tokens=4)  # fmt: skip
    manifest, records = only_bundle(run_attached(Settings(ttft_ms=20, itl_ms=5), tmp_path, points=[fight]))
    aggressors, victims = cohort(records, "aggressor"), cohort(records, "victim")
    assert [(r.prompt_tokens, r.output_tokens) for r in aggressors] == [(200, 4)] * 3
    assert all(r.scheduled_s == pytest.approx(0.15) for r in aggressors)
    assert len(victims) == 6 and all(r.outcome == "ok" for r in victims)
    found = summarise(tmp_path / "emu-A-start1")
    begin = min(r.dispatched_s or 0.0 for r in aggressors)
    end = max(r.end_s or 0.0 for r in aggressors)
    all_gaps = [(g.end_s - g.ms / 1000, g.end_s) for r in victims for g in gaps(r)]
    quiet = sum(b <= begin for _, b in all_gaps)
    assert [e.n for e in found if (e.metric, e.statistic) == ("itl_quiet_ms", "p50")] == ([quiet] if quiet else [])
    assert quiet or manifest.repeats[0].loop_stalled_share > 0.05  # this machine stood still from the first moment on
    assert of(found, "itl_disturbed_ms", "p50").n == sum(b > begin and a < end for a, b in all_gaps) > 0


def test_a_single_smoke_request_is_a_point(tmp_path: Path) -> None:
    smoke = point("smoke", in_flight=1, requests=1, warmup_requests=0)
    manifest, records = only_bundle(run_attached(FAST, tmp_path, points=[smoke]))
    assert (manifest.status, len(records), records[0].outcome) == ("complete", 1, "ok")
    assert of(summarise(tmp_path / "emu-A-start1"), "completed_share").value == 1.0


def test_the_same_prompts_go_with_and_without_a_schema_and_answers_are_checked(tmp_path: Path) -> None:
    answers = ['{"n": 1}', '{"n": "one"}', '{"n": 2}', '{"n": ']

    def answer(body: dict[str, Any]) -> list[str]:
        if "response_format" not in body:
            return ["w "] * body["max_tokens"]
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        text = answers[len(asked) % 4]
        asked.append(text_of(body))
        return [text[:4], text[4:]]

    asked: list[str] = []
    small = {"in_flight": 1, "requests": 4, "warmup_requests": 0}
    points = [point("plain", **small), point("json", **small, json_schema=SCHEMA, pair_of="plain")]
    result, bodies = run_answered(answer, tmp_path / "out", tmp_path, points=points)
    plain = [text_of(b) for b in bodies if b.get("stream") and "response_format" not in b][-4:]
    nonce = 9  # the lead and eight words of salt
    assert [t.split()[nonce:] for t in asked] == [t.split()[nonce:] for t in plain]
    found = summarise(result.bundles[0])
    valid = of(found, "json_valid")
    assert (valid.value, valid.n, valid.load_point) == (0.5, 4, "json")
    assert of(found, "structured_cost").n == 4
    free = [e for e in found if e.load_point == "json" and any("output-length" in s for s in e.spoiled_by)]
    assert not free  # a schema ends an answer where it likes


def test_own_prompts_are_used_once_each_behind_a_nonce(tmp_path: Path) -> None:
    own = [f"Question {i}?" for i in range(8)]
    file = written(tmp_path / "own.jsonl", "".join(json.dumps({"prompt": p}) + "\n" for p in own))
    mine = point("mine", requests=6, prompts_file=file["name"], file_sha256=file["file_sha256"])
    result, bodies = run_answered(lambda b: ["w "] * b["max_tokens"], tmp_path / "out", tmp_path, points=[mine])
    sent = [text_of(b).rpartition("\n\n")[2] for b in bodies if "\n\n" in text_of(b)]
    assert len(sent) == len(set(sent)) == 6 and set(sent) <= set(own)
    nonces = {text_of(b).partition("\n\n")[0] for b in bodies if "\n\n" in text_of(b)}
    assert len(nonces) == 6
    _, records = only_bundle(result)
    assert all(r.outcome == "ok" and r.asked_prompt_tokens == 0 for r in cohort(records, "load"))
    assert not any("prompt-length" in s for e in summarise(result.bundles[0]) for s in e.spoiled_by)


def test_a_repeat_asks_the_same_behind_another_nonce(tmp_path: Path) -> None:
    small = point("small", in_flight=1, requests=3, warmup_requests=0)
    _, bodies = run_answered(lambda b: ["w "] * b["max_tokens"], tmp_path / "out", tmp_path, points=[small], repeats=2)
    sent = [text_of(b).split() for b in bodies if b.get("stream")][1:]  # behind the preflight's probe
    nonce = 9  # the lead and eight words of salt
    assert len(sent) == 6
    assert [words[nonce:] for words in sent[:3]] == [words[nonce:] for words in sent[3:]]
    assert len({tuple(words[:nonce]) for words in sent}) == 6


@pytest.mark.parametrize(
    ("name", "text", "fields", "sentence"),
    [
        ("day.csv", None, {}, "day.csv: cannot be read: No such file"),
        ("day.csv", f"{HEAD}0,1,1\n", {"file_sha256": None}, "Write file_sha256: "),
        ("day.csv", f"{HEAD}0,1,1\n", {"file_sha256": "0" * 64}, "is not the file that the plan"),
        ("day.csv", f"{HEAD}0,1,1\n", {}, "holds 1 request, and the point needs 6"),
        ("day.csv", "a,b\n1,2\n", {}, "has no columns for time, prompt and answer"),
        ("day.csv", "", {}, "holds no requests"),
        ("day.csv", f"{HEAD}0,x,1\n", {}, "line 2: t_s, input_tokens and output_tokens must be a number and two"),
        ("day.csv", f"{HEAD}nan,1,1\n", {}, "must be numbers from 0 on"),
        ("day.csv", f"{HEAD}5,1,1\n4,1,1\n", {}, "line 3: its time is before"),
        ("day.jsonl", '{"t_s": 0}\nnonsense\n', {}, "line 2: is not a JSON object"),
        ("day.jsonl", f'{{"t_s": {"1" * 5000}}}', {}, "line 1: is not a JSON object"),  # Python reads 4,300 digits
        ("day.json", '[{"t_s": 0, "input_tokens": 1, "output_tokens": 1}]', {}, "line 1: is not .* Write one object"),
        ("day.jsonl", '{"t_s": 0, "input_tokens": 1.5, "output_tokens": 1}', {}, "line 1: .* must be a number and two"),
        ("day.jsonl", '{"t_s": 0, "input_tokens": true, "output_tokens": 1}', {}, "must be a number and two whole"),
        ("day.csv", f"{HEAD}0,5,9000000000\n", {}, "line 2: a request has at most 2,000,000 tokens, an answer 1,000"),
        ("day.csv", f"{HEAD}0,{'1' * 200_000},1\n", {}, "line 2: (is not CSV: field larger than|t_s)"),
        ("day.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1", {}, "must be a moment and two whole numbers"),
        ("day.csv", "\udcff", {}, "is not text in UTF-8"),
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_replayed_is_refused_in_one_sentence(
    tmp_path: Path, name: str, text: str | None, fields: dict[str, Any], sentence: str
) -> None:
    data = (text or "").encode("utf-8", "surrogateescape")
    if text is not None:
        (tmp_path / name).write_bytes(data)
    digest = {"file_sha256": hashlib.sha256(data).hexdigest()}
    with pytest.raises(InputError, match=sentence) as told:
        read_inputs(plan(candidate(1), points=[shaped("trace", trace_file=name, **(digest | fields))]), tmp_path)
    assert str(told.value).startswith(f"load point trace: {name}") and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # Mooncake's traces count milliseconds, Azure's write moments, BurstGPT's seconds; an answer of 0 is left out.
        ('{"timestamp": 3000, "input_length": 9, "output_length": 5}\n{"timestamp": 3250, "input_length": 8, '
         '"output_length": 4, "hash_ids": [1]}', [(0.0, 9, 5), (0.25, 8, 4)]),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,374,44\n"
         "2023-11-16 18:17:04.0319600,396,109",
         [(0.0, 374, 44), (0.052, 396, 109)]),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"
         "2024-05-10 02:00:01.009930+02:00,2399,6", [(0.0, 2162, 5), (1.0, 2399, 6)]),
        ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
         "6,GPT-4,10,0,10,API log\n45,ChatGPT,1087,230,1317,Conversation log", [(0.0, 472, 18), (40.0, 1087, 230)]),
    ],
    ids=["mooncake", "azure", "azure with a time zone", "burstgpt"],
)  # fmt: skip
def test_public_traces_are_read_as_they_are(text: str, rows: list[tuple[float, int, int]]) -> None:
    found = read_trace(text, where="trace")
    assert [r[1:] for r in found] == [r[1:] for r in rows]
    assert [r.at_s for r in found] == pytest.approx([r[0] for r in rows], abs=1e-6)
    assert isinstance(found[0], TraceRow)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"prompt": "one"}\n', "holds 1 prompt, and the point needs 6"),
        ('{"text": "one"}\n', "line 1: the line has no prompt"),
        ('{"prompt": 7}\n', "line 1: the line has no prompt"),
        ("one\n", "line 1: is not a JSON object"),
        ('{"prompt": "\\ud83d\\ude00"}\n{"prompt": "\\ud83d"}', "line 2: holds half a surrogate pair"),
    ],
)
def test_own_prompts_that_do_not_do_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    file = written(tmp_path / "own.jsonl", text)
    mine = point("mine", prompts_file=file["name"], file_sha256=file["file_sha256"])
    with pytest.raises(InputError, match=sentence):
        read_inputs(plan(candidate(1), points=[mine]), tmp_path)


def test_a_schema_that_could_not_be_checked_is_refused() -> None:
    json_point = point("json", json_schema={"type": "object", "patternProperties": {}})
    with pytest.raises(FliplineError, match="load point json: unknown JSON schema keyword 'patternProperties'"):
        read_inputs(plan(candidate(1), points=[json_point]), Path())
