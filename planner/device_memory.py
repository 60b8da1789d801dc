"""A device's memory split without remainder: outside, other tenants, weights, reserve, KV cache.

Sizes are bytes on one device.
"""

from __future__ import annotations

import math
from typing import Literal

from planner.errors import InputError
from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.units import GB, GIB, format_gb

# Where the driver's total is unknown: the lowest share of the nominal GiB that a driver reported (B300: 268.6 of 288).
REPORTED_SHARE = 0.93
DEFAULT_FRACTION = 0.90  # gpu_memory_utilization of vLLM up to 0.19; 0.92 later

PartName = Literal["outside", "tenants", "weights", "reserve", "kv"]


class MemoryBudget(Frozen):
    """One device's memory, split without remainder: outside + tenants + weights + reserve + kv = device_total.

    `outside` is left to the operating system, or unclaimed by the engine's fraction. `shortfall` is what is missing
    where weights and reserve exceed the engine's share; then `kv` is 0 and the parts exceed the device by it.
    """

    device_total: int
    outside: int
    tenants: int
    weights: int
    reserve: int
    kv: int
    shortfall: int = 0

    @property
    def fits(self) -> bool:
        """Weights and reserve leave room for a KV cache."""
        return self.shortfall == 0 and self.kv > 0

    @property
    def parts(self) -> dict[PartName, int]:
        """The split in the order in which it is drawn."""
        return {"outside": self.outside, "tenants": self.tenants, "weights": self.weights, "reserve": self.reserve,
                "kv": self.kv}  # fmt: skip

    @property
    def engine_share(self) -> int:
        """What the engine may take: device less outside and other tenants."""
        return self.device_total - self.outside - self.tenants


def memory_budget(
    *, device_total: float, outside: float, tenants: float, weights: float, reserve: float
) -> MemoryBudget:
    """Split a device; the KV cache gets what is left. All in bytes; raises InputError for a negative amount."""
    for name, amount in (("device total", device_total), ("outside", outside), ("tenants", tenants)):
        if amount < 0:
            raise InputError(f"{name} is negative: {format_gb(amount)}.", where="memory", fix="State 0 or more.")
    left = round(device_total) - round(outside) - round(tenants) - round(weights) - round(reserve)
    return MemoryBudget(
        device_total=round(device_total), outside=round(outside), tenants=round(tenants), weights=round(weights),
        reserve=round(reserve), kv=max(0, left), shortfall=max(0, -left),
    )  # fmt: skip


class DeviceMemory(Frozen):
    """What a device offers: total, what stays outside the engine, and the engine's fraction of the total."""

    total: int
    outside: int
    tenants: int
    gpu_memory_utilization: float
    assumed: str = ""


def device_memory(gpu: Gpu, tenants_gb: float, fraction: float | None = None) -> DeviceMemory:
    """Total as the driver reports it, and the largest fraction (two decimals) that leaves other tenants their memory.

    Unified memory leaves the operating system what its entry says is not usable. Raises InputError where no size is
    known or the other tenants leave nothing.
    """
    assumed = ""
    if gpu.device_total_gib is not None:
        total = gpu.device_total_gib * GIB
    elif gpu.memory_gb is not None:
        total = REPORTED_SHARE * gpu.memory_gb * GIB
        assumed = f"driver's total unknown: {REPORTED_SHARE:.0%} of {gpu.memory_gb:g} GiB taken"
    else:
        raise InputError("memory size is unknown.", where=gpu.id, fix="State memory_gb in an own entry.")
    usable = gpu.usable_gb * GB if gpu.usable_gb else total
    tenants = tenants_gb * GB
    ceiling = usable / total if gpu.usable_gb else DEFAULT_FRACTION
    free = math.floor(min(ceiling, (usable - tenants) / total) * 100 + 1e-9) / 100
    share = fraction if fraction is not None else free
    if share <= 0:
        raise InputError(
            f"other tenants take {format_gb(tenants)} of {format_gb(usable)}; nothing is left.",
            where=gpu.id,
            fix="Move them to another device.",
        )
    outside = max(0.0, total * (1 - share) - tenants)
    return DeviceMemory(
        total=round(total),
        outside=round(outside),
        tenants=round(tenants),
        gpu_memory_utilization=share,
        assumed=assumed,
    )
