"""Explanations of what the team pays for: units, request rate, completion, energy and cost."""

from __future__ import annotations

from planner.bands import band
from planner.completion import Completion
from planner.cost import Cost
from planner.derivation import REQUIREMENTS, UNKNOWN, Derivation, given
from planner.gpu_schema import Gpu
from planner.request_rate import RateNeeded
from planner.requirements import Requirements
from planner.scaling import BY_KIND, UnitsNeeded
from planner.stated import BY_USER, Stated
from planner.units import format_duration, format_tok_s


def units_derivations(units: tuple[UnitsNeeded, ...], r: Requirements) -> tuple[Derivation, ...]:
    """Units at the upper end of the peak: all three kinds together, and each by itself."""
    at_peak = [u for u in units if u.users == r.peak_users_max]
    together = ", ".join(f"{u.units or 'none'} ({u.kind.value})" for u in at_peak)
    every = _units("units", f"Units for {r.peak_users_max:,} users", together, at_peak, r)
    return (every, *(_units(f"units_{u.kind.value}", f"Units {BY_KIND[u.kind]}", _count(u), [u], r) for u in at_peak))


def _count(u: UnitsNeeded) -> str:
    if u.units is None:
        return "out of reach"
    return f"{u.units:,} {'unit' if u.units == 1 else 'units'}"


def _units(key: str, title: str, value: str, counted: list[UnitsNeeded], r: Requirements) -> Derivation:
    users, target = r.peak_users_max, f"{r.user_tok_s_target:g} tok/s"

    def by_user(u: UnitsNeeded) -> str:
        if u.units_by_user is None:
            return f"none: one user alone gets {format_tok_s(u.alone_tok_s)}"
        return f"{u.units_by_user:,} = {users:,} / {u.largest_batch:,}, rounded up"

    return Derivation(
        key=key, title=title, value=value,
        formula="the larger of users x target / total of one unit, and users / largest batch that keeps the target; "
                "one more is the spare",
        inputs=(given("users and target", f"{users:,} at {target}", REQUIREMENTS),
                *(given(f"by speed per user, {u.kind.value}", by_user(u), f"largest batch that keeps {target}")
                  for u in counted),
                *(given(f"by total, {u.kind.value}",
                        f"{u.units_by_total:,} = {u.needed_tok_s:,.0f} / {u.unit_tok_s:,.0f}, rounded up",
                        f"total of one unit with all {users:,} in flight") for u in counted),
                *(given(f"decides, {u.kind.value}", u.binding, "the larger of both") for u in counted)),
        assumptions=("users are spread evenly over units", "all generate at the same moment"),
        band=band("units"),
    )  # fmt: skip


def rate_derivation(rate: RateNeeded, r: Requirements, by_user: bool) -> Derivation:
    """Units for a peak of requests per second."""
    return Derivation(
        key="request_rate", title=f"Units for {rate.peak_rate_per_s:.3g} requests/s",
        value="out of reach" if rate.units is None else f"{rate.units:,} {'unit' if rate.units == 1 else 'units'}",
        formula="peak rate / (requests/s of one unit x utilisation), rounded up; one more is the spare",
        inputs=(given("peak rate", f"{rate.peak_rate_per_s:.3g} requests/s",
                      BY_USER if by_user else f"{REQUIREMENTS}: users x requests per user and minute / 60"),
                given("one unit", f"{rate.unit_rate_per_s:.3g} requests/s",
                      f"planning value at a batch of {rate.batch:,}, which keeps {r.user_tok_s_target:g} tok/s, / "
                      f"{r.output_tokens:,} tokens"),
                given("utilisation", f"{rate.utilisation:.0%}", "setting: what is left absorbs bursts")),
        assumptions=("requests are spread evenly over units", "the rate is that of the busiest minutes"),
        band=band("request_rate"),
    )  # fmt: skip


def completion_derivations(together: Completion) -> tuple[Derivation, Derivation]:
    """When the last user is served: one after the other, and all at once."""
    answer = given("answer", f"{together.output_tokens:,} tokens", REQUIREMENTS)
    users = given("users", f"{together.users:,}", REQUIREMENTS)
    read = given("read per step", f"{together.step_gb:.1f} GB = {together.step_weights_gb:.1f} weights + "
                 f"{together.step_kv_gb:.1f} KV", "bound")  # fmt: skip
    alike = {"assumptions": ("prefill and the engine's own time left out",), "band": band("completion")}
    return (
        Derivation(
            key="completion_sequential", title=f"Last of {together.users:,} users, one after the other",
            value=format_duration(together.sequential_s), formula="users x answer x step of one alone",
            inputs=(users, answer), **alike,
        ),
        Derivation(
            key="completion_batched", title=f"Last of {together.users:,} users, all at once",
            value=format_duration(together.batched_s),
            formula="answer x step of the whole batch; those beyond the KV cache follow in waves",
            inputs=(users, answer, read,
                    given("times sooner", f"{together.speed_up:.1f}", "one after the other / all at once")), **alike,
        ),
    )  # fmt: skip


def cost_derivations(spent: Cost, gpu: Gpu, r: Requirements, stated: Stated) -> tuple[Derivation, Derivation]:
    """Energy and money per million output tokens."""
    budget, currency = r.budget, spent.currency

    def amount(value: float | None, unit: str) -> str:
        return UNKNOWN if value is None else f"{value:,.6g} {unit}"

    def source(field: str, otherwise: str) -> str:
        return BY_USER if getattr(stated, field) is not None else otherwise

    total = given("total of one unit", UNKNOWN if spent.unit_tok_s is None else format_tok_s(spent.unit_tok_s),
                  "planning value at the largest batch that keeps the target")  # fmt: skip
    energy = Derivation(
        key="energy", title="Energy per million output tokens",
        value=amount_or_unknown(spent.kwh_per_million_tokens, "kWh"),
        formula="board power x time for a million tokens at the total of one unit",
        inputs=(given("board power", amount(spent.unit_power_w, "W"), source("tdp_w", gpu.source)), total),
        assumptions=("every unit is fully loaded", "host and cooling left out"),
        band=band("energy"),
    )  # fmt: skip
    capital = given("capital of one unit", amount(spent.unit_capital, currency),
                    source("unit_price", f"{REQUIREMENTS}: capital / units needed"))  # fmt: skip
    money = Derivation(
        key="cost", title="Cost per million output tokens",
        value=amount_or_unknown(spent.total_per_million_tokens, currency),
        formula="energy x price + capital / tokens of its years at the utilisation",
        inputs=(given("energy", amount_or_unknown(spent.kwh_per_million_tokens, "kWh"), "computed"),
                given("price of electricity", amount(budget.electricity_per_kwh, f"{currency}/kWh"),
                      source("electricity_per_kwh", REQUIREMENTS)),
                capital,
                given("years and hours a day", f"{amount(budget.years, 'years')}, {budget.hours_per_day:g} h",
                      source("years", REQUIREMENTS)),
                given("utilisation", f"{spent.utilisation:.0%}", "setting"), total),
        assumptions=("operators, host and cooling left out",),
        band=band("cost"),
    )  # fmt: skip
    return energy, money


def amount_or_unknown(value: float | None, unit: str) -> str:
    """A small amount with two decimals, three significant digits below 0.1; words when it is not known."""
    if value is None:
        return UNKNOWN
    return f"{value:,.2f} {unit}" if value >= 0.1 else f"{value:.3g} {unit}"
