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
from bench.telemetry import Telemetry
from bench.transport import Pool
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
