"""What power and money a million output tokens cost."""

from __future__ import annotations

from planner.catalog import Gpu
from planner.frozen import Frozen
from planner.requirements import Budget
from planner.scaling import UnitsNeeded
from planner.throughput import ThroughputInputs, total_tok_s


class Cost(Frozen):
    """Power and cost per million output tokens at full load, by the planning value; None = an input is unknown."""

    unit_power_w: float | None
    kwh_per_million_tokens: float | None
    electricity_per_million_tokens: float | None
    capital_per_million_tokens: float | None
    total_per_million_tokens: float | None
    currency: str


def cost(
    gpu: Gpu, tensor_parallel: int, inputs: ThroughputInputs | None, needed: UnitsNeeded | None, budget: Budget
) -> Cost:
    """Power and money per million output tokens while every unit runs its largest batch that keeps the target.

    Power is the board's limit, machine and cooling not counted; capital is spread over the years at the stated hours
    a day. What rests on an unknown input stays None.
    """
    power = gpu.tdp_w * tensor_parallel if gpu.tdp_w is not None else None
    rate = None
    if inputs is not None and needed is not None and needed.largest_batch:
        rate = total_tok_s(inputs, needed.kind, needed.largest_batch)
    energy = power / 1000 / 3600 / rate * 1e6 if power is not None and rate else None
    electricity = None
    if energy is not None and budget.electricity_per_kwh is not None:
        electricity = energy * budget.electricity_per_kwh
    capital = None
    if rate and needed and needed.units and budget.capital is not None and budget.years is not None:
        seconds = budget.years * 365 * budget.hours_per_day * 3600
        capital = budget.capital / (seconds * rate * needed.units) * 1e6
    return Cost(
        unit_power_w=power, kwh_per_million_tokens=energy, electricity_per_million_tokens=electricity,
        capital_per_million_tokens=capital, currency=budget.currency,
        total_per_million_tokens=None if electricity is None or capital is None else electricity + capital,
    )  # fmt: skip
