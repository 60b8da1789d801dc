"""A real vLLM with little KV cache: first token, preemption, prefix cache, and vLLM's own client beside ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from bundle.summary import summarise
from planner.plan_file import plan_to_yaml
from planner.poc import Plan, PlanCandidate
from tests.engine.edge import seen
from tests.engine.live import attached, measured, tokens_of
from tests.engine.plans import closed
from tests.engine.server import ENGINE_PYTHON, MODEL, ROOT

pytestmark = pytest.mark.engine

BLOCK = 128  # tokens in a KV block of vLLM's CPU build; its prefix cache holds whole blocks
AGREES_WITHIN = 0.03
STEP_S = 0.001  # to which two processes' readings of one clock are trusted
LONG = 1024  # prompt tokens


def test_time_to_first_token_is_the_servers_plus_the_http_path(
    live: PlanCandidate, edge_file: Path, tmp_path: Path
) -> None:
    """The path is what the server's HTTP layer takes, before its histogram begins and after it ends, at every request.

    Ours may then be no earlier than the server wrote the first text, and later by no share that the error allows.
    """
    point = closed("long", 1, 20, input_tokens=LONG, output_tokens=4)
    _, passes = measured(attached(live, point, repeats=3), tmp_path / "r")
    told, differences = [], []
    for p in passes:
        assert {(r.outcome, r.prompt_tokens) for r in p.records} == {("ok", LONG)}
        t0 = p.repeat.t0_unix_s
        at_the_edge = [s for s in seen(edge_file) if t0 <= s.received_s <= t0 + p.repeat.duration_s]
        both = list(zip(p.records, at_the_edge, strict=True))
        assert all(t0 + (r.dispatched_s or 0.0) <= s.received_s + STEP_S for r, s in both)
        assert all(s.first_text_s <= t0 + (r.first_token_s or 0.0) + STEP_S for r, s in both)
        ours, servers = p.first_token_ms()
        path = 1000 * fmean(s.first_text_s - s.received_s for s in at_the_edge) - servers
        told.append(f"ours {ours:.1f} ms, the server's {servers:.1f} ms, path {path:.1f} ms")
        assert 0 < path < servers, told
        differences.append(ours / (servers + path) - 1)
    assert 0 <= median(differences) <= AGREES_WITHIN, told


COUNT = """
import json, sys
from pathlib import Path
from bench.inputs import local_counter

count = local_counter(Path(sys.argv[1]))
json.dump([count(text) for text in json.load(sys.stdin)], sys.stdout)
"""


def test_a_local_tokenizer_counts_what_the_server_counts(live: PlanCandidate) -> None:
    """The package `tokenizers` is optional and lies in the engine's environment, whose Python reads the file here."""
    texts = ["Note:" + " time" * 40, "Note:", "  two  blanks\n", "日本語の文", "<|im_end|>", "x" * 300]
    done = subprocess.run([ENGINE_PYTHON, "-c", COUNT, MODEL], input=json.dumps(texts), cwd=ROOT, capture_output=True,
                          text=True, env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [tokens_of(live, text) for text in texts]


def test_preemption_is_provoked_and_seen(live: PlanCandidate, tmp_path: Path) -> None:
    """32 requests of 600 tokens want 19,200 tokens of KV cache, and 40 blocks hold 5,120.

    vLLM counts a preemption when the request computes again, so that early samples of a run may still show none.
    """
    point = closed("crowded", 32, 32, input_tokens=88, output_tokens=512).model_copy(update={"warmup_requests": 0})
    folder, [p] = measured(attached(live, point), tmp_path / "r")
    assert {(r.outcome, r.prompt_tokens, r.output_tokens) for r in p.records} == {("ok", 88, 512)}
    preempted = p.grown("preemptions")
    assert preempted >= 1
    assert max(p.gauges["kv_use"]) > 0.8, p.gauges
    assert max(p.gauges["waiting"]) >= 1, p.gauges
    assert [e.value for e in summarise(folder) if e.metric == "preemptions"] == [preempted]
    # What was computed twice is not counted twice.
    assert p.grown("generation_tokens") == sum(r.output_tokens or 0 for r in p.records) == 32 * 512


def test_a_shared_prefix_is_found_in_the_cache_and_another_salt_is_not(live: PlanCandidate, tmp_path: Path) -> None:
    """The second repeat sends the same prompts as the first, byte for byte, under another salt."""
    tokens, shared = 1024, 0.9
    lengths = {"input_tokens": tokens, "output_tokens": 4}
    points = (
        closed("shared", 2, 16, **lengths).model_copy(update={"shared_prefix": shared}),
        closed("salted", 2, 16, **lengths),
    )
    folder, passes = measured(attached(live, *points, repeats=2), tmp_path / "r")
    hit = {(p.repeat.load_point, p.repeat.repeat): p.grown("prefix_hits") / p.grown("prefix_queries") for p in passes}
    # The prefix lies in (whole) blocks; only the first of each slot can find it missing.
    most = shared * tokens // BLOCK * BLOCK / tokens
    for repeat in (1, 2):
        assert most * (1 - 2 / 16) <= hit["shared", repeat] <= most, hit
        assert hit["salted", repeat] <= 0.01, hit
    evidence = {(e.load_point, e.repeat): e for e in summarise(folder) if e.metric == "prefix_hit"}
    assert {k: e.value for k, e in evidence.items()} == hit
    # A machine that stood still spoils a repeat by other rules.
    assert not [rule for e in evidence.values() for rule in e.spoiled_by if rule.startswith("prefix-cache")]


def test_vllms_own_client_and_ours_are_asked_for_the_same_and_set_side_by_side(
    live: PlanCandidate, tmp_path: Path
) -> None:
    """By how much they differ is for `bench crosscheck` on a quiet machine to say (docs/crosscheck.md)."""
    report = crosscheck(attached(live, closed("parallel-4", 4, 40)), tmp_path)
    assert report["prompt_tokens"] == [64, 64]
    rows = {r["metric"]: r for r in report["rows"]}
    assert {"output_tok_s", "ttft_ms", "tpot_ms", "e2e_ms"} <= rows.keys()
    for row in rows.values():
        assert all(v > 0 for v in (*row["ours"], *row["theirs"]))
        assert row["a_a"] >= 0


def crosscheck(plan: Plan, folder: Path) -> dict[str, Any]:
    """The report of `python -m bench crosscheck`, as a person would call it."""
    file = folder / "plan.yaml"
    file.write_text(plan_to_yaml(plan), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "bench", "crosscheck", str(file), "--client-python", str(ENGINE_PYTHON),
         "--tokenizer", str(MODEL), "--rounds", "2", "--json"],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report
