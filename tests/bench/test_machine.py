"""What is read from the machine, with a stand-in for the driver's tool where there is no GPU."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from bench.exchange import Origin
from bench.machine import environment, observed_machine, undisturbed
from planner.contract import FIELD

HERE = Origin("http", "127.0.0.1", 8000)
THERE = Origin("http", "gpu-box.example", 8000)


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


def test_gpus_are_named_as_the_driver_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, r"NVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15\n")
    found = observed_machine(HERE, devices=1)
    assert (found["gpu"], found["gpu_count"], found["driver"]) == ("NVIDIA H200", "1", "570.86.15")
    assert observed_machine(HERE, devices=2)["gpu_count"] == "2"


def test_without_a_gpu_the_processor_is_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = observed_machine(HERE, devices=1)
    assert found["gpu"] == f"cpu: {found['cpu']}"
    assert found["gpu_count"] == "0"
    assert "driver" not in found


def test_every_field_is_one_of_the_contract() -> None:
    assert all(FIELD[name].part == "observed" for name in observed_machine(HERE, devices=1))


def test_nothing_of_this_machine_is_said_about_another_one() -> None:
    assert observed_machine(THERE, devices=1) == {}
    assert environment(THERE)["placement"] == "another machine (network)"


def test_scheduling_and_collection_are_put_back() -> None:
    before = os.sched_getscheduler(0)
    with undisturbed() as allowed:
        assert not gc.isenabled()
        assert (os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR) == allowed
    assert gc.isenabled()
    assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == before & ~os.SCHED_RESET_ON_FORK
