"""The terminal entry: exit codes, and one clear sentence for every wrong input."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.__main__ import _parser, main
from bench.emulator import Emulator
from bench.emulator.settings import Settings
from planner.plan_file import plan_to_yaml
from planner.poc import Launch
from tests.bench.helpers import FAST, candidate, free_port, plan

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def emulator(settings: Settings = FAST) -> Iterator[int]:
    """An emulator in a thread of its own, because the command runs a loop itself."""
    started, ended = threading.Event(), asyncio.Event()
    loop, made = asyncio.new_event_loop(), Emulator(settings)

    async def serve() -> None:
        await made.start()
        started.set()
        await ended.wait()
        await made.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    started.wait()
    try:
        yield made.port
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def written(folder: Path, port: int, *emulate: str, **changes: str) -> Path:
    """A plan file, with some text replaced."""
    text = plan_to_yaml(plan(candidate(port, *emulate)))
    for old, new in changes.items():
        text = text.replace(old, new)
    path = folder / "plan.yaml"
    path.write_text(text)
    return path


def test_run_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with emulator() as port:
        assert main(["run", str(written(tmp_path, port)), "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"state": "finished", "bundles": [str(tmp_path / "out" / "emu-A-start1")], "failed": [], "notes": []}
    assert main(["summary", str(tmp_path / "out"), "--json"]) == 0
    evidence = json.loads(capsys.readouterr().out)
    assert {e["kind"] for e in evidence} == {"simulated"}
    assert {"ttft_ms", "output_tok_s", "started"} <= {e["metric"] for e in evidence}
    assert main(["summary", str(tmp_path / "out")]) == 0
    assert "ttft_ms" in capsys.readouterr().out


def test_check_tries_one_request_and_keeps_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with emulator() as port:
        assert main(["check", str(written(tmp_path, port))]) == 0
    out = capsys.readouterr().out
    assert "emu: ok" in out
    assert "emulator/1 (emulator: results are simulated), KV capacity 1000000" in out
    assert [p.name for p in tmp_path.iterdir()] == ["plan.yaml"]


def test_check_tells_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with emulator() as port:
        assert main(["check", str(written(tmp_path, port)), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["candidate"], told["error"], told["kv_capacity_tokens"]) == ("emu", "", 1_000_000)
    assert told["simulated"] is True


def test_check_tries_every_candidate_and_says_of_each_how_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with emulator() as port:
        taken = candidate(port, "--slots", "4", name="taken")  # a start, where another server answers
        all_three = plan(candidate(free_port(), name="gone"), taken, candidate(port, name="there"))
        (tmp_path / "plan.yaml").write_text(plan_to_yaml(all_three))
        assert main(["check", str(tmp_path / "plan.yaml")]) == 1  # one did not answer, as --help says
    out = capsys.readouterr().out
    assert "gone: FAILED" in out and "the server is not there: it refused the connection" in out
    assert "taken: FAILED" in out and "there: ok" in out


def test_results_go_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["run", str(written(tmp_path, 1)), "--out", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err == f"bench: {tmp_path / 'file'}: is a file. Name a folder for the results.\n"


@pytest.mark.parametrize("shards", ["0", "-1", "1.5", "²", "100000", "9" * 5000])
def test_a_load_is_offered_by_a_number_of_processes_that_a_machine_can_have(
    capsys: pytest.CaptureFixture[str], shards: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "plan.yaml", "--out", "results", f"--shards={shards}"])
    assert "--shards" in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", [[], ["-u"]])
def test_a_reader_that_has_read_enough_is_no_error(unbuffered: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `| head` does before all is written
    told = "'told' * 50_000"  # more than any buffer between holds
    prints = (
        f"from bench import __main__ as b; b._doctor = lambda _: print({told}) or 1; b.sys.exit(b.main(['doctor']))"
    )
    done = subprocess.run([sys.executable, *unbuffered, "-c", prints], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")  # what was found stays found


def test_a_person_who_cancels_gets_130(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.commands.read_plan", interrupted)
    for command in (["check", "plan.yaml"], ["run", "plan.yaml", "--out", str(tmp_path)]):
        assert main(command) == 130


def test_a_failed_candidate_gives_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, free_port(), "--fault", "start-failure")
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "FAILED" in capsys.readouterr().out
    assert main(["check", str(path)]) == 1
    assert "the model cannot be loaded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("engine: vllm", "engine: vlm", "unknown engine 'vlm'. Did you mean 'vllm'?"),
        ("schema_version: 1", "schema_version: 2", "schema version 2 is newer than 1"),
        ("candidates:", "candidats:", "candidates: field required"),
        ("in_flight: 2", "in_flight: many", "in_flight"),
        ("title: Test", "title: [", "is not YAML"),
        ("output_length: fixed", "output_length: fixed\n    max_model_len: '20'", "candidate emu, max_model_len:"),
    ],
)
def test_a_wrong_plan_is_one_sentence_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, sentence: str
) -> None:
    path = written(tmp_path, 1, **{old: new})
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert sentence in told and "plan.yaml" in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_refusal_is_told_to_whoever_watches_the_folder(tmp_path: Path) -> None:
    path = written(tmp_path, 1, **{"engine: vllm": "engine: vlm"})
    (tmp_path / "out").mkdir()
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    told = json.loads((tmp_path / "out" / "progress.json").read_text())
    assert told["state"] == "failed"
    assert "unknown engine 'vlm'" in told["last_error"]


def test_a_plan_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "no.yaml"), "--out", str(tmp_path)]) == 2
    assert "no.yaml: cannot be read: No such file or directory." in capsys.readouterr().err


def test_a_server_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(written(tmp_path, free_port())), "--out", str(tmp_path / "out")]) == 2
    assert "the server is not there" in capsys.readouterr().err


def test_a_server_that_answers_404(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with emulator(Settings(fault="404")) as port:
        assert main(["run", str(written(tmp_path, port)), "--out", str(tmp_path / "out")]) == 2
    assert "answered 404: The model `emulated` does not exist." in capsys.readouterr().err


def test_a_folder_without_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(tmp_path)]) == 2
    assert "holds no bundle" in capsys.readouterr().err


def test_a_fault_that_ends_the_emulator_is_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "--fault", "start-failure"]) == 1
    assert "the model cannot be loaded" in capsys.readouterr().err


def test_an_unknown_fault_and_a_taken_port(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "--fault", "stal"]) == 2
    assert "Did you mean 'stall'" in capsys.readouterr().err
    assert main(["emulate", "--fault", "die:soon"]) == 2
    assert "such as die:10" in capsys.readouterr().err
    with emulator() as port:
        assert main(["emulate", "--port", str(port)]) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err


def commands() -> list[str]:
    (choices,) = (a.choices for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    return list(choices)


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself_with_an_example_and_its_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Example: python -m bench {command}" in told
    assert "Exit codes: 0 " in told
    assert "--json" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_emulator_says_as_json_where_it_listens(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-m", "bench", "emulate", "--port", "0", "--json"],
                          cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:  # fmt: skip
        assert running.stdout
        told = json.loads(running.stdout.readline())
        running.send_signal(number)
        assert running.stdout.read() == ""
        assert running.wait() == 0
    assert told["model"] == "emulated"
    assert told["url"].startswith("http://127.0.0.1:")


def test_it_runs_as_a_module() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "run" in told.stdout and "emulate" in told.stdout


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_one_sentence(capsys, port):
    assert main(["emulate", f"--port={port}"]) == 2
    assert capsys.readouterr().err == f"bench: {port} is no port. Use 1 to 65535, or 0 to let the system choose.\n"


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://\u202ehost:80"])
def test_an_address_that_names_no_server_is_one_sentence(tmp_path, capsys, url):
    made = plan(candidate(8000, url=url))
    (tmp_path / "plan.yaml").write_text(plan_to_yaml(made))
    assert main(["run", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert "names no server. Write it as http://127.0.0.1:8000." in capsys.readouterr().err


def test_a_command_with_a_nul_byte_is_refused_before_anything_starts():
    with pytest.raises(ValueError, match="command and environment hold no NUL byte"):
        Launch(command=("vllm", "serve", "a\0b"))
