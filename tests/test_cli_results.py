"""What came back, from the terminal: bundles, verdicts, usage, comparison, traffic."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from bundle.folder import pack
from services.verdicts import case_state
from services.workspace import now, open_workspace
from tests.bundle.made import bundle
from tests.services.crossing import both_speeds, crossing_plan
from tests.terminal import Cli, accepted_adr, home, month, run

__all__ = ["home", "run"]  # fixtures


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_take_in_stores_bundles_once(run: Cli, tmp_path: Path, form: str) -> None:
    folder = bundle(tmp_path / "results" / "vllm-1")
    path = tmp_path / "results"
    if form == "zip":
        path = tmp_path / "results.zip"
        pack([folder], path)
    ran = run("take-in", "--case", "nortia", str(path), "--by", "Lee")
    assert (ran.code, "new" in ran.out) == (0, True)
    assert "1 of 1: " in ran.out
    assert "was there" in run("take-in", "--case", "nortia", str(path)).out


def test_take_in_names_a_broken_bundle_beside_the_good_ones(run: Cli, tmp_path: Path) -> None:
    for start in (1, 2):
        bundle(tmp_path / "results" / f"vllm-{start}", start=start)
    (tmp_path / "results" / "vllm-2" / "telemetry.parquet").write_bytes(b"altered")
    ran = run("take-in", "--case", "nortia", str(tmp_path / "results"))
    assert (ran.code, "1 of 2: vllm-1" in ran.out, "run-vllm-1" in ran.out) == (1, True, True)
    assert "BROKEN vllm-2: telemetry.parquet was altered after the run." in ran.out


def test_take_in_refuses_an_altered_bundle_and_stores_nothing(run: Cli, home: Path, tmp_path: Path) -> None:
    folder = bundle(tmp_path / "results" / "vllm-1")
    (folder / "records" / "r1.parquet").write_bytes(b"altered")
    ran = run("take-in", "--case", "nortia", str(tmp_path / "results"))
    assert ran.code == 2
    assert ran.err.count("\n") == 1 and "records/r1.parquet" in ran.err
    ws = open_workspace(home)
    assert case_state(ws, "nortia").runs == ()
    ws.store.close()


def test_verdicts_exit_with_1_when_a_hypothesis_fails(run: Cli) -> None:
    ran = run("verdicts", "--case", "nortia", "--json")
    assert ran.code == 1  # H4 fails as imported: 8.13 s at the nearest published rate, against 2 s
    found = {h["id"]: h["state"] for h in json.loads(ran.out)["hypotheses"]}
    assert found["H4"] == "fails"
    assert {found[h] for h in ("H1", "H2", "H3", "H5", "H6-1")} == {"unmeasured"}
    first = json.loads(ran.out)["measure_next"][0]
    assert (first["candidate"], first["load_point"], first["could"]) == ("vllm", "single", "end the plan")
    told = run("verdicts", "--case", "nortia").out
    assert "8.13 s" in told and "Measure next" in told and "vllm at single" in told
    words = " ".join(told.replace("│", " ").split())  # a table wraps its cells
    assert "Expected: predicted to fail: 8.2 tok/s against 20 tok/s (planning)." in words  # H3, before any run


@pytest.mark.parametrize(("peak", "days", "fires"), [(5, 28, True), (6, 28, False), (5, 20, False)])
def test_four_weeks_of_five_users_fire_the_condition_and_nothing_less(
    run: Cli, home: Path, tmp_path: Path, peak: float, days: int, fires: bool
) -> None:
    run("adr", "list")  # the first command puts the shipped cases there
    accepted_adr(home)
    file = tmp_path / "usage.csv"
    file.write_text(month(peak, days))
    ran = run("usage", "--case", "nortia", str(file), "--by", "Lee", "--source", "gateway log")
    assert ran.code == 0
    assert f"{days} days, " in ran.out
    assert f"highest peak in flight {peak}" in ran.out
    assert ("FIRED few-users" in ran.out) is fires


def test_compare_says_what_contracts_allow_and_every_outcome(run: Cli) -> None:
    ran = run("compare", "--case", "two-cores")
    assert ran.code == 0
    assert "vllm against llama-server: comparable with a declared difference" in ran.out
    assert "weight_format: safetensors -> gguf" in ran.out
    pairs = json.loads(run("compare", "--case", "two-cores", "--json").out)
    bits = "quantization: fp32 -> q4_0"
    assert [(p["left"], p["right"], bits in p["differences"]) for p in pairs] == [
        ("vllm", "llama-server", False), ("vllm", "llama-server-q4", True), ("llama-server", "llama-server-q4", True)
    ]  # fmt: skip
    figures = {(f["metric"], f["statistic"], f["load_point"]): f for f in pairs[0]["figures"]}
    assert figures["output_tok_s", "value", "single"]["higher"] == "llama-server"
    assert figures["ttft_ms", "p50", "single"]["outcome"] == "refused"
    assert "nothing to compare" in run("compare", "--case", "nortia").out


def test_speeds_in_two_precisions_carry_their_warning_in_every_command(run: Cli, home: Path, tmp_path: Path) -> None:
    ws = open_workspace(home)
    crossing_plan(ws)
    both_speeds(ws, tmp_path)
    ws.store.close()
    for words in (("results",), ("results", "--json"), ("verdicts",), ("verdicts", "--json"), ("compare",)):
        said = " ".join(run(words[0], "--case", "nortia", *words[1:]).out.split())
        assert "no quality result stands beside their speeds" in said, words


def test_usage_reads_a_request_log_and_says_which_days_do_not_count(run: Cli, tmp_path: Path) -> None:
    """A day has 24 hours: of the first only the last hour was looked at."""
    day = now().date() - timedelta(days=3)
    times = (f"{day}T23:00:00Z", f"{day + timedelta(days=1)}T12:00:00Z", f"{day + timedelta(days=1)}T23:59:00Z")
    file = tmp_path / "gateway.csv"
    file.write_text("\n".join(("timestamp,input_tokens,output_tokens,latency_s", *(f"{x},100,20,5" for x in times))))
    ran = run("usage", "--case", "nortia", str(file), "--by", "Lee", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert [(d["day"], d["peak_in_flight"], d["requests"]) for d in found["days"]] == [
        (f"{day + timedelta(days=1)}", 1, 2)
    ]
    assert [g["day"] for g in found["gaps"]] == [f"{day}"]
    assert f"! {day}: 4% covered, not counted." in run("usage", "--case", "nortia", str(file), "--by", "Lee").out


def test_usage_names_line_and_field(run: Cli, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    file.write_text("date,peak_in_flight\n2026-10-01,4\n2026-10-02,many\n")
    ran = run("usage", "--case", "nortia", str(file), "--by", "Lee", "--source", "log")
    assert ran.code == 2
    assert ran.err == "usage.csv, line 3: peak_in_flight 'many' is not a number.\n"


def test_traffic_says_what_a_log_says_and_writes_the_trace_to_replay(run: Cli, tmp_path: Path) -> None:
    log, trace = tmp_path / "azure.csv", tmp_path / "replay.csv"
    rows = [f"2026-11-02 10:00:{i:02d}.0000000,{100 + i},50" for i in range(40)]
    log.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]), encoding="utf-8")
    shown = run("traffic", str(log), "--case", "nortia", "--replay", str(trace), "--requests", "10")
    assert shown.code == 0
    assert "Azure LLM inference trace" in shown.out and "requests_per_user_per_min" in shown.out
    assert len(trace.read_text().splitlines()) == 11
    found = json.loads(run("traffic", str(log), "--tok-s", "25", "--first-s", "2", "--json").out)
    # Each takes 2 s and 50 tokens at 25 tok/s: four in flight.
    assert (found["summary"]["n"], found["summary"]["in_flight"]["peak"], found["proposed"]) == (40, 4, [])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--rate-scale", "1e300"), "rate_scale: input should be less than or equal to 1000"),
        (("--requests", "0"), "requests: input should be greater than or equal to 1"),
        (("--tok-s", "1e9"), "tok_s: input should be less than or equal to 100000"),
        (("--tok-s", "10", "--first-s", "-1"), "first_s: input should be greater than or equal to 0"),
    ],
)
def test_a_replay_or_latency_that_cannot_be_is_one_sentence(
    run: Cli, tmp_path: Path, wrong: tuple[str, ...], said: str
) -> None:
    log = tmp_path / "gateway.csv"
    log.write_text("timestamp,input_tokens,output_tokens\n2026-09-01T10:00:00Z,100,20\n")
    ran = run("traffic", str(log), "--replay", str(tmp_path / "trace.csv"), *wrong)
    assert ran.code == 2
    assert said in ran.err and ran.err.count("\n") == 1


def test_traffic_of_unknown_columns_names_them_and_takes_them_by_hand(run: Cli, tmp_path: Path) -> None:
    log = tmp_path / "gateway.csv"
    log.write_text("when,in,out\n5,10,3\n7,12,4\n", encoding="utf-8")
    refused = run("traffic", str(log))
    assert refused.code == 2 and "has the columns when, in, out" in refused.err
    assert run("traffic", str(log), "--columns", "time=when,input=in,output=out", "--unit", "s").code == 0
    wrong = run("traffic", str(log), "--columns", "time=when,input=in,size=out")
    assert wrong.code == 2 and "unknown role 'size'" in wrong.err
