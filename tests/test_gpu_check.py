"""What scripts/gpu_check.py works out before any GPU is touched."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from planner.catalog import load_catalog
from planner.errors import InputError
from scripts.gpu_check import GEOMETRIES, gpu_of, look, plan_of


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
