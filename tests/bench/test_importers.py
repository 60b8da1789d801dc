"""Other tools' results become bundles: every figure computed by hand from the files in tests/golden/foreign."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.importers.foreign import Stated
from bench.importers.take import FORMATS, Choices, import_file
from bundle.folder import open_bundle
from bundle.manifest import Manifest
from bundle.summary import summarise
from planner.condition_line import parse_condition
from planner.conditions import Evidence, Kind
from planner.contract import FIELDS, Contract
from planner.errors import InputError, UnknownName
from planner.loads import LoadPoint
from planner.metrics import METRICS
from planner.plan_file import plan_to_yaml
from planner.poc import Launch, Plan, PlanCandidate, Stage
from tests.bundle.made import bundle

FOREIGN = Path(__file__).parents[1] / "golden" / "foreign"
DAY = Stated(day=date(2026, 11, 1))
NOTHING = Stated()


def taken(tmp_path: Path, name: str, stated: Stated = NOTHING, **more: object) -> tuple[Manifest, list[Evidence]]:
    choices = Choices(candidate="vllm", stated=stated, **more)  # type: ignore[arg-type]
    folder, manifest, _ = import_file(FOREIGN / name, tmp_path / "out", choices)
    assert open_bundle(folder) == manifest
    return manifest, summarise(folder)


def value(found: list[Evidence], metric: str, statistic: str = "value", point: str = "") -> float:
    (piece,) = (
        e for e in found if (e.metric, e.statistic) == (metric, statistic) and point in (e.load_point or "", "")
    )
    return piece.value


def test_vllm_with_detail_is_summarised_under_our_definitions(tmp_path):
    manifest, found = taken(tmp_path, "vllm-detailed.json")
    assert {e.kind for e in found} == {Kind.IMPORTED}
    (point,) = manifest.points
    assert point.in_words() == "2 req/s poisson, 64 in / 5 out"
    assert value(found, "ttft_service_ms", "p50") == pytest.approx(250)  # of 100, 200, 300 ms and never
    assert value(found, "tpot_ms", "p50") == pytest.approx(50)
    assert value(found, "user_tok_s", "p50") == pytest.approx(20)
    assert value(found, "itl_ms", "p95") == pytest.approx(50)
    assert value(found, "error_share") == 0.25  # one of four: 503
    # window: first to last dispatch, 1.5 s; the answers of 0 s and 0.5 s arrive in it whole, the last one not at all
    assert value(found, "output_tok_s") == pytest.approx(10 / 1.5)


def test_without_scheduled_times_ttft_and_e2e_are_not_measured(tmp_path):
    manifest, found = taken(tmp_path, "vllm-detailed.json")
    assert manifest.imported is not None
    assert {"ttft_ms", "e2e_ms", "goodput"} <= manifest.imported.not_measured.keys()
    assert not {"ttft_ms", "e2e_ms", "goodput", "started", "oom", "restarts"} & {e.metric for e in found}


def test_queue_times_of_an_open_loop_give_the_scheduled_time(tmp_path):
    doc = json.loads((FOREIGN / "vllm-detailed.json").read_text())
    (tmp_path / "queued.json").write_text(json.dumps(doc | {"queue_times": [-0.0005, 0.1, 0.1, 0.1]}))
    folder, _, _ = import_file(tmp_path / "queued.json", tmp_path / "out", Choices(candidate="vllm"))
    assert value(summarise(folder), "ttft_ms", "p50") == pytest.approx(350)  # of 100, 200 + 100, 300 + 100 ms, never


def test_a_threshold_is_counted_on_imported_requests_failures_beyond(tmp_path):
    folder, _, _ = import_file(FOREIGN / "vllm-detailed.json", tmp_path, Choices(candidate="vllm"))
    asked = parse_condition("vllm: ttft_service p95 <= 250 ms at rate-2-64-5")
    (piece,) = (e for e in summarise(folder, [asked]) if (e.metric, e.statistic) == ("ttft_service_ms", "p95"))
    assert (piece.n, piece.beyond(250, "<=")) == (4, 2)  # 300 ms, and the failure


def test_the_completions_client_counts_its_finish_chunk_and_we_do_not(tmp_path):
    doc = json.loads((FOREIGN / "vllm-detailed.json").read_text())
    gaps = [[0.05, 0.05, 0.05, 0.05, 0.4] if g else [] for g in doc["itls"]]  # five tokens, five gaps: one too many
    (tmp_path / "c.json").write_text(json.dumps(doc | {"backend": "vllm", "itls": gaps}))
    folder, _, _ = import_file(tmp_path / "c.json", tmp_path / "out", Choices(candidate="vllm"))
    assert value(summarise(folder), "itl_ms", "max") == pytest.approx(50)
    assert value(summarise(folder), "tpot_ms", "p50") == pytest.approx(50)


def test_an_empty_chunk_that_cannot_be_placed_leaves_times_per_token_unmeasured(tmp_path):
    """One gap too many and none of about zero: the role came early, or an empty chunk late."""
    doc = json.loads((FOREIGN / "vllm-detailed.json").read_text())
    gaps = [[0.04, 0.05, 0.05, 0.05, 0.05] if g else [] for g in doc["itls"]]
    (tmp_path / "c.json").write_text(json.dumps(doc | {"itls": gaps}))
    folder, manifest, _ = import_file(tmp_path / "c.json", tmp_path / "out", Choices(candidate="vllm"))
    assert manifest.imported is not None
    for metric in ("ttft_service_ms", "itl_ms", "tpot_ms", "user_tok_s"):
        assert "one chunk more than tokens" in manifest.imported.not_measured[metric]
        assert metric not in {e.metric for e in summarise(folder)}
    assert value(summarise(folder), "error_share") == 0.25


def test_vllm_without_detail_appended_runs_are_repeats_of_their_load(tmp_path):
    manifest, found = taken(tmp_path, "vllm-appended.json")
    assert [p.in_flight for p in manifest.points] == [2, 4]
    assert manifest.repeats == ()
    two = [e for e in found if (e.metric, e.load_point) == ("output_tok_s", "in-flight-2-64-5")]
    assert [(e.repeat, e.value) for e in two] == [(1, 31.5), (2, 32.5)]
    assert value(found, "ttft_service_ms", "p95", "in-flight-4-64-5") == 290
    # the promise is the slow tail: 1000 / p95 of TPOT
    assert value(found, "user_tok_s", "p5", "in-flight-4-64-5") == pytest.approx(1000 / 50)
    assert not [e for e in found if e.metric in ("ttft_ms", "e2e_ms")]


def test_percentiles_that_leave_failures_out_are_no_percentiles(tmp_path):
    doc = json.loads((FOREIGN / "vllm-appended.json").read_text().splitlines()[0])
    (tmp_path / "f.json").write_text(json.dumps(doc | {"completed": 38, "failed": 2}))
    folder, _, _ = import_file(tmp_path / "f.json", tmp_path / "out", Choices(candidate="vllm"))
    spoiled = {e.metric for e in summarise(folder) if not e.valid}
    assert spoiled == {"ttft_service_ms", "tpot_ms", "itl_ms", "user_tok_s"}


def test_sglang_without_detail(tmp_path):
    manifest, found = taken(tmp_path, "sglang.jsonl", DAY)
    assert [p.in_flight for p in manifest.points] == [2, 4]
    assert value(found, "ttft_service_ms", "p95", "in-flight-2-64-5") == 240
    assert value(found, "output_tok_s", point="in-flight-4-64-5") == 5
    assert manifest.imported is not None
    assert "[DONE]" in manifest.imported.refused["e2e_latency_ms"]
    assert not [e for e in found if e.metric in ("tpot_ms", "user_tok_s", "e2e_ms", "error_share")]


def test_sglang_with_detail_a_request_without_a_token_failed(tmp_path):
    manifest, found = taken(tmp_path, "sglang-details.jsonl", DAY)
    assert value(found, "ttft_service_ms", "p50") == pytest.approx(250)  # 100, 200, 300 ms, and 0, which is never
    assert value(found, "error_share") == 0.25
    assert value(found, "tpot_ms", "p50") == pytest.approx(50)  # five chunks, five tokens: the lengths are proven
    assert value(found, "output_tok_s") == 5  # no send times, so the tool's own figure
    assert manifest.contract.observed == {"engine_version_reported": "0.5.23"}


def test_sglang_lengths_that_may_be_those_asked_for_give_no_speed(tmp_path):
    doc = json.loads((FOREIGN / "sglang-details.jsonl").read_text())
    (tmp_path / "s.jsonl").write_text(json.dumps(doc | {"output_lens": [64] * 4}))
    folder, _, _ = import_file(tmp_path / "s.jsonl", tmp_path / "out", Choices(candidate="sglang", stated=DAY))
    assert not [e for e in summarise(folder) if e.metric in ("tpot_ms", "user_tok_s")]


def test_guidellm_requests(tmp_path):
    manifest, found = taken(tmp_path, "guidellm.json")
    assert manifest.points[0].rate_per_s == 1
    assert value(found, "ttft_service_ms", "p50") == pytest.approx(200)  # sent 0.1 s late, first token 0.3 s after due
    assert value(found, "ttft_ms", "p50") == pytest.approx(300)
    assert value(found, "e2e_ms", "p50") == pytest.approx(500)  # to the last token, not to the end at 600 ms
    assert value(found, "tpot_ms", "p50") == pytest.approx(50)  # 200 ms over 4 tokens
    assert not [e for e in found if e.metric == "itl_ms"]
    assert any("bursts" in f for f in manifest.findings)


def test_guidellm_time_per_output_token_is_refused_by_name(tmp_path):
    manifest, found = taken(tmp_path, "guidellm-summary.json")
    assert manifest.imported is not None
    assert "includes the first token" in manifest.imported.refused["time_per_output_token_ms"]
    assert value(found, "tpot_ms", "p95", "in-flight-2-64-5") == 52  # their inter_token_latency_ms
    assert value(found, "user_tok_s", "p5", "in-flight-2-64-5") == pytest.approx(1000 / 52)
    assert value(found, "output_tok_s", point="in-flight-1-64-5") == 5  # 4 answers of 5 tokens in 4 s


def test_aiperf_warm_up_lines_are_left_out_and_credits_are_the_schedule(tmp_path):
    manifest, found = taken(tmp_path, "aiperf.jsonl", Stated(rate_per_s=1.0))
    (repeat,) = manifest.repeats
    assert (repeat.scheduled, repeat.ok, repeat.failed) == (5, 4, 1)
    assert value(found, "ttft_service_ms", "p50") == pytest.approx(200)
    assert value(found, "ttft_ms", "p50") == pytest.approx(300)
    assert value(found, "tpot_ms", "p50") == pytest.approx(50)  # the server counted 5 tokens, the client 7
    assert manifest.findings == ("rate-1-64-5: 2 warm-up requests are left out",)


def test_aiperf_counts_of_the_clients_tokenizer_give_no_speed(tmp_path):
    manifest, found = taken(tmp_path, "aiperf-own-count.jsonl", Stated(in_flight=1))
    assert value(found, "itl_ms", "p50") == pytest.approx(50)
    assert not [e for e in found if e.metric in ("tpot_ms", "user_tok_s", "output_tok_s")]
    assert manifest.imported is not None
    assert "tokenizer" in manifest.imported.not_measured["tpot_ms"]


@pytest.mark.parametrize(("name", "stated"), [("llama-bench.json", Stated()), ("llama-bench.md", DAY)])
def test_llama_bench_generation_is_one_user_prompt_tests_are_refused(tmp_path, name, stated):
    manifest, found = taken(tmp_path, name, stated)
    assert value(found, "user_tok_s", "mean", "in-flight-1-4096-128") == 30
    assert {e.kind for e in found} == {Kind.ENGINE_ALONE}
    assert all("engine alone" in e.note for e in found)
    assert manifest.imported is not None
    assert "pp avg_ts" in manifest.imported.refused


@pytest.mark.parametrize("name", ["llama-batched-bench.md", "llama-batched-bench.jsonl"])
def test_llama_batched_bench_output_counts_the_prefill(tmp_path, name):
    _, found = taken(tmp_path, name, DAY)
    assert value(found, "user_tok_s", "p5", "in-flight-4-128-100") == 25  # 100 tok/s of a batch of 4
    assert value(found, "output_tok_s", point="in-flight-4-128-100") == pytest.approx(400 / 6)


def test_a_batch_decoded_one_by_one_is_refused(tmp_path):
    text = "llama_batched_bench: is_pp_shared = 0, is_tg_separate = 1\n\n"
    (tmp_path / "t.md").write_text(text + (FOREIGN / "llama-batched-bench.md").read_text())
    with pytest.raises(InputError, match="decodes one sequence after another"):
        import_file(tmp_path / "t.md", tmp_path / "out", Choices(candidate="vllm", stated=DAY))


def test_llama_benchy_table_gives_means(tmp_path):
    manifest, found = taken(tmp_path, "llama-benchy.md")
    assert manifest.imported is not None
    assert (manifest.imported.tool, manifest.imported.version) == ("llama-benchy", "0.4.0")
    assert value(found, "user_tok_s", "mean", "in-flight-5-1000-200") == 25
    assert value(found, "ttft_service_ms", "mean", "in-flight-5-1000-200") == 950
    assert not [e for e in found if e.metric == "output_tok_s"]  # its total leaves the prefill out


def test_llama_benchy_report_gives_percentiles_with_n(tmp_path):
    _, found = taken(tmp_path, "llama-benchy.json")
    (middle,) = (e for e in found if (e.metric, e.statistic) == ("ttft_service_ms", "p50"))
    assert (middle.value, middle.n) == (230, 4)  # of 200, 220, 240 and 260


def plan(**point: object) -> Plan:
    fields = {"name": "peak", "shape": "open", "rate_per_s": 2.0, "input_tokens": 65, "output_tokens": 5} | point
    made = LoadPoint.model_validate(fields)
    return Plan(
        case="test", title="Test", shared_contract={"model": "tiny/llama"}, load_points=(made,),
        candidates=(PlanCandidate(id="vllm", role="favourite", engine="vllm", model_name="m", launch=Launch()),),
        stages=(Stage(name="A", points=("peak",)),),
    )  # fmt: skip


def test_a_load_stands_for_the_plans_point_when_it_is_that_load_within_5_percent(tmp_path):
    made = plan()
    manifest, found = taken(tmp_path, "vllm-detailed.json", plan=made, stands_for={"": "peak"})
    assert {e.load_hash for e in found} == {made.point("peak").load_hash()}
    assert "64 in / 5 out stands for 2 req/s poisson, 65 in / 5 out" in manifest.findings[0]
    assert all("2 req/s poisson, 64 in / 5 out" in e.note for e in found)
    assert (manifest.engine, manifest.role) == ("vllm", "favourite")


@pytest.mark.parametrize("other", [{"rate_per_s": 3.0}, {"input_tokens": 70}, {"arrival": "constant"}])
def test_another_load_under_the_plans_name_keeps_its_own_hash(tmp_path, other):
    made = plan(**other)
    manifest, found = taken(tmp_path, "vllm-detailed.json", plan=made, stands_for={"": "peak"})
    assert {e.load_point for e in found} == {"peak"}
    assert made.point("peak").load_hash() not in {e.load_hash for e in found}
    assert "decides nothing" in manifest.findings[0]


def test_source_and_licence_stand_in_every_note(tmp_path):
    manifest, found = taken(tmp_path, "llama-benchy.md", source="team B", licence="CC-BY-4.0")
    assert manifest.imported is not None
    assert (manifest.imported.source, manifest.imported.licence) == ("team B", "CC-BY-4.0")
    assert all("llama-benchy 0.4.0, llama-benchy.md, team B, CC-BY-4.0; " in e.note for e in found)


def test_the_same_file_is_the_same_bundle_wherever_it_is_written(tmp_path):
    made = [taken(tmp_path / x, "vllm-detailed.json")[0] for x in "ab"]
    assert made[0] == made[1]


APPENDED = (FOREIGN / "vllm-appended.json").read_text()
DETAILED = (FOREIGN / "vllm-detailed.json").read_text()


def harmed(text: str, **changes: object) -> str:
    """A JSON text with fields replaced, or taken out where the new value is ..."""
    doc = json.loads(text) | changes
    return json.dumps({k: v for k, v in doc.items() if v is not ...})


BAD = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "binary": (b"\xff\xfe\x00", "is not text in UTF-8"),
    "prose": ("TTFT was fine.", "is no result that can be read here"),
    "printed": ("============ Serving Benchmark Result ============\nP95 TTFT: 9", "prints, not the file it saves"),
    "other JSON": ('{"tokens": 3}', "is no result that can be read here"),
    "a list of numbers": ("[1, 2]", "is no result that can be read here"),
    "cut off": (DETAILED[:-40], "breaks off at line"),
    "cut off in the second": (APPENDED[: len(APPENDED) * 2 // 3 - 50], "breaks off at line 2"),
    "field missing": (harmed(DETAILED, completed=...), "field 'completed' is missing"),
    "no rate": (harmed(DETAILED, request_rate=None), "field 'request_rate' is neither a number"),
    "text for a number": (harmed(DETAILED, duration="long"), "field 'duration' is 'long', not a number"),
    "lists of two lengths": (harmed(DETAILED, ttfts=[0.1]), "not of one length"),
    "wrong kind in a list": (harmed(DETAILED, ttfts=["a", "b", "c", "d"]), "another kind of value"),
    "nested without end": ('{"a": ' + "[" * 200_000, "holds JSON that no tool writes"),
    "a number without end": ('{"a": ' + "9" * 5000 + "}", "holds JSON that no tool writes"),
    "a number beyond all": (harmed(DETAILED, duration=float("inf")), "field 'duration' is inf, not a number"),
    "a gap below 0": (harmed(DETAILED, itls=[[*g[:-1], -0.1] for g in json.loads(DETAILED)["itls"]]), "run backwards"),
    "a prompt below 0": (harmed(DETAILED, input_lens=[-5] * 4), "column 'prompt_tokens' holds less than 0"),
    "a count that is none": (harmed(DETAILED, output_lens=[10**30] * 4), "holds a count that no request can have"),
    "half a character": (harmed(DETAILED, errors=["\ud800"] * 4), "holds half a character, which no text can"),
    "a latency below 0": (harmed(APPENDED.splitlines()[0], p95_tpot_ms=-1), "p95_tpot_ms is -1, which cannot be"),
    "nothing ended well": (harmed(DETAILED, completed=0), "no request of this run ended well"),
    "no length": (harmed(DETAILED, total_output_tokens=0), "without lengths means nothing"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), BAD.values(), ids=BAD)
def test_a_bad_file_is_one_sentence_and_leaves_nothing(tmp_path, capsys, content, sentence):
    file = tmp_path / "theirs.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["import", str(file), "--candidate", "vllm", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "theirs.json: " in told and sentence in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        ("aiperf.jsonl", [], "does not say how many requests were in flight or at which rate"),
        ("aiperf.jsonl", ["--rate", "1", "--in-flight", "2"], "cannot have both"),
        ("vllm-detailed.json", ["--rate", "9"], "says its load itself: 2 req/s poisson"),
        ("vllm-detailed.json", ["--date", "2026-11-02"], "says itself that it was measured on 2026-11-01"),
        ("sglang.jsonl", [], "does not say when it was measured. State the day of the run (--date)."),
        ("sglang.jsonl", ["--date", "yesterday"], "'yesterday' is not a day"),
        ("llama-benchy.md", ["--point", "peak"], "holds 2 loads: in-flight-1-1000-200, in-flight-5-1000-200"),
        ("llama-benchy.md", ["--point", "in-flight-6-1000-200=peak"], "Did you mean 'in-flight-5-1000-200'?"),
        ("llama-benchy.md", ["--format", "vllm"], "is not the output of vllm bench serve"),
        ("llama-benchy.md", ["--format", "vlm"], "unknown format 'vlm'. Did you mean 'vllm'?"),
        ("llama-benchy.md", ["--state", "gpus=GB10"], "unknown contract field 'gpus'. Did you mean 'gpu'?"),
        ("no.json", [], "cannot be read: No such file"),
    ],
)  # fmt: skip
def test_what_is_missing_or_contradicts_the_file_is_one_sentence(tmp_path, capsys, name, more, sentence):
    assert main(["import", str(FOREIGN / name), "--candidate", "vllm", "--out", str(tmp_path / "out"), *more]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize("name", ["", "../../elsewhere", "a\nb", "v" * 201])
def test_a_candidate_that_is_no_name_writes_nothing(tmp_path, capsys, name):
    words = ["import", str(FOREIGN / "vllm-detailed.json"), f"--candidate={name}", "--out", str(tmp_path / "a" / "out")]
    assert main(words) == 2
    assert "cannot be the name of a candidate" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_half_a_character_is_one_sentence_and_leaves_nothing(tmp_path, capsys):
    told = json.loads((FOREIGN / "vllm-detailed.json").read_text()) | {"model_id": "\ud800"}
    (tmp_path / "theirs.json").write_text(json.dumps(told))
    assert main(["import", str(tmp_path / "theirs.json"), "--candidate=vllm", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("bench: theirs.json: holds half a character")
    assert not list((tmp_path / "out").iterdir())


def test_a_candidate_that_the_plan_does_not_have(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean 'vllm'"):
        import_file(FOREIGN / "vllm-detailed.json", tmp_path, Choices(candidate="vlm", plan=plan()))


def test_a_concurrency_that_a_table_leaves_out_is_refused(tmp_path):
    text = (FOREIGN / "llama-benchy.md").read_text().replace(" (c1)", "").replace(" (c5)", "")
    (tmp_path / "t.md").write_text(text)
    with pytest.raises(InputError, match="does not say the concurrency"):
        import_file(tmp_path / "t.md", tmp_path / "out", Choices(candidate="vllm"))


def test_import_tells_what_is_taken_refused_and_not_measured(tmp_path, capsys):
    (tmp_path / "plan.yaml").write_text(plan_to_yaml(plan()))
    arguments = ["import", str(FOREIGN / "vllm-detailed.json"), "--candidate", "vllm", "--plan",
                 str(tmp_path / "plan.yaml"), "--point", "peak"]  # fmt: skip
    assert main([*arguments, "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["loads"] == {"rate-2-64-5": "2 req/s poisson, 64 in / 5 out"}
    assert told["taken"]["ttft_ms"] == "ttft_service_ms"
    assert not list(tmp_path.rglob("manifest.json"))
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "refused: e2el_ms: starts at dispatch" in out
    assert "not measured: ttft_ms" in out
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "was imported there already" in capsys.readouterr().err


def test_every_refusal_has_a_reason_and_every_term_taken_names_our_metric():
    for format in FORMATS.values():
        for term in format.terms:
            assert term.metric in METRICS if term.metric else term.why


def stating(folder: Path, name: str, **fields: str) -> Path:
    values = {f.name: "x" for f in FIELDS} | fields
    parts = {p: {f.name: values[f.name] for f in FIELDS if f.part == p} for p in ("shared", "candidate", "observed")}
    contract = Contract(**parts, declared_differences=("quantization",))
    return bundle(folder / name, candidate=name, contract=contract)


def test_compare_two_bundles_side_by_side(tmp_path, capsys):
    a, b = stating(tmp_path, "vllm"), stating(tmp_path, "ollama", engine="ollama")
    assert main(["compare", str(a), str(b), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["parity"], told["differences"]) == ("comparable", [])
    (row,) = (r for r in told["rows"] if (r["metric"], r["statistic"]) == ("user_tok_s", "p5"))
    assert (row["left"], row["right"], row["ratio"]) == (pytest.approx(20), pytest.approx(20), pytest.approx(1))


def test_compare_with_a_declared_difference_holds_figures_per_token_alone_against_each_other(tmp_path, capsys):
    a, b = stating(tmp_path, "vllm"), stating(tmp_path, "ollama", quantization="fp8")
    assert main(["compare", str(a), str(b), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["differences"] == ["quantization: x -> fp8"]
    ratios = {r["metric"]: r["ratio"] for r in told["rows"]}
    assert ratios["user_tok_s"] == pytest.approx(1)
    assert ratios["ttft_ms"] is None


def test_compare_refuses_other_hardware_and_names_it(tmp_path, capsys):
    a, b = stating(tmp_path, "vllm"), stating(tmp_path, "ollama", gpu="H200")
    assert main(["compare", str(a), str(b)]) == 1
    out = capsys.readouterr().out
    assert "Contracts: refused" in out and "gpu: x -> H200" in out
    assert " x\n" not in out


def test_compare_says_not_measured_where_one_side_has_nothing(tmp_path, capsys):
    folder, _, _ = import_file(FOREIGN / "vllm-detailed.json", tmp_path / "out", Choices(candidate="vllm"))
    assert main(["compare", str(folder), str(bundle(tmp_path / "b"))]) == 1  # the file states no hardware
    out = capsys.readouterr().out
    assert "gpu: stated by neither" in out
    assert "not measured" in out


def test_compare_needs_one_bundle_on_each_side(tmp_path, capsys):
    bundle(tmp_path / "two" / "a")
    bundle(tmp_path / "two" / "b", start=2)
    assert main(["compare", str(tmp_path / "two"), str(tmp_path / "two" / "a")]) == 2
    assert "holds 2 bundles, not one" in capsys.readouterr().err
