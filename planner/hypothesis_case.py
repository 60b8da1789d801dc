"""What hypotheses are derived from: requirements, roles, load points and their regimes, and the loads to add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.calibration import BATCHES, CONTEXTS, MIXES, Band
from planner.loads import LoadPoint
from planner.requirements import Requirements

# A load point of each of these names stands in a plan only because a hypothesis asked for it.
SHARED, JSON, INTERFERENCE, QUALITY = "shared-prefix", "json", "interference", "quality"
ADDED_POINTS = frozenset({SHARED, JSON, INTERFERENCE, QUALITY})
ASSUMED_SHARE = 0.6  # planner.weighting: from here on the shared prefix counts in full
INTERFERENCE_AT_S = 10.0  # victims decode by then, and their quiet gaps are the yardstick
INTERFERENCE_AT_SHARE = 0.25  # of the time at the promised speed: up to four times as fast, victims are still there
AGGRESSORS = 2
VICTIM_INPUT_TOKENS = 512  # short, so that what a victim waits for is not its own prompt
# A small record as internal tools ask for; every answer of the point is to fit it.
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "priority": {"type": "string", "enum": ["low", "medium", "high"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "priority", "tags"],
    "additionalProperties": False,
}


class QualitySet(NamedTuple):
    """A file of items beside the plan, its SHA-256 and how many items it holds."""

    file: str
    sha256: str
    items: int


class Regime(NamedTuple):
    """Where one ratio over the coverage bound is taken to hold: requests at once, prompt against answer, context."""

    batches: str
    mix: str
    context: str

    @property
    def words(self) -> str:
        """The regime as a sentence begins with it."""
        return f"With {self.batches} in flight, {self.mix}, contexts {self.context} tokens"


def regime_of(p: LoadPoint) -> Regime | None:
    """The regime of a closed load point; None for other shapes, whose number in flight is a result."""
    if p.shape != "closed" or p.in_flight is None or p.free_length:
        return None
    context = p.input_tokens + p.output_tokens // 2  # what a decode step reads of one request on average
    return Regime(_band(BATCHES, p.in_flight), _band(MIXES, p.input_tokens / p.output_tokens), _band(CONTEXTS, context))


def _band(bands: Sequence[Band], x: float) -> str:
    return next(b.name for b in bands if b.holds(x))


class Case(NamedTuple):
    """One case as hypotheses see it. `regular` is the point at which the speed per user is promised.

    `top` is the closed point with all users in flight, `sweep` are the points of stage A, `precise` a candidate of the
    same model in more bits than the favourite, if the plan has one.
    """

    r: Requirements
    favourite: str
    baseline: str | None
    candidates: tuple[str, ...]
    points: tuple[LoadPoint, ...]
    regular: str
    top: str
    sweep: tuple[str, ...]
    precise: str | None = None
    quality: QualitySet | None = None

    @property
    def regular_point(self) -> LoadPoint:
        """The regular load; raises StopIteration when the plan lacks it."""
        return next(p for p in self.points if p.name == self.regular)

    def regimes(self) -> dict[Regime, str]:
        """The regimes of the sweep, each with one point that speaks for it: the regular one, else its largest."""
        found: dict[Regime, str] = {}
        for p in self.points:
            regime = regime_of(p) if p.name in self.sweep else None
            if regime and found.get(regime) != self.regular:
                found[regime] = p.name
        return found


def shared_prefix_point(case: Case) -> tuple[LoadPoint, ...]:
    """The regular load with a common beginning; none where every point has one, since the share is known."""
    if case.r.shared_prefix_share:
        return ()
    return (case.regular_point.model_copy(update={"name": SHARED, "shared_prefix": ASSUMED_SHARE}),)


def json_point(case: Case) -> tuple[LoadPoint, ...]:
    """The regular load again, each answer to fit a schema."""
    return (
        case.regular_point.model_copy(update={"name": JSON, "json_schema": SCHEMA, "pair_of": case.regular}),
    )  # fmt: skip


def interference_point(case: Case) -> tuple[LoadPoint, ...]:
    """The regular number of users decodes, and prompts as long as the context allows come in between."""
    regular = case.regular_point
    rounds = regular.requests / (regular.in_flight or 1)
    long_s = rounds * regular.output_tokens / case.r.user_tok_s_promise
    aggressor = LoadPoint.model_fields["aggressor_output_tokens"].default
    return (
        LoadPoint(
            name=INTERFERENCE, shape="interference", in_flight=regular.in_flight,
            input_tokens=min(regular.input_tokens, VICTIM_INPUT_TOKENS), output_tokens=regular.output_tokens,
            requests=regular.requests, warmup_requests=regular.warmup_requests, aggressors=AGGRESSORS,
            aggressor_at_s=float(f"{min(INTERFERENCE_AT_S, INTERFERENCE_AT_SHARE * long_s):.3g}"),
            aggressor_input_tokens=max(1, case.r.context_tokens - aggressor),
        ),
    )  # fmt: skip


def quality_point(case: Case) -> tuple[LoadPoint, ...]:
    """The items of the quality set, a few at a time; none without a set."""
    if case.quality is None:
        return ()
    regular, (file, sha256, items) = case.regular_point, case.quality
    return (
        LoadPoint(
            name=QUALITY, shape="quality", in_flight=min(4, regular.in_flight or 1), quality_file=file,
            file_sha256=sha256, requests=items, warmup_requests=0, input_tokens=regular.input_tokens,
            output_tokens=regular.output_tokens,
        ),
    )  # fmt: skip
