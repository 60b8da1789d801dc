"""What power and money a million output tokens cost."""

from __future__ import annotations

from planner.frozen import Frozen
from planner.gpu_schema import Gpu
from planner.requirements import Budget


class Cost(Frozen):
    """Power and cost per million output tokens; None = an input is unknown.

    Each unit gives `unit_tok_s` in total at the load it is run at. Energy counts loaded hours only;
    capital is spread over the tokens of the stated hours at `utilisation`.
    """

    unit_power_w: float | None
    unit_tok_s: float | None
    unit_capital: float | None
    utilisation: float
    kwh_per_million_tokens: float | None
    electricity_per_million_tokens: float | None
    capital_per_million_tokens: float | None
    total_per_million_tokens: float | None
    currency: str


def cost(
    gpu: Gpu, devices: int, budget: Budget, *, units: int | None = None, unit_tok_s: float | None = None,
    unit_price: float | None = None, utilisation: float = 1.0,
) -> Cost:  # fmt: skip
    """Power and money per million output tokens of units with so many `devices` each that give `unit_tok_s`.

    Power is the board's limit, machine and cooling not counted. The budget's capital buys all `units`;
    `unit_price` comes before it. What rests on an unknown input stays None.
    """
    power = gpu.tdp_w * devices if gpu.tdp_w is not None else None
    rate = unit_tok_s
    energy = power / 1000 / 3600 / rate * 1e6 if power is not None and rate else None
    electricity = None
    if energy is not None and budget.electricity_per_kwh is not None:
        electricity = energy * budget.electricity_per_kwh
    capital = unit_price
    if capital is None and budget.capital is not None and units:
        capital = budget.capital / units
    spread = None
    if rate and capital is not None and budget.years is not None:
        seconds = budget.years * 365 * budget.hours_per_day * 3600
        spread = capital / (seconds * rate * utilisation) * 1e6
    return Cost(
        unit_power_w=power, unit_tok_s=rate, unit_capital=capital, utilisation=utilisation,
        kwh_per_million_tokens=energy, electricity_per_million_tokens=electricity, capital_per_million_tokens=spread,
        currency=budget.currency,
        total_per_million_tokens=None if electricity is None or spread is None else electricity + spread,
    )  # fmt: skip
