"""What would spoil a measurement, on machines made of files as the kernel writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import doctor
from bench.__main__ import main
from bench.doctor import Check

CPU = "sys/devices/system/cpu"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def machine(root: Path, **files: str) -> Path:
    """A machine with these files, by path."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
    return root


def meminfo(total_kb: int, free_kb: int) -> str:
    return f"MemTotal:       65536000 kB\nSwapTotal:      {total_kb} kB\nSwapFree:       {free_kb} kB"


@pytest.mark.parametrize(
    ("check", "files", "state", "words"),
    [
        (doctor.governor, {}, "ok", "Nothing on this machine"),
        (doctor.governor, {f"{CPU}/cpu{i}/cpufreq/scaling_governor": "performance" for i in range(2)}, "ok", "full"),
        (doctor.governor, {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
                           f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"}, "spoils", "performance, powersave"),
        (doctor.clock_source, {CLOCK: "tsc"}, "ok", "tsc"),
        (doctor.clock_source, {CLOCK: "arch_sys_counter"}, "ok", "arch_sys_counter"),
        (doctor.clock_source, {CLOCK: "hpet"}, "spoils", "every reading takes microseconds"),
        (doctor.clock_source, {}, "note", "does not say"),
        (doctor.swap, {"proc/meminfo": meminfo(8_388_608, 8_388_608)}, "ok", "No swap"),
        (doctor.swap, {"proc/meminfo": meminfo(0, 0)}, "ok", "No swap"),
        # 8,388,608 - 7,340,032 kB = 1,024 MiB
        (doctor.swap, {"proc/meminfo": meminfo(8_388_608, 7_340_032)}, "spoils", "1,024 MiB of swap"),
    ],
)  # fmt: skip
def test_the_kernels_files_are_read(
    tmp_path: Path, check: Callable[[Path], Check], files: dict[str, str], state: str, words: str
) -> None:
    found = check(machine(tmp_path, **files))
    assert found.state == state
    assert words in found.sentence
    assert bool(found.way_out) == (state == "spoils")


@pytest.mark.parametrize(
    ("limits", "state", "way_out"),
    [
        ((1024, 1_048_576), "spoils", "ulimit -n 4096"),
        ((1024, 1024), "spoils", "limits.conf"),
        ((65_536, 1_048_576), "ok", ""),
        ((-1, -1), "ok", ""),
    ],
)
def test_few_open_files_spoil(tmp_path: Path, limits: tuple[int, int], state: str, way_out: str) -> None:
    found = doctor.open_files(tmp_path, limits)
    assert found.state == state
    assert way_out in found.way_out


@pytest.mark.parametrize(("busy", "state", "share"), [(2, "ok", "2%"), (70, "spoils", "70%")])
def test_load_is_what_the_cores_did_while_it_looked(tmp_path: Path, busy: int, state: str, share: str) -> None:
    # proc(5): user nice system idle iowait irq softirq steal, in jiffies since boot
    root = machine(tmp_path, **{"proc/stat": "cpu  1000 0 1000 8000 0 0 0 0 0 0"})

    def pause(_: float) -> None:
        machine(tmp_path, **{"proc/stat": f"cpu  {1000 + busy} 0 1000 {8100 - busy} 0 0 0 0 0 0"})

    found = doctor.other_load(root, pause)
    assert (found.state, share in found.sentence) == (state, True)


def test_one_core_is_too_few(tmp_path: Path) -> None:
    assert doctor.cores(tmp_path, 1).state == "spoils"
    assert doctor.cores(tmp_path, 2).state == "ok"


def test_this_machine_is_examined_whole(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [c["name"] for c in told] == [
        "cpu governor", "clock source", "open files", "swap", "other load", "cores", "real-time priority",
        "kernel timestamps",
    ]  # fmt: skip
    assert code == int(any(c["state"] == "spoils" for c in told))
    assert all(c["sentence"].endswith(".") for c in told)
    assert told[-1]["state"] == "ok"  # Linux, where these tests run, stamps what arrives


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("note", 0), ("spoils", 1)])
def test_what_spoils_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: doctor.State, code: int
) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (lambda root: Check("clock", state, "It ticks.", "Wind it up"),))
    assert main(["doctor"]) == code
    told = capsys.readouterr().out
    assert "clock: It ticks." in told and "Wind it up" in told
    assert ("1 of 1 would spoil a measurement." in told) == bool(code)


def test_it_tells_a_person_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) in (0, 1)
    out = capsys.readouterr().out
    assert "kernel timestamps" in out
    assert out.strip().splitlines()[-1].endswith("would spoil a measurement.")
