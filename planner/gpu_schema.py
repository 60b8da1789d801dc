"""The schema of catalog/gpus.yaml: one accelerator's memory, speed and generation."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from planner.frozen import Frozen
from planner.model_schema import Confidence
from planner.units import GB, GIB

LOWEST_BANDWIDTH_GB_S = 5.0
LARGEST_MEMORY_GB = 10_000.0


class Gpu(Frozen):
    """One accelerator. GB are decimal, GiB binary; a figure that was not found is None."""

    id: str = Field(min_length=1)
    name: str
    aliases: tuple[str, ...] = ()
    memory_gb: float | None = Field(gt=0, le=LARGEST_MEMORY_GB)
    device_total_gib: float | None = Field(gt=0, le=LARGEST_MEMORY_GB)
    usable_gb: float | None = Field(default=None, gt=0)
    unified_memory: bool
    bandwidth_gb_s: float | None = Field(gt=0, le=1_000_000)
    dense_tflops: Mapping[str, float | None] = {}
    measured_gemm_tflops: Mapping[str, float | None] = {}
    compute_capability: str | None = None
    architecture: str
    tdp_w: float | None = Field(default=None, gt=0)
    interconnect: str | None = None
    sources: tuple[str, ...] = Field(min_length=1)
    confidence: Confidence
    note: str = ""

    @model_validator(mode="after")
    def _units_are_not_mixed_up(self) -> Gpu:
        """A driver reports at most the size on the box, in GiB; a bandwidth below 5 GB/s was stated in TB/s."""
        if self.device_total_gib and self.memory_gb and self.device_total_gib > self.memory_gb:
            raise ValueError(
                f"device_total_gib {self.device_total_gib:g} is above memory_gb {self.memory_gb:g}: GB stated as GiB? "
                f"({self.device_total_gib:g} GB are {self.device_total_gib * GB / GIB:.1f} GiB)."
            )
        if self.usable_gb and self.device_total_gib and self.usable_gb * GB > self.device_total_gib * GIB:
            raise ValueError(f"usable_gb {self.usable_gb:g} is above the device's {self.device_total_gib:g} GiB.")
        if self.bandwidth_gb_s and self.bandwidth_gb_s < LOWEST_BANDWIDTH_GB_S:
            raise ValueError(f"bandwidth_gb_s {self.bandwidth_gb_s:g} is too low: TB/s stated as GB/s?")
        return self

    @property
    def source(self) -> str:
        """Where the figures were read, in one line."""
        return "; ".join(self.sources)

    def tflops(self, precision: str) -> tuple[float, str] | None:
        """Dense matrix rate in TFLOPS for bf16, fp8, int8 or fp4, and how it is known; None when it is not.

        The data sheet comes first; where it is silent, a measured matrix multiplication.
        """
        for table, how in ((self.dense_tflops, "data sheet"), (self.measured_gemm_tflops, "measured GEMM")):
            rate = table.get(precision) or (table.get("nvfp4") if precision == "fp4" else None)
            if rate:
                return rate, how
        return None
