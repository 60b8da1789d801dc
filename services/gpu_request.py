"""The one-page request for GPU time: question, hours, stop rules, what each outcome changes, cost, who approves."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from decisions import escaping
from planner.condition_line import format_condition
from planner.poc import Plan
from planner.requirements import Requirements
from planner.units import format_duration
from services.plan_costs import DEFAULT_MBIT_S, cost_of, downloads, price
from services.workspace import Workspace

NOT_STATED = "not stated"


class Asking(NamedTuple):
    """What only a person can state: price of an hour, speed of the line, who asks and who approves, and for when."""

    price_per_hour: float | None = None
    mbit_s: float = DEFAULT_MBIT_S
    asked_by: str = ""
    approver: str = ""
    wanted: str = ""


NOTHING_STATED = Asking()


class Hours(NamedTuple):
    """One part of the time that is asked for: what, how long in minutes, and what it rests on."""

    what: str
    minutes: float
    because: str

    @property
    def time(self) -> str:
        """The time as a person says it."""
        return format_duration(self.minutes * 60) if self.minutes else NOT_STATED


class Outcome(NamedTuple):
    """One hypothesis: what is asked, what is expected, and what a no would change."""

    id: str
    statement: str
    tests: tuple[str, ...]
    expected: str
    doubtful: bool
    if_rejected: str


class GpuRequest(NamedTuple):
    """The request as data; `hours` has the parts, `total` their sum in words."""

    title: str
    question: str
    machine: str
    candidates: str
    hours: tuple[Hours, ...]
    total: str
    stops: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    cost: str
    asked_by: str
    approver: str
    wanted: str
    plan: str
    day: str


def gpu_request(
    ws: Workspace, r: Requirements, plan: Plan, on: date, asking: Asking = NOTHING_STATED
) -> GpuRequest:  # fmt: skip
    """Put the request together from plan, hypotheses, predicted cost and requirements.

    Raises InputError for a price below zero and a line without speed.
    """
    cost, lines = cost_of(ws, r, plan), downloads(ws, r, plan, asking.mbit_s)
    hardware = r.hardware[0]
    known = [d for d in lines if d.size_gb is not None]
    fetched = ", ".join(f"{d.size_gb:,.0f} GB ({d.what})" for d in known)
    if len(known) < len(lines):
        fetched += (
            f"{'; ' if fetched else ''}the size of {', '.join(d.what for d in lines if d not in known)} is not known"
        )
    servers = len({c.id for c in plan.candidates if c.launch.command})
    hours = (
        Hours("Downloads", sum(d.minutes for d in lines), f"{fetched}; at {asking.mbit_s:g} Mbit/s; images on top"),
        Hours("Starts", cost.start_minutes,
              f"{plan.starts} starts of {servers} servers in {len(plan.stages)} stages, five minutes to load each"),
        Hours("Load", cost.minutes - cost.start_minutes,
              f"{cost.prompt_tokens / 1e6:,.1f} million prompt and {cost.output_tokens / 1e6:,.1f} million output "
              "tokens, each candidate at its own predicted speed"),
    )  # fmt: skip
    minutes = sum(h.minutes for h in hours)
    paid = price(ws, r, minutes / 60, asking.price_per_hour)
    amount = NOT_STATED if paid.amount is None else f"{paid.amount:,.0f} {paid.currency}"
    return GpuRequest(
        title=f"Request for GPU time: {ws.store.cases.get(plan.case).title}",
        question=question(r, plan),
        machine=f"{hardware.count} x {ws.catalog.gpu(hardware.gpu).name}, {hardware.os}, nothing else running on it",
        candidates=", ".join(f"{c.id} ({c.role})" for c in plan.candidates),
        hours=hours, total=format_duration(minutes * 60), stops=_stops(plan), outcomes=_outcomes(plan),
        cost=f"{amount[:1].upper()}{amount[1:]}: {paid.because}", asked_by=asking.asked_by, approver=asking.approver,
        wanted=asking.wanted,
        plan=plan.sha256()[:12], day=on.isoformat(),
    )  # fmt: skip


def question(r: Requirements, plan: Plan) -> str:
    """What the PoC asks, as one sentence."""
    favourite = next((c.id for c in plan.candidates if c.role == "favourite"), plan.candidates[0].id)
    others = [c.id for c in plan.candidates if c.id != favourite]
    against = f", against {' and '.join(others)}," if others else ""
    return (
        f"Does {favourite}{against} serve {r.favourite_plan.model} to {r.peak_users_min} to {r.peak_users_max} people "
        f"at once with {r.user_tok_s_promise:g} tok/s each and the first token within {r.ttft_s:g} s?"
    )


def _stops(plan: Plan) -> tuple[str, ...]:
    """When the run ends early, in words, from the plan."""
    stop = plan.stop
    found = [
        "A server that does not start, or dies, is a result; the next candidate goes on.",
        f"A load point ends after {format_duration(stop.max_point_s)}, when more than {stop.max_error_share:.0%} of "
        f"its requests fail, and a request after {format_duration(stop.request_timeout_s)}.",
    ]
    if stop.saturation_s:
        found.append(f"An open loop ends when its queue grows for {format_duration(stop.saturation_s)}.")
    if plan.budget_min:
        found.append(
            f"The whole run ends after {format_duration(plan.budget_min * 60)}; what was not measured is named."
        )
    else:
        found.append("The run has no time limit of its own; it can be cancelled at any time and goes on later.")
    return tuple(found)


def _outcomes(plan: Plan) -> tuple[Outcome, ...]:
    return tuple(
        Outcome(
            h.id, h.statement, tuple(format_condition(c) for c in h.conditions),
            h.warning or h.expectation or "no prediction", bool(h.warning), h.if_rejected,
        )
        for h in plan.hypotheses
    )  # fmt: skip


def _environment(**more: object) -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def as_markdown(request: GpuRequest) -> str:
    """The request as Markdown; every text from outside is literal."""
    made = _environment(autoescape=False, finalize=escaping.inline).get_template("gpu_request.md.j2")
    return made.render(r=request)


def as_html(request: GpuRequest) -> str:
    """The request as one HTML page that needs nothing else and prints on one sheet of A4."""
    return _environment(autoescape=True).get_template("gpu_request.html.j2").render(r=request)


FORMS = {"md": as_markdown, "html": as_html}
