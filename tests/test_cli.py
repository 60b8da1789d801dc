"""The terminal entry: the same calls as the pages, exit codes that a script can use, one sentence for bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import cli
from planner.plan_file import plan_from_yaml
from tests.terminal import Cli, home, run

__all__ = ["home", "run"]  # fixtures

SHIPPED = (Path(cli.__file__).parent / "catalog" / "cases" / "nortia.yaml").read_text(encoding="utf-8")


def test_size_says_units_and_that_nothing_is_measured(run: Cli) -> None:
    ran = run("size", "--case", "nortia")
    assert ran.code == 0
    # cases: 3 units by the bound, 13 when experts touched are counted, 17 by the planning value.
    for units in ("3 units by the bound", "13 when experts touched", "17 by the planning value"):
        assert units in ran.out
    assert "29 tok/s (463)" in ran.out  # seed 001, plan B at 16
    assert "nothing of this is measured" in ran.out


def test_size_as_json(run: Cli) -> None:
    plans = json.loads(run("size", "--case", "nortia", "--json").out)
    favourite = next(p for p in plans if p["plan"] == "B")
    users = {(u["kind"], u["users"]): u["units"] for u in favourite["units"]}
    assert [users[k, 50] for k in ("bound", "coverage", "planning")] == [3, 13, 17]


ASKED = ("size", "--model", "Qwen/Qwen3-30B-A3B", "--gpu", "GX-10", "--context", "4096", "--users", "50",
         "--quantization", "fp8")  # fmt: skip


def test_size_of_any_model_says_what_the_page_says(run: Cli) -> None:
    ran = run(*ASKED)
    assert ran.code == 0
    for words in ("3 units by the bound", "13 when experts touched", "17 by the planning value", "31.2 GB", "98,304 B",
                  "5 min 12 s", "42.4 s", "29 tok/s (463)", "keeps the promise", "Target speed per user",
                  "Not known, state it to count it: price of one unit"):  # fmt: skip
        assert words in ran.out
    # What the page draws is what the terminal prints: one table of figures for both.
    (found,) = json.loads(run(*ASKED, "--json").out)
    assert {f["value"] for f in found["figures"]} <= set(re.findall(r"│ ([^│]+?) +│", ran.out))
    assert all(f["explained"]["formula"] and f["explained"]["band"] for f in found["figures"])
    assert [b["in_flight"] for b in found["batches"]] == [1, 2, 4, 8, 16, 32, 50, 64, 128, 256, 512]
    assert found["swings"][0]["low"]["units"] is not None


def test_a_figure_explains_itself(run: Cli) -> None:
    ran = run(*ASKED, "--explain", "units_bound")
    # cases: 50 users, at most 19 at once keep 25 tok/s by the bound: 3 units.
    assert "by speed per user, bound = 3 = 50 / 19, rounded up" in ran.out
    (found,) = json.loads(run(*ASKED, "--json").out)
    assert run(*ASKED, "--explain", "all").out.count("formula: ") == len(found["figures"]) > 20
    assert "Did you mean 'planning'" in run(*ASKED, "--explain", "planing").err


def test_settings_are_those_of_the_page(run: Cli) -> None:
    (two,) = json.loads(run(*ASKED, "--tp", "2", "--kv-dtype", "fp8", "--output", "250", "--target", "30",
                            "--tenants", "20", "--engine", "vllm", "--json").out)  # fmt: skip
    settings = two["sizing"]["settings"]
    assert settings["tensor_parallel"] == 2
    assert two["sizing"]["plan"]["kv_cache_dtype"] == "fp8"
    assert two["sizing"]["hardware"]["other_tenants_gb"] == 20
    assert two["sizing"]["target_tok_s"] == 30
    assert two["sizing"]["inputs"]["output_tokens"] == 250


def test_what_does_not_fit_exits_with_1_and_names_the_way_out(run: Cli) -> None:
    ran = run("size", "--model", "Qwen/Qwen3-32B", "--gpu", "RTX 4090", "--context", "4k", "--users", "8",
              "--quantization", "fp8")  # fmt: skip
    assert ran.code == 1
    assert "34.3 GB of weights do not fit" in ran.out and "What would do: 2 devices" in ran.out


def test_a_stated_fact_fills_a_gap(run: Cli, home: Path) -> None:
    (home / "catalog").mkdir(parents=True)
    gap = "schema: 1\ngpus:\n  - {id: nvidia-jetson-agx-thor-t5000, bandwidth_gb_s: null}\n"
    (home / "catalog" / "gpus.yaml").write_text(gap)
    words = [w if w != "GX-10" else "Jetson Thor" for w in ASKED]
    assert "memory bandwidth" in run(*words).out
    ran = run(*words, "--bandwidth", "273GB/s", "--explain", "bound")
    assert "bandwidth = 273 GB/s a device (stated by the user)" in ran.out


def test_a_model_is_added_from_its_config(run: Cli, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
        "max_position_embeddings": 2048, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    ran = run("model", "add", str(folder), "--id", "our/tiny")
    assert ran.code == 0 and "our/tiny is in the catalogue" in ran.out
    ran = run("size", "--model", "our/tiny", "--gpu", "GX-10", "--context", "1024", "--users", "2", "--explain",
              "kv_per_token")  # fmt: skip
    assert "KV cache per token: 256 B" in ran.out  # 2 x 2 layers x 2 KV heads x 16 dimensions x 2 bytes
    assert run("model", "add", str(tmp_path / "nothing")).code == 2


def test_score_names_roles_and_flip_weights(run: Cli) -> None:
    ran = run("score", "--case", "nortia")
    assert ran.code == 0
    assert "only a measurement names a winner" in ran.out
    for role in ("favourite", "baseline", "re-examine", "later", "stopped"):
        assert role in ran.out
    assert "SGLang below 0.06" in ran.out
    assert not re.search(r"\b(release_cadence|ease_of_install|chunked_prefill)\b", ran.out)  # names, not ids
    assert "gpu and precision" in ran.out and "in maintenance mode since 2025-12-11" in ran.out
    assert "12.5 (3)" in ran.out  # batching: 4 of 32 points, rated 3 of 3
    assert "Ollama would be enough up to 4 users at once" in ran.out
    assert "First by peak users: Ollama 1 to 5, vLLM 6 to 100." in ran.out
    assert "P-sglang-prefix" in ran.out
    data = json.loads(run("score", "--case", "nortia", "--json").out)
    assert data["favourite"] == "vllm"
    assert {"gates", "contributions", "score"} <= data["candidates"][0].keys()
    assert data["flip_weights"] and data["what_if"]["enough"][0]["up_to"] == 4


def test_score_reads_requirements_from_a_file(run: Cli, tmp_path: Path) -> None:
    few = tmp_path / "few.yaml"
    few.write_text(SHIPPED.replace("peak_users_max: 50", "peak_users_max: 3").replace("peak_users_min: 20",
                   "peak_users_min: 1"), encoding="utf-8")  # fmt: skip
    ran = run("score", "--case", str(few))
    assert ran.code == 0
    assert "Ollama suffices for a peak of 3" in ran.out


def test_score_where_one_engine_is_left_prints_no_empty_table(run: Cli, tmp_path: Path) -> None:
    # 31.2 GB of weights on an RTX 4090 under Windows: one engine passes, and memory is why it is not enough.
    alone = tmp_path / "alone.yaml"
    alone.write_text(SHIPPED.replace("gpu: nvidia-gb10-dgx-spark", "gpu: nvidia-rtx-4090\n      os: windows"),
                     encoding="utf-8")  # fmt: skip
    ran = run("score", "--case", str(alone))
    assert ran.code == 0
    assert "not one request of that length fits its memory (q8_0 gguf)" in ran.out
    for said in ("No weight from 0 to 1 names another winner.", "No single step of one rating changes the winner.",
                 "The score asks for no hypothesis of its own."):  # fmt: skip
        assert said in ran.out
    assert not re.search(r"┡[━╇]+┩\n└", ran.out)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SHIPPED.replace("peak_users_min: 20", "peak_users_min: twenty"), r"bad\.yaml, line 8: peak_users_min: input"),
        ("- 1\n", r"bad\.yaml: holds no requirements"),
        ("a: [1\n", r"bad\.yaml, line \d: is not readable as YAML"),
        ("requirements: {peak_users_max: 3}\n", r"bad\.yaml: peak_users_min, user_tok_s_promise, .*hardware missing"),
        ("requirements: {x: 2026-13-45}\n", r"bad\.yaml: is not readable as YAML: month must be in"),
        ("a: &a 1\nb: *a\n", r"bad\.yaml, line 1: uses an anchor or alias"),
        ("a: !!python/object/apply:os.system ['id']\n", r"bad\.yaml, line 1: .*could not determine a constructor"),
        ("a: " + "[" * 50 + "]" * 50 + "\n", r"bad\.yaml, line 1: is nested deeper than 20 levels"),
        ("a: " + "x" * 1_100_000, r"bad\.yaml: has 1,100,003 characters"),
        (None, "cannot be read"),
    ],
)
def test_a_faulty_requirements_file_is_one_sentence(run: Cli, tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "bad.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    ran = run("score", "--case", str(path))
    assert ran.code == 2
    assert re.search(words, ran.err)
    assert ran.err.count("\n") == 1


def test_launch_prints_the_file_alone_so_that_it_can_be_piped(run: Cli) -> None:
    ran = run("launch", "--case", "nortia", "--engine", "vllm", "--form", "k8s", "--purpose", "production")
    assert (ran.code, ran.err) == (0, "")
    kinds = [o["kind"] for o in yaml.safe_load_all(ran.out)]
    assert kinds == ["Deployment", "Service", "NetworkPolicy"]
    assert "# Why each setting has its value:" in ran.out
    script = run("launch", "--case", "nortia", "--engine", "llama-server", "--gguf", "/srv/models/b.gguf").out
    assert script.startswith("#!/bin/sh\n") and "exec llama-server \\\n  -m /srv/models/b.gguf" in script
    data = json.loads(run("launch", "--case", "nortia", "--engine", "sglang", "--json").out)
    assert data["form"] == "bare" and data["launch"]["argv"][:2] == ["sglang", "serve"]
    assert all(f["why"] for f in data["launch"]["flags"])


def test_launch_writes_every_file_and_says_what_is_still_to_do(run: Cli, tmp_path: Path) -> None:
    target = tmp_path / "start"
    ran = run("launch", "--case", "nortia", "--engine", "tensorrt_llm", "--form", "docker", "--out", str(target))
    assert ran.code == 0
    assert {p.name for p in target.iterdir()} == {"run-tensorrt-llm.sh", "tensorrt_llm.yaml"}
    assert yaml.safe_load((target / "tensorrt_llm.yaml").read_text())["return_perf_metrics"] is True
    assert "! Digest as pinned by invarlock/invarlock@1ac5dd28, not pulled here." in ran.out
    assert "max_batch_size" in ran.out
    assert "daily use" in ran.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--engine", "vlm"), "Did you mean 'vllm'"),
        (("--engine", "vllm", "--out", "/proc/here"), "/proc/here: cannot be written"),
    ],
)
def test_a_launch_that_cannot_be_made_is_one_sentence(run: Cli, words: tuple[str, ...], sentence: str) -> None:
    ran = run("launch", "--case", "nortia", *words)
    assert ran.code == 2
    assert sentence in ran.err and ran.err.count("\n") == 1


def test_plan_is_a_file_that_bench_reads(run: Cli, tmp_path: Path) -> None:
    target = tmp_path / "plan.yaml"
    assert run("plan", "--case", "nortia", "--out", str(target)).code == 0
    plan = plan_from_yaml(target.read_text())
    assert [h.id for h in plan.hypotheses][:5] == ["H1", "H2", "H3", "H4", "H5"]
    assert plan_from_yaml(run("plan", "--case", "nortia", "--draft").out).sha256() == plan.sha256()


def test_plan_is_cut_to_a_budget_and_says_what_that_cost(run: Cli) -> None:
    ran = run("plan", "--case", "nortia", "--budget", "400")
    plan = plan_from_yaml(ran.out)
    assert plan.budget_min == 400
    assert "! the budget cost ollama at parallel-50" in ran.err
    assert run("plan", "--case", "nortia", "--budget", "60").code == 2
    assert "0 minutes are no time" in run("plan", "--case", "nortia", "--budget", "0").err


def test_plan_writes_the_ready_folder_and_the_request(run: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "box"
    assert run("plan", "--case", "nortia", "--folder", str(folder)).code == 0
    assert {p.name for p in folder.iterdir()} == {
        "plan.yaml", "README.md", "request.md", "request.html", "start-vllm.sh", "start-ollama.sh"
    }  # fmt: skip
    said = run("plan", "--case", "nortia", "--request", "md", "--price-per-hour", "4", "--approver", "A. Lead").out
    assert said.startswith("# Request for GPU time: Nortia") and "EUR an hour" in said and "A. Lead" in said
    assert "9 h" in run("plan", "--case", "nortia", "--cost").out
    refused = run("plan", "--case", "nortia", "--request", "html", "--out", "/proc/here/r.html")
    assert refused.code == 2 and "cannot be written" in refused.err


def test_catalog_check_finds_a_faulty_own_entry(run: Cli, home: Path) -> None:
    assert run("catalog", "check").code == 0
    own = home / "catalog"
    own.mkdir(parents=True)
    (own / "gpus.yaml").write_text("schema: 1\ngpus:\n  - {id: nvidia-rtx-3090, bandwidth_gb_s: -5}\n")
    ran = run("catalog", "check")
    assert ran.code == 1
    assert re.search(r"BROKEN gpus\.yaml.*'nvidia-rtx-3090': bandwidth_gb_s", ran.out)
    (own / "gpus.yaml").write_text("schema: 1\ngpus:\n  - {id: nvidia-rtx-3090, bandwidth_gb_s: 900}\n")
    assert run("catalog", "check").code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("size", "--case", "nortja"), "unknown case 'nortja'. Did you mean 'nortia'?"),
        (("size",), "size: --model is missing. Name a case, or a model"),
        (("size", "--case", "nortia", "--kv-dtype", "fp8"), "size: --kv-dtype does not go with --case."),
        ((*ASKED, "--tp", "3"), "Qwen/Qwen3-30B-A3B: 32 attention heads do not divide over 3 devices."),
        (("take-in", "--case", "nortia", "nowhere"), "nowhere: is not there."),
        (("usage", "--case", "nortia", "nowhere", "--by", "Lee", "--source", "x"), "nowhere: cannot be read"),
        (("usage", "--case", "nortia", "--by", "Lee"), "usage: is read from a file or from a Prometheus."),
        (("usage", "--case", "nortia", "--by", "Lee", "--prometheus", "prom"), "Prometheus: is no address."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(run: Cli, words: tuple[str, ...], sentence: str) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert ran.err.startswith(sentence)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [*(c.words for c in cli.COMMANDS), "catalog check"])
def test_every_command_shows_an_example(run: Cli, words: str) -> None:
    ran = run(*words.split(), "--help")
    assert ran.code == 0
    assert f"Example: python cli.py {words}" in " ".join(ran.out.split())


def test_hypotheses_are_listed_in_order_with_what_they_cost(run: Cli) -> None:
    ran = run("hypotheses", "--case", "nortia", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    first, *rest = found["hypotheses"]
    assert (first["id"], first["place"], first["waits_for"]) == ("H1", 1, [])
    assert all(h["waits_for"] == ["H1"] for h in rest)
    h3 = next(h for h in rest if h["id"] == "H3")
    assert h3["conditions"] == ["vllm: user_tok_s p5 >= 20 tok/s at parallel-16 near 10 %"]
    assert h3["warning"].startswith("Already doubtful: predicted to fail: 8.2 tok/s against 20 tok/s")
    assert sum(h["adds"]["tokens"] for h in found["hypotheses"]) == found["total"]["tokens"] > 0
    said = run("hypotheses", "--case", "nortia", "--draft").out
    assert "shared runs counted once" in said and "H-prefix" in said
    assert "Already doubtful: predicted to fail: 8.2 tok/s against 20 tok/s (planning)." in said
    assert "Expected: predicted to hold: " in said
    assert run("hypotheses", "--case", "nirtia").code == 2


def test_a_home_that_is_a_file_is_one_sentence(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("mine")
    assert cli.main(["--home", str(file), "adr", "list"]) == 2
    assert capsys.readouterr().err == (
        f"{file}: cannot be made a folder: File exists. Name a folder you may write to, by --home or FLIPLINE_HOME.\n"
    )
    assert file.read_text() == "mine"


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999"])
def test_no_number_of_the_command_line_is_nan_or_infinite(run, word):
    ran = run("results", "--case", "two-cores", f"--ttft={word}")
    assert ran.code == 2 and f"'{word}' is not a number that can be" in ran.err


def test_an_output_that_cannot_be_written_is_one_sentence(run, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2026-11-01 10:00:00,100,50\n")
    ran = run("traffic", str(log), "--replay", str(tmp_path))
    assert ran.code == 2
    fix = "Check the path, its rights and the room there."
    assert ran.err == f"{tmp_path}: cannot be read or written: Is a directory. {fix}\n"


def test_an_interruption_is_one_sentence(run, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    ran = run("adr", "list")
    assert (ran.code, ran.err) == (130, "Interrupted; what was not finished is not stored.\n")
