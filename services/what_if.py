"""Sizings that nobody stored: another context, other users, another machine, asked on the page or in the terminal."""

from __future__ import annotations

from typing import NamedTuple

from planner.calibration import Calibration
from planner.capacity import Sizing, SizingSettings, size
from planner.catalog import Catalog
from planner.derivation import Derivation
from planner.derive_calibration import ratio_derivation
from planner.derive_waiting import waiting_derivations
from planner.errors import InputError
from planner.queue_ranges import waiting_range
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.throughput import MeasuredRatio
from planner.tornado import Tornado, tornado
from services.calibrations import calibration, setting_of
from services.cases import sizings
from services.scores import case_score
from services.workspace import Workspace


class Question(NamedTuple):
    """All that one sizing is computed from, and the engine whose measured ratios count; empty for none."""

    requirements: Requirements
    plan: ModelPlan
    hardware: Hardware
    settings: SizingSettings
    engine: str = ""

    def measured(self, catalog: Catalog, known: Calibration) -> tuple[MeasuredRatio, ...]:
        """The team's own ratios for this setting."""
        if not self.engine:
            return ()
        devices = self.settings.tensor_parallel
        return known.for_(setting_of(catalog, self.requirements, self.plan, self.hardware, self.engine, devices))

    def sizing(self, catalog: Catalog, known: Calibration) -> Sizing:
        """The answer. Raises InputError, UnknownName."""
        r, plan, hardware, settings, _ = self
        return size(r, plan, hardware, catalog, settings, self.measured(catalog, known))

    def offered(self) -> Requirements:
        """The requirements with the rate of requests that was asked for instead of theirs: what waiting depends on."""
        rate, r = self.settings.peak_rate_per_s, self.requirements
        if rate is None:
            return r
        return r.model_copy(update={"requests_per_user_per_min": 60 * rate / r.peak_users_max})

    def tornado(self, catalog: Catalog, known: Calibration) -> Tornado:
        """Which input moves the answer most. Raises InputError where no speed is known."""
        r, plan, hardware, settings, _ = self
        return tornado(r, plan, hardware, catalog, settings, self.measured(catalog, known))


class Answer(NamedTuple):
    """A sizing with what moves it most and how long one waits, or the sentence that says why there is none."""

    plan: ModelPlan
    sizing: Sizing | None
    swings: Tornado | None = None
    waiting: tuple[Derivation, ...] = ()
    ratios: tuple[Derivation, ...] = ()
    problem: str = ""
    not_simulated: str = ""


def answer(ws: Workspace, asked: Question) -> Answer:
    """The answer to one question. Raises InputError, UnknownName."""
    known = calibration(ws)
    sizing = asked.sizing(ws.catalog, known)
    ratios = tuple(ratio_derivation(g) for g in known.groups if g.setting.gpu == sizing.gpu)
    if sizing.inputs is None:
        return Answer(asked.plan, sizing, ratios=ratios)
    found = Answer(asked.plan, sizing, asked.tornado(ws.catalog, known), ratios=ratios)
    r = asked.offered()
    try:
        return found._replace(waiting=waiting_derivations(waiting_range(sizing, r), sizing, r))
    except InputError as e:  # so few requests that nobody comes within the longest window
        return found._replace(not_simulated=str(e))


def case_answers(ws: Workspace, r: Requirements) -> tuple[Answer, ...]:
    """Every model plan of a case on its first machine, as the page shows them."""
    engine = case_score(ws, r).favourite or ""
    return tuple(
        answer(ws, Question(r, plan, sizing.hardware, sizing.settings, engine)) if sizing
        else Answer(plan, None, problem=problem)
        for plan, sizing, problem in sizings(ws, r)
    )  # fmt: skip


def with_context(r: Requirements, context_tokens: int) -> Requirements:
    """The requirements at another context; prompts keep their share of it, the answer its length."""
    prompt = round(r.input_tokens * context_tokens / r.context_tokens)
    room = context_tokens - r.output_tokens
    return r.model_copy(update={"context_tokens": context_tokens, "input_tokens": max(1, min(prompt, room))})
