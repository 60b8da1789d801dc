"""GPU figures, from an object that answers as NVIDIA's pynvml does; there is no GPU in these tests."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from bench.devices import DeviceMeter, device_meter
from bench.dialects import dialect
from bench.emulator import Emulator
from bench.emulator.settings import Settings
from bench.exchange import Origin
from bench.job import devices_of
from bench.telemetry import Telemetry
from bench.transport import Pool
from planner.poc import Launch
from tests.bench.helpers import with_emulator


class StandInNvml:
    """Two boards: 10 and 30 GB used, 300 and 400 W, 50 and 100 % busy (NVML's units: bytes, mW, per cent)."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, driver: bool = True, unified: bool = False) -> None:
        self.driver, self.unified = driver, unified

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, i: int) -> int:
        return i

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return {"GPU-aaaa": 0, "GPU-bbbb": 1}[uuid]

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        if self.unified:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(used=(10_000_000_000, 30_000_000_000)[handle])

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return (300_000, 400_000)[handle]

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=(50, 100)[handle])


def meter(environment: dict[str, str] | None = None, **more: bool) -> DeviceMeter:
    found = device_meter(environment or {}, StandInNvml(**more))
    assert found
    return found


def test_memory_and_power_are_sums_and_use_is_the_mean() -> None:
    assert meter().read() == {"gpu_memory_used_bytes": 40e9, "gpu_power_w": 700.0, "gpu_utilisation": 0.75}


@pytest.mark.parametrize("visible", ["1", "GPU-bbbb"])
def test_only_the_devices_that_the_server_sees_are_read(visible: str) -> None:
    read = meter({"CUDA_VISIBLE_DEVICES": visible}).read()
    assert read == {"gpu_memory_used_bytes": 30e9, "gpu_power_w": 400.0, "gpu_utilisation": 1.0}


@pytest.mark.parametrize(
    ("gpus", "environment", "power_w"),
    [
        ("all", {}, 700.0),
        ("1", {}, 300.0),
        ("device=1", {}, 400.0),
        ("device=GPU-bbbb,GPU-aaaa", {}, 700.0),
        ("device=1", {"CUDA_VISIBLE_DEVICES": "0"}, 400.0),  # counted among those that the container was given
    ],
)
def test_of_a_container_the_devices_that_it_was_given_are_read(
    monkeypatch: pytest.MonkeyPatch, gpus: str, environment: dict[str, str], power_w: float
) -> None:
    monkeypatch.setattr("bench.devices.importlib.import_module", lambda _: StandInNvml())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")  # of our shell, which does not get in
    launched = Launch.model_validate({"command": ["vllm", "serve"], "environment": environment, "container": {
        "image": "vllm/vllm-openai:v0.33.0", "gpus": gpus}})  # fmt: skip
    found = devices_of(launched)
    assert found and found.read()["gpu_power_w"] == power_w
    bare = devices_of(Launch(command=("vllm", "serve")))
    assert bare and bare.read()["gpu_power_w"] == 400.0


def test_a_container_without_gpus_has_no_meter() -> None:
    assert device_meter({}, StandInNvml(), gpus="none") is None


def test_a_figure_that_a_device_does_not_give_is_absent_and_said() -> None:
    found = meter(unified=True)
    assert found.read() == {"gpu_power_w": 700.0, "gpu_utilisation": 0.75}
    assert found.error == "gpu_memory_used_bytes: Not Supported"


def test_without_a_driver_there_is_no_meter() -> None:
    assert device_meter({}, StandInNvml(driver=False)) is None


def test_figures_stand_beside_the_servers_metrics_on_the_same_clock() -> None:
    async def use(emulator: Emulator) -> Telemetry:
        pool = Pool(Origin("http", "127.0.0.1", emulator.port))
        telemetry = Telemetry(pool, dialect("vllm"), devices=meter())
        await telemetry.sample()
        await asyncio.sleep(0)
        await telemetry.sample()
        pool.close()
        return telemetry

    samples = with_emulator(Settings(), use).samples
    names = {"running", "waiting", "kv_use", "preemptions", "gpu_memory_used_bytes", "gpu_power_w", "gpu_utilisation"}
    assert {s.name for s in samples} == names
    assert [s.value for s in samples if s.name == "gpu_power_w"] == [700.0, 700.0]
    assert [s.t_s for s in samples] == sorted(s.t_s for s in samples)
