"""Facts that the catalogue lacks and a person states instead: which are missing, which cannot be, and who said them."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from planner.errors import InputError
from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.quantization import Quantization, runs_natively
from planner.requirements import Budget
from planner.units import GB, GIB

BY_USER = "stated by the user"


class Stated(Frozen):
    """What a person states for one sizing; None leaves the catalogue's or the requirements' figure as it is.

    `matrix_tflops` is the dense rate of the format that prefill computes in. Money is in the budget's currency.
    """

    bandwidth_gb_s: float | None = Field(default=None, gt=0)
    matrix_tflops: float | None = Field(default=None, gt=0)
    device_total_gib: float | None = Field(default=None, gt=0)
    tdp_w: float | None = Field(default=None, gt=0)
    unit_price: float | None = Field(default=None, ge=0)
    years: float | None = Field(default=None, gt=0, le=20)
    electricity_per_kwh: float | None = Field(default=None, ge=0)


class Fact(NamedTuple):
    """One fact that can be stated: its unit, the range in which it can be true, and the usual mistake."""

    field: str
    title: str
    unit: str
    low: float
    high: float
    fix: str


FACTS: tuple[Fact, ...] = (
    Fact("bandwidth_gb_s", "memory bandwidth", "GB/s", 10, 20_000,
         "State decimal GB/s: 1 TB/s is 1,000 GB/s, 8 Gbit/s are 1 GB/s."),
    Fact("matrix_tflops", "dense matrix rate", "TFLOPS", 0.5, 20_000,
         "State TFLOPS without sparsity: 1 PFLOPS is 1,000 TFLOPS."),
    Fact("device_total_gib", "device total", "GiB", 1, 1_000,
         "State the total in GiB as the driver reports it: MiB of nvidia-smi / 1,024."),
    Fact("tdp_w", "board power", "W", 2, 5_000, "State watts for one device."),
    Fact("unit_price", "price of one unit", "", 0, 100_000_000, "State the price of one unit in whole currency."),
    Fact("years", "years in use", "", 0.1, 20, "State years."),
    Fact("electricity_per_kwh", "price of electricity", "/kWh", 0, 10, "State the price of one kWh, not of one MWh."),
)  # fmt: skip
_FACT = {f.field: f for f in FACTS}


def fact(field: str) -> Fact:
    """The description of one fact by its field."""
    return _FACT[field]


def gaps(gpu: Gpu, quant: Quantization, budget: Budget) -> tuple[Fact, ...]:
    """Facts that this sizing needs and neither catalogue nor requirements know, in the order of what they hold up."""
    precision = quant.computes_in if runs_natively(quant, gpu.compute_capability) else "bf16"
    missing = {
        "bandwidth_gb_s": gpu.bandwidth_gb_s is None,
        "matrix_tflops": gpu.tflops(precision) is None and gpu.tflops("bf16") is None,
        "device_total_gib": gpu.device_total_gib is None,
        "tdp_w": gpu.tdp_w is None,
        "unit_price": budget.capital is None,
        "years": budget.years is None,
        "electricity_per_kwh": budget.electricity_per_kwh is None,
    }
    return tuple(f for f in FACTS if missing[f.field])


def with_stated(gpu: Gpu, quant: Quantization, stated: Stated) -> Gpu:
    """The accelerator with what was stated in place of the catalogue's figures, named among its sources.

    Raises InputError for a figure that cannot be: out of every known range, or more memory than the card carries.
    """
    named = {f.field: value for f in FACTS if (value := getattr(stated, f.field)) is not None}
    for field, value in named.items():
        must_be_possible(_FACT[field], value)
    if stated.device_total_gib and gpu.memory_gb and stated.device_total_gib > gpu.memory_gb:
        as_gib = stated.device_total_gib * GB / GIB
        raise InputError(
            f"{stated.device_total_gib:g} GiB are more than the {gpu.memory_gb:g} GiB on {gpu.name}.",
            where="device total", fix=f"If these are decimal GB, state {as_gib:.2f} GiB.",
        )  # fmt: skip
    changed: dict[str, object] = {
        field: named[field] for field in ("bandwidth_gb_s", "device_total_gib", "tdp_w") if field in named
    }
    if stated.matrix_tflops is not None:
        precision = quant.computes_in if runs_natively(quant, gpu.compute_capability) else "bf16"
        changed["dense_tflops"] = {**gpu.dense_tflops, precision: stated.matrix_tflops}
    if "device_total_gib" in changed and gpu.usable_gb:  # what the system keeps stays; a smaller device has less to use
        changed["usable_gb"] = min(gpu.usable_gb, named["device_total_gib"] * GIB / GB)
    return gpu.model_copy(update=changed)


def budget_with(budget: Budget, stated: Stated) -> Budget:
    """The budget with the years and the price of electricity that were stated."""
    known = {"years": stated.years, "electricity_per_kwh": stated.electricity_per_kwh}
    return budget.model_copy(update={k: v for k, v in known.items() if v is not None})


def must_be_possible(f: Fact, value: float) -> None:
    """Raises InputError for a figure outside the range in which this fact can be true, with the usual mistake."""
    if not f.low <= value <= f.high:
        unit = f" {f.unit}".rstrip()
        raise InputError(f"{value:,g}{unit} is outside {f.low:,g} to {f.high:,g}{unit}.", where=f.title, fix=f.fix)
