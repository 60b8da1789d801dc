"""What a plan takes on the machine: each candidate at its own predicted speed, downloads, and what an hour costs."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from pydantic import ValidationError

from planner.capacity import SizingSettings
from planner.errors import FliplineError, InputError
from planner.loads import LoadPoint
from planner.plan_budget import PlanCost, SpeedOf, plan_cost
from planner.plan_trim import Trimmed, trim
from planner.poc import Plan, PlanCandidate
from planner.requirements import ModelPlan, Requirements
from planner.throughput import ThroughputInputs
from planner.units import GB
from services import remembered
from services.calibrations import calibration, setting_of
from services.launches import CONVERTS
from services.workspace import Workspace

DEFAULT_MBIT_S = 1000.0
HOURS_OF_A_YEAR = 24 * 365


def predicted_speed(ws: Workspace, r: Requirements) -> SpeedOf:
    """A candidate's planning value in its own format, on its devices, at a point's lengths, by the team's own ratios.

    None where the catalogue cannot tell: an unknown format, weights that do not fit, devices that cannot split the
    model, a GPU without a bandwidth.
    """
    known = calibration(ws)

    @cache
    def inputs(
        engine: str, weight_format: str, quantization: str, devices: str, lengths: tuple[int, int]
    ) -> ThroughputInputs | None:
        plan = r.favourite_plan.model_copy(update={"weight_format": weight_format, "quantization": quantization})
        asked = r.model_copy(update={"input_tokens": lengths[0], "output_tokens": lengths[1],
                                     "context_tokens": sum(lengths)})  # fmt: skip
        try:
            unit = SizingSettings.model_validate({"tensor_parallel": devices})
            setting = setting_of(ws.catalog, asked, plan, r.hardware[0], engine, unit.tensor_parallel)
            return remembered.size(asked, plan, r.hardware[0], ws.catalog, unit, known.for_(setting)).inputs
        except (FliplineError, ValidationError):
            return None

    def speed_of(candidate: PlanCandidate, point: LoadPoint) -> ThroughputInputs | None:
        own, devices = _own_plan(r, candidate), candidate.contract.get("tensor_parallel") or "1"
        lengths = point.input_tokens, point.output_tokens
        return inputs(candidate.engine, own.weight_format, own.quantization, devices, lengths)

    return speed_of


def cost_of(ws: Workspace, r: Requirements, plan: Plan) -> PlanCost:
    """Minutes and tokens of a plan on the first machine of the requirements."""
    return plan_cost(plan, predicted_speed(ws, r))


def trimmed(ws: Workspace, r: Requirements, plan: Plan, budget_min: float) -> Trimmed:
    """A plan cut down to a budget; raises InputError as `planner.plan_trim.trim` does."""
    return trim(plan, budget_min, predicted_speed(ws, r))


def _own_plan(r: Requirements, candidate: PlanCandidate) -> ModelPlan:
    stated, plan = candidate.contract, r.favourite_plan
    return plan.model_copy(update={
        "weight_format": stated.get("weight_format") or plan.weight_format,
        "quantization": stated.get("quantization") or plan.quantization,
    })  # fmt: skip


class Download(NamedTuple):
    """Weights that have to reach the machine once: for whom, in which format, in GB (None: not known), and minutes."""

    candidates: tuple[str, ...]
    what: str
    size_gb: float | None
    minutes: float


def downloads(ws: Workspace, r: Requirements, plan: Plan, mbit_s: float = DEFAULT_MBIT_S) -> tuple[Download, ...]:
    """The weights that the candidates load, each file set once, over a line of `mbit_s` megabits per second.

    An engine that converts at load reads the 16-bit checkpoint. Raises InputError for a line without speed.
    """
    if mbit_s <= 0:
        raise InputError(f"{mbit_s:g} Mbit/s carry nothing.", where="downloads", fix="Use the speed of the line.")
    wanted: dict[tuple[str, str], list[str]] = {}
    for c in plan.candidates:
        own = _own_plan(r, c)
        converted = CONVERTS.get(c.engine, {}).get(own.quantization)
        stored = "bf16" if converted and converted in c.launch.command else own.quantization
        wanted.setdefault((own.weight_format, stored), []).append(c.id)
    found = []
    for (weight_format, quantization), ids in wanted.items():
        gb = _weights_gb(ws, r, weight_format, quantization)
        found.append(Download(
            tuple(ids), f"{r.favourite_plan.model}, {weight_format} {quantization}", gb,
            (gb or 0.0) * 8000 / mbit_s / 60,
        ))  # fmt: skip
    return tuple(found)


def _weights_gb(ws: Workspace, r: Requirements, weight_format: str, quantization: str) -> float | None:
    plan = r.favourite_plan.model_copy(update={"weight_format": weight_format, "quantization": quantization})
    try:
        return remembered.size(r, plan, r.hardware[0], ws.catalog).memory.weights.total / GB
    except FliplineError:
        return None


class Price(NamedTuple):
    """What the hours cost: an amount in a currency with the words it rests on; amount None: not stated."""

    amount: float | None
    currency: str
    because: str


def price(ws: Workspace, r: Requirements, hours: float, per_hour: float | None = None) -> Price:
    """What the machine's hours cost: at a stated price per hour, else its share of the capital, else not stated.

    Electricity comes on top of the capital where its price and the board's power are known.
    """
    budget, hardware = r.budget, r.hardware[0]
    if per_hour is not None:
        if per_hour < 0:
            raise InputError(f"{per_hour:g} an hour is no price.", where="cost", fix="Leave it empty if unknown.")
        return Price(hours * per_hour, budget.currency, f"{hours:.1f} h at {per_hour:g} {budget.currency} an hour")
    if budget.capital is None or budget.years is None:
        return Price(None, budget.currency, "no price per hour and no capital with years are stated")
    shared = budget.capital * hours / (budget.years * HOURS_OF_A_YEAR * budget.hours_per_day / 24)
    because = f"{hours:.1f} h of {budget.capital:,.0f} {budget.currency} over {budget.years:g} years"
    power_w = ws.catalog.gpu(hardware.gpu).tdp_w
    if budget.electricity_per_kwh is None or power_w is None:
        return Price(shared, budget.currency, f"{because}; electricity is not in it")
    kwh = power_w * hardware.count * hours / 1000
    electricity = kwh * budget.electricity_per_kwh
    return Price(shared + electricity, budget.currency,
                 f"{because}, and {kwh:.1f} kWh at {budget.electricity_per_kwh:g} {budget.currency}")  # fmt: skip
