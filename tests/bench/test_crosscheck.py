"""Our client beside vLLM's: its definitions on our records, and the comparison with a stand-in for its process.

The real client on a real server is in tests/engine/test_live_vllm.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.crosscheck import crosscheck
from bench.crosscheck_report import METRICS, Report, compare, print_report, under_their_definitions
from bench.emulator import Emulator
from bench.vllm_client import Client
from planner.errors import InputError, ServerError
from planner.plan_file import plan_to_yaml
from tests.bench.helpers import FAST, candidate, free_port, plan, point, with_emulator
from tests.bench.test_cli import emulator
from tests.bundle.made import request

# Writes the result file that vLLM's client would write, with figures given by the test, and what it was asked for.
STAND_IN = """#!{python}
import json, sys
given = dict(zip(sys.argv[5::2], sys.argv[6::2]))
if {exit_code}:
    sys.exit("no vLLM here")
asked = [json.loads(line)["prompt"] for line in open(given["--dataset-path"])]
n = int(given["--num-prompts"])
told = {{"completed": n, "total_input_tokens": 40 * n, "vllm_version": "0.0", "asked": asked, "given": given}}
json.dump(told | {figures}, open(given["--result-dir"] + "/" + given["--result-filename"], "w"))
"""
FIGURES = {"output_throughput": 100.0, "mean_ttft_ms": 20.0, "mean_tpot_ms": 2.0, "mean_e2el_ms": 30.0}


def stand_in(tmp_path: Path, exit_code: int = 0, **figures: float) -> Client:
    """A program in place of the Python that has vLLM; `-W ignore -c CODE` comes before the client's arguments."""
    program = tmp_path / "python-with-vllm"
    program.write_text(STAND_IN.format(python=sys.executable, exit_code=exit_code, figures=FIGURES | figures))
    program.chmod(0o755)
    return Client(program, tmp_path)


def checked(client: Client, folder: Path) -> Report:
    """Both clients on an emulator, two rounds: 6 requests of 40 in / 6 out, 2 in flight."""

    async def use(emulator: Emulator) -> Report:
        asked = plan(candidate(emulator.port))
        return await crosscheck(asked, asked.candidates[0], asked.load_points[0], client, 2, folder)

    return with_emulator(FAST, use)


def test_our_records_under_their_definitions() -> None:
    # Two requests of 11 tokens: first token 0.2 s after the schedule and 0.15 s after dispatch, then 50 ms apart. The
    # second is scheduled 0.7 s later, so everything lasts 0.7 + 0.2 + 10 x 0.05 = 1.4 s.
    records = [request(i, 0.7 * i, dispatch_lag_s=0.05) for i in range(2)]
    assert under_their_definitions(records) == pytest.approx(
        {"output_tok_s": 22 / 1.4, "ttft_ms": 150.0, "tpot_ms": 50.0, "e2e_ms": 650.0}
    )


def test_a_failed_request_is_no_crosscheck() -> None:
    with pytest.raises(ServerError, match="1 of 2 requests of ours failed"):
        under_their_definitions([request(0, 0.0), request(1, 0.0, outcome="failed")])


def test_a_difference_is_held_against_a_a_plus_the_slack() -> None:
    def passes(*values: float) -> list[dict[str, float]]:
        return [dict.fromkeys(("output_tok_s", "ttft_ms", "tpot_ms", "e2e_ms"), v) for v in values]

    own = dict.fromkeys(("output_tok_s", "ttft_ms", "tpot_ms", "e2e_ms"), 100.0)
    # A/A: (102 - 98) / 100 = 4 %. Theirs, between two of 100 on average, are 8 % higher: within 4 + 5, beyond 4 + 3 %.
    rows = {r.metric: r for r in compare(passes(98, 102, 98), passes(108, 108), own)}
    assert {m: r.agrees for m, r in rows.items()} == {
        "output_tok_s": False, "ttft_ms": True, "tpot_ms": True, "e2e_ms": None,
    }  # fmt: skip
    assert rows["ttft_ms"].a_a == pytest.approx(0.04)
    assert rows["ttft_ms"].difference == pytest.approx(0.08)
    assert rows["ttft_ms"].allowed == pytest.approx(0.09)


def test_a_machine_that_slows_down_is_not_a_difference_between_clients() -> None:
    speeds = [100.0, 98.0, 96.0]
    ours = [dict.fromkeys(("output_tok_s", "ttft_ms", "tpot_ms", "e2e_ms"), v) for v in speeds]
    theirs = [dict.fromkeys(("output_tok_s", "ttft_ms", "tpot_ms", "e2e_ms"), v) for v in (99.0, 97.0)]
    assert [r.difference for r in compare(ours, theirs, ours[0])] == pytest.approx([0.0] * 4)


@pytest.mark.parametrize(
    ("waited", "others", "said"),
    [
        (None, None, ""),
        (0.009, 0.09, ""),
        (0.03, None, "our client waited for a core 3% of a pass"),  # of a server that ran already, others are not known
        (0.0001, 0.87, "other programs took 87% of its cores"),  # with real-time priority it never waits
    ],
)
def test_another_load_on_the_machine_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], waited: float | None, others: float | None, said: str
) -> None:
    report = checked(stand_in(tmp_path), tmp_path)._replace(waited_for_core=waited, other_load=others)
    print_report(report)
    told = capsys.readouterr().out
    assert ("Another load on the machine" in told) == bool(said)
    assert said in told


def test_the_load_beside_a_server_that_bench_started_is_known(tmp_path: Path) -> None:
    asked = plan(candidate(free_port(), "--slots", "8"))
    started = asyncio.run(crosscheck(asked, asked.candidates[0], asked.load_points[0], stand_in(tmp_path), 1, tmp_path))
    assert started.other_load is not None and 0 <= started.other_load <= 1


def test_both_send_the_same_prompts_and_fields(tmp_path: Path) -> None:
    report = checked(stand_in(tmp_path), tmp_path)
    assert report.prompt_tokens == (40, 40)
    assert (report.server_version or "").startswith("emulator/")
    assert [len(r.ours) for r in report.rows] == [3] * 4
    assert [r.theirs for r in report.rows] == [(v, v) for v in FIGURES.values()]
    first, second = (json.loads((tmp_path / f"vllm-{i}.json").read_text()) for i in (1, 2))
    assert first["asked"] == second["asked"]
    assert len(set(first["asked"])) == 6
    bodies = [json.loads(told["given"]["--extra-body"]) for told in (first, second)]
    assert bodies[0].pop("cache_salt") != bodies[1].pop("cache_salt")  # else the second pass would meet a warm cache
    assert bodies[0] == bodies[1]
    assert bodies[0]["ignore_eos"] is True
    assert bodies[0]["temperature"] == 0
    assert first["given"]["--max-concurrency"] == "2"


def test_a_python_without_vllm_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exit code 1: no vLLM here"):
        checked(stand_in(tmp_path, exit_code=1), tmp_path)
    nobody = Client(tmp_path / "missing", tmp_path)
    with pytest.raises(InputError, match="missing: cannot be run"):
        checked(nobody, tmp_path)


@pytest.mark.parametrize(("slack", "code", "word"), [(100.0, 0, "agrees"), (-1.0, 1, "DIFFERS")])
def test_agreement_is_the_exit_code_and_both_results_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], slack: float, code: int,
    word: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("bench.crosscheck_report.METRICS", {m: (n, u, slack) for m, (n, u, _) in METRICS.items()})
    client = stand_in(tmp_path)
    with emulator() as port:
        (tmp_path / "plan.yaml").write_text(plan_to_yaml(plan(candidate(port))), encoding="utf-8")
        words = ["crosscheck", str(tmp_path / "plan.yaml"), "--client-python", str(client.python), "--tokenizer",
                 str(tmp_path), "--rounds", "1", "--out", str(tmp_path / "kept")]  # fmt: skip
        assert main(words) == code
        told = capsys.readouterr().out
        assert main([*words, "--json"]) == code
    for row, theirs in zip(METRICS, ("100", "20", "2", "30"), strict=True):
        (line,) = (x.split() for x in told.splitlines() if row in x)
        assert line[4] == theirs and line[-1] == word
    assert (tmp_path / "kept" / "vllm-1.json").is_file()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["theirs"] for r in rows] == [[v] for v in FIGURES.values()]
    assert all(len(r["ours"]) == 2 for r in rows)


@pytest.mark.parametrize(
    ("shape", "output_length"),
    [({"shape": "open", "rate_per_s": 5.0}, "fixed"), ({"json_schema": {"type": "object"}}, "free")],
)
def test_only_a_plain_closed_loop_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: dict[str, object], output_length: str
) -> None:
    file = tmp_path / "plan.yaml"
    asked = candidate(1) | {"contract": {"engine": "vllm", "output_length": output_length}}
    file.write_text(plan_to_yaml(plan(asked, points=[point(**shape)])), encoding="utf-8")
    code = main(["crosscheck", str(file), "--client-python", sys.executable, "--tokenizer", str(tmp_path)])
    assert code == 2
    assert "the plan has no plain closed loop" in capsys.readouterr().err
