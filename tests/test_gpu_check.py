"""scripts/gpu_check.py: what it works out beforehand, and the whole of it with a stand-in for `transformers serve`.

What the real one answered on a CPU is kept in docs/gpu-box.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from bundle.summary import summarise
from planner.catalog import load_catalog
from planner.errors import InputError
from scripts.gpu_check import GEOMETRIES, ROOT, gpu_of, look, main, plan_of
from tests.bench.helpers import free_port

# In place of a Python with torch and transformers: says what it has, makes no weights, and serves the emulator.
STAND_IN = """#!{python}
import json, os, pathlib, sys
words = sys.argv[1:]
if "-c" in words:
    print(json.dumps({{"missing": [], "torch": "2.0", "transformers": "5.0", "gpu": {gpu!r}}}))
elif "serve" in words:
    if {broken}:
        sys.exit("RuntimeError: out of something")
    model, port = words[words.index("serve") + 1], words[words.index("--port") + 1]
    os.environ["PYTHONPATH"] = {root!r}
    os.execv({python!r}, [{python!r}, "-m", "bench", "emulate", "--engine", "openai", "--model", model, "--port", port,
                          "--ttft-ms", "20", "--itl-ms", "2"])
else:
    model = pathlib.Path(words[-1])
    model.mkdir()
    (model / "config.json").write_text("{{}}")
"""


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, gpu: str = "", broken: bool = False) -> int:
    """Run the script with the stand-in on the tiny geometry; returns its exit code."""
    python = tmp_path / "python-with-torch"
    python.write_text(STAND_IN.format(python=sys.executable, root=str(ROOT), gpu=gpu, broken=broken))
    python.chmod(0o755)
    words = ["gpu_check.py", "--geometry", "tiny", "--out", str(tmp_path / "out"), "--python", str(python)]
    monkeypatch.setattr(sys, "argv", [*words, "--port", str(free_port())])
    return main()


def test_the_whole_is_measured_and_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(tmp_path, monkeypatch) == 0
    summary = (tmp_path / "out" / "summary.md").read_text()
    rows = [line.split(" | ") for line in summary.splitlines() if line.startswith("| ") and "in flight" in line]
    assert [row[0] for row in rows] == ["| 1 in flight, 64 in / 16 out", "| 2 in flight, 64 in / 16 out"]
    folder = tmp_path / "out" / "results" / "transformers-A-start1"
    found = {(e.load_point, e.metric, e.statistic): e for e in summarise(folder)}
    for row, name in zip(rows, ("single", "parallel-2"), strict=True):
        _, speed, bound, ratio, ttft, tpot, *devices, spoiled = row
        assert float(ratio) == pytest.approx(float(speed) / float(bound), rel=0.01)
        columns = (("output_tok_s", "value"), ("ttft_ms", "p50"), ("tpot_ms", "p50"))
        measured = [found[name, *column].value for column in columns]
        assert [float(speed), float(ttft), float(tpot)] == pytest.approx(measured, rel=0.001)  # four digits
        assert float(ttft) > 20  # the emulator's time; how late it comes is the machine's
        assert devices == ["–", "–", "–"]
        assert spoiled.removesuffix("|").strip() == "; ".join(found[name, "output_tok_s", "value"].spoiled_by)
    assert "no GPU; bound of two-cpu-cores" in summary


def test_a_server_that_does_not_start_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(tmp_path, monkeypatch, broken=True) == 1
    assert "not measured" in (tmp_path / "out" / "summary.md").read_text()


def test_something_missing_is_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path, monkeypatch, gpu="Quadro 4000") == 2
    assert "does not know the device 'Quadro 4000'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("driver_says", "entry"),
    [
        ("NVIDIA H200", "nvidia-h200-sxm"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-sxm"),
        ("NVIDIA H100 PCIe", "nvidia-h100-80gb-pcie"),
        ("", "two-cpu-cores"),
    ],
)
def test_the_drivers_name_finds_the_catalogues_entry(driver_says: str, entry: str) -> None:
    assert gpu_of(load_catalog(), driver_says) == entry


def test_a_device_that_nobody_knows_is_asked_for() -> None:
    with pytest.raises(InputError, match="does not know the device 'Quadro 4000'"):
        gpu_of(load_catalog(), "Quadro 4000")


def test_a_python_that_lacks_packages_is_told_which() -> None:
    with pytest.raises(InputError, match="lacks torch, transformers"):
        look(Path(sys.executable))


def test_the_bound_is_weights_and_kv_over_bandwidth(tmp_path: Path) -> None:
    """Llama 3.1 8B in bf16 on an H200 (4,800 GB/s).

    Read per step: 32 layers x (2 x 4096 x 4096 + 2 x 4096 x 1024 attention + 3 x 4096 x 14336 feed-forward) + 128256 x
    4096 output projection = 7.50 billion weights, 15.01 GB; KV of one request of 512 + 128 tokens: 2 x 32 x 8 x 128 x
    2 bytes x 640 = 83.9 MB. One in flight: 4800 / 15.09 = 318 tok/s; 32: 32 x 4800 / (15.01 + 2.68) = 8,680.
    """
    options = argparse.Namespace(
        geometry="8b", gpu="", out=tmp_path, python=Path("/venv/bin/python"), port=1, batching=None
    )
    made = plan_of(options, {"gpu": "NVIDIA H200", "transformers": "5.0"}, tmp_path / "model")
    [server] = made.candidates
    assert server.bound_tok_s["single"] == pytest.approx(318, rel=0.005)
    assert server.bound_tok_s["parallel-32"] == pytest.approx(8680, rel=0.005)
    assert "--continuous-batching" in server.launch.command
    assert server.launch.environment["HF_HUB_OFFLINE"] == "1"
    assert [p.in_flight for p in made.load_points] == list(GEOMETRIES["8b"].in_flight)
