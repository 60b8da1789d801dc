"""Memory, power and use of the GPUs, read through NVML (nvidia-ml-py) when it and a driver are there.

Not tried on a GPU by the tests here: they pass in an object that answers as pynvml does.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

VISIBLE = "CUDA_VISIBLE_DEVICES"


class DeviceMeter:
    """Reads some GPUs through a pynvml-like module; `error` says what could not be read and why."""

    def __init__(self, nvml: Any, handles: list[Any]) -> None:
        self._nvml, self._handles = nvml, handles
        self.error = ""

    def read(self) -> dict[str, float]:
        """Used memory in bytes and power in W as sums over the devices, use as the mean share 0..1.

        A figure that a device does not give (unified memory, say) is absent, never zero.
        """
        nvml, found = self._nvml, {}
        for name, of in (
            ("gpu_memory_used_bytes", lambda h: float(nvml.nvmlDeviceGetMemoryInfo(h).used)),
            ("gpu_power_w", lambda h: nvml.nvmlDeviceGetPowerUsage(h) / 1000),
            ("gpu_utilisation", lambda h: nvml.nvmlDeviceGetUtilizationRates(h).gpu / 100 / len(self._handles)),
        ):
            value = self._sum(name, of)
            if value is not None:
                found[name] = value
        return found

    def _sum(self, name: str, of: Callable[[Any], float]) -> float | None:
        try:
            return sum(of(handle) for handle in self._handles)
        except self._nvml.NVMLError as e:
            self.error = f"{name}: {e}"
            return None


def device_meter(environment: Mapping[str, str], nvml: Any = None, *, gpus: str = "all") -> DeviceMeter | None:
    """A meter of the GPUs that a server with this environment sees; None without NVML, a driver or a GPU.

    `nvml` is the module pynvml, or an object that answers like it. `gpus` is what a container was given with `--gpus`:
    all, none, how many (the first ones), or device=A,B; the environment counts within it.
    """
    try:
        nvml = nvml or importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        if gpus.startswith("device="):
            handles = _named(nvml, handles, gpus.removeprefix("device="))
        elif gpus != "all":
            handles = handles[: int(gpus) if gpus.isdigit() else 0]
        handles = _named(nvml, handles, environment.get(VISIBLE, ""))
    except nvml.NVMLError:
        return None
    return DeviceMeter(nvml, handles) if handles else None


def _named(nvml: Any, handles: list[Any], names: str) -> list[Any]:
    """Those of the devices that a list of numbers or ids names; all where it is empty."""
    wanted = [v.strip() for v in names.split(",") if v.strip()]
    if all(re.fullmatch(r"\d+", v) for v in wanted):
        return [handles[int(v)] for v in wanted if int(v) < len(handles)] if wanted else handles
    return [nvml.nvmlDeviceGetHandleByUUID(v) for v in wanted]
