"""Hypotheses that a score asks for: from gates nobody could settle, requirements left open, and ratings too thin.

A proposal is a hypothesis of the plan (planner/poc.py) with the engines and the load point that it needs besides those
of the plan. It names why it is asked; a person takes it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from planner.condition_line import parse_condition
from planner.criterion_names import criterion_name
from planner.frozen import Frozen
from planner.hypotheses import NEAR
from planner.hypothesis_case import SHARED as SHARED_POINT
from planner.hypothesis_edits import with_points, with_skips
from planner.loads import LoadPoint
from planner.planning import candidate_of, regular_point
from planner.poc import Hypothesis, Plan
from planner.requirements import Requirements
from planner.scoring import Contribution, Score, ScoredCandidate
from planner.weighting import Unknown, open_requirements

Origin = Literal["unknown gate", "open requirement", "close race", "thin evidence"]
MARK = "P-"  # begins the id of every hypothesis that was proposed here
AT_LEAST = 1.1  # a gain below a tenth is within what starts of one engine differ by


class Proposal(Frozen):
    """A hypothesis to take into the plan: where it comes from, why, and what the plan needs for it."""

    origin: Origin
    why: str
    hypothesis: Hypothesis
    engines: tuple[str, ...]
    points: tuple[LoadPoint, ...] = ()

    @property
    def id(self) -> str:
        """The id that its hypothesis carries in the plan."""
        return self.hypothesis.id

    def covered_by(self, plan: Plan) -> str | None:
        """The hypothesis of a plan that tests the same already, or None."""
        for h in plan.hypotheses:
            if h.id == self.id or set(self.hypothesis.conditions) <= set(h.conditions):
                return h.id
        return None


class Probe(NamedTuple):
    """How a measurement tells two engines apart in what one criterion rates: a condition line and its method.

    {a} leads on paper, {b} follows; {n} is the point of the regular load.
    """

    line: str
    method: str


# Criteria that a run can settle. The others (licence, ease, releases) are settled by reading, not by load.
PROBES: dict[str, Probe] = {
    "batching": Probe("{a} over {b}: output_tok_s >= 1 x at {n}", "Total tokens per second at the regular load."),
    "kv_management": Probe("{a} over {b}: kv_capacity_tokens >= 1 x", "KV tokens that each states at its start."),
    "scheduling_policy": Probe("{a} over {b}: ttft p95 <= 1 x at peak", "Open loop at the peak rate, queue included."),
    "chunked_prefill": Probe("{a} over {b}: itl p99 <= 1 x at peak", "Gaps between tokens while prompts are read."),
    "prefix_reuse": Probe(
        "{a} over {b}: output_tok_s >= 1 x at shared-prefix", "Prompts with a common beginning, new in each repeat."
    ),
    "metrics": Probe("{a}: running max >= 1 at {n}", "Read the server's own metrics under load."),
}
ALONE: dict[str, Probe] = {
    "batching": Probe("{a}: user_tok_s p5 >= {speed:g} tok/s at {n}", "Speed per user at the regular load."),
    "kv_management": Probe("{a}: oom <= 0 at overload", "Twice the limit in flight."),
    "scheduling_policy": Probe("{a}: completed_share >= 95 % at overload", "Twice the limit in flight."),
    "chunked_prefill": Probe("{a}: itl p99 <= {gap:g} ms at peak", "Gaps between tokens while prompts are read."),
    "prefix_reuse": Probe("{a}: prefix_hit >= 50 % at shared-prefix", "Prompts with a common beginning."),
    "metrics": Probe("{a}: running max >= 1 at {n}", "Read the server's own metrics under load."),
}
THIN_BASES = frozenset({"documented", "reported", "inferred", "unknown"})
THIN_SURENESS = frozenset({"low", "unknown"})


def propose(r: Requirements, scored: Score) -> tuple[Proposal, ...]:
    """Every hypothesis that the score asks for, the most urgent first, without two that test the same."""
    found = [*_from_gates(scored), *_from_open_requirements(r, scored), *_from_races(r, scored), *_thin(r, scored)]
    seen: set[object] = set()
    kept = []
    for p in found:
        if p.hypothesis.conditions not in seen and p.id not in seen:
            kept.append(p)
        seen |= {p.hypothesis.conditions, p.id}
    return tuple(kept)


def _from_gates(scored: Score) -> Sequence[Proposal]:
    return [
        Proposal(
            origin="unknown gate", why=o.gate.reason, engines=(o.engine,),
            hypothesis=_hypothesis(
                o.engine, o.gate.gate.split()[0], o.gate.hypothesis,
                ("{a}: started is true", "{a}: completed_share is 1 at single"),
                {"a": candidate_of(o.engine)},
                "Without network, from files carried in." if o.gate.gate == "air gap" else "Smallest configuration.",
                f"{scored.of(o.engine).engine_name} leaves the comparison; its gate is settled.",
            ),
        )
        for o in scored.first_hypotheses
    ]  # fmt: skip


def _from_open_requirements(r: Requirements, scored: Score) -> Sequence[Proposal]:
    """An engine that a value of an open requirement would put first is measured at that value against the winner."""
    if scored.favourite is None:
        return []
    first = scored.of(scored.favourite)
    return [
        _shared_prefix(r, first, c, unknown)
        for unknown in open_requirements(r)
        for c in scored.ranking
        if c.advice.role == "re-examine"
    ]


def _shared_prefix(r: Requirements, first: ScoredCandidate, c: ScoredCandidate, unknown: Unknown) -> Proposal:
    point = shared_point(r, unknown.values[-1])
    return Proposal(
        origin="open requirement", why=c.advice.when or c.advice.reason, engines=(c.engine, first.engine),
        points=(point,),
        hypothesis=_hypothesis(
            c.engine, "prefix",
            f"With {point.shared_prefix:.0%} of the prompt in common {c.engine_name} gives {AT_LEAST:g} times the "
            f"tokens of {first.engine_name}.",
            (f"{{a}} over {{b}}: output_tok_s >= {AT_LEAST:g} x at {SHARED_POINT} near {NEAR} %",),
            {"a": candidate_of(c.engine), "b": candidate_of(first.engine)},
            "Same prompts on both, a common beginning, new in each repeat; cached tokens are reported.",
            f"The shared prefix does not speak for {c.engine_name}: keep {first.engine_name}.",
        ),
    )  # fmt: skip


def _from_races(r: Requirements, scored: Score) -> Sequence[Proposal]:
    """A challenger is measured against the favourite: at the shared prefix where the case has one, else as it comes."""
    if scored.favourite is None:
        return []
    first, found = scored.of(scored.favourite), []
    share = r.shared_prefix_share or 0.0
    for c in scored.ranking:
        if c.advice.role != "challenger":
            continue
        shared = bool(share)
        where = SHARED_POINT if shared else regular_point(r)
        found.append(Proposal(
            origin="close race", why=c.advice.reason, engines=(first.engine, c.engine),
            points=(shared_point(r, share),) if shared else (),
            hypothesis=_hypothesis(
                c.engine, "race",
                f"{first.engine_name} gives at least the tokens of {c.engine_name}"
                + (f" with {share:.0%} of the prompt in common." if shared else " at the regular load."),
                (f"{{a}} over {{b}}: output_tok_s >= 1 x at {where} near {NEAR} %",),
                {"a": candidate_of(first.engine), "b": candidate_of(c.engine)},
                "Same model, lengths and prompts on both.",
                f"{c.engine_name} becomes the favourite of the plan.",
            ),
        ))  # fmt: skip
    return found


def _thin(r: Requirements, scored: Score) -> Sequence[Proposal]:
    """Ratings of the favourite and its nearest rival that are thin, or one step from another winner; heaviest first."""
    if scored.favourite is None:
        return []
    first = scored.of(scored.favourite)
    flips = {(f.engine, f.criterion): f.winner for f in scored.rating_flips}
    found: list[tuple[float, Proposal]] = []
    for c in close_engines(scored):
        for p in c.contributions:
            if p.weight <= 0 or p.criterion not in PROBES:
                continue
            other = flips.get((c.engine, p.criterion))
            if other or _is_thin(p):
                rival = other if c.engine == first.engine else first.engine
                found.append((p.weight, _probe(r, scored, c, p, rival)))
    return [proposal for _, proposal in sorted(found, key=lambda x: -x[0])]


def close_engines(scored: Score) -> tuple[ScoredCandidate, ...]:
    """The favourite and those that could come before it."""
    return tuple(
        c for c in scored.ranking if c.engine == scored.favourite or c.advice.role in ("challenger", "re-examine")
    )


def _is_thin(p: Contribution) -> bool:
    return p.sureness in THIN_SURENESS or p.basis in THIN_BASES


def _probe(r: Requirements, scored: Score, c: ScoredCandidate, p: Contribution, rival: str | None) -> Proposal:
    """One criterion of one engine, against the rival whom it would make win, or alone where there is none."""
    probe = (PROBES if rival else ALONE)[p.criterion]
    # The favourite stands on the left: it is the paper's claim that is tested.
    a, b = (rival, c.engine) if rival == scored.favourite else (c.engine, rival)
    names = {
        "a": candidate_of(a or c.engine), "b": candidate_of(b) if b else "", "n": regular_point(r),
        "speed": r.user_tok_s_promise, "gap": round(1000 / r.user_tok_s_promise, 1),
    }  # fmt: skip
    about = criterion_name(p.criterion)
    basis = "nobody knows it" if p.rating is None else f"{p.evidence_kind}, {p.confidence} confidence"
    turned = f", and one step would make {scored.of(_turned(scored, c, rival)).engine_name} win" if rival else ""
    rated = "" if p.rating is None else f" is rated {p.rating} of 3"
    return Proposal(
        origin="thin evidence", why=f"{criterion_name(p.criterion)}: {c.engine_name}{rated} ({basis}){turned}.",
        engines=tuple(dict.fromkeys(e for e in (a, b, c.engine) if e)),
        points=(shared_point(r, r.shared_prefix_share or 0.6),) if p.criterion == "prefix_reuse" else (),
        hypothesis=_hypothesis(
            c.engine, p.criterion.split("_")[0],
            f"What is rated as {about} of {c.engine_name} holds in a run: {p.statement}",
            (probe.line,), names, probe.method,
            f"Correct the rating of {about} in the catalogue and score again.",
        ),
    )  # fmt: skip


def _turned(scored: Score, c: ScoredCandidate, rival: str | None) -> str:
    """Who wins after the step: the engine that is rated higher then, or whoever gains from a lower rating."""
    return rival if rival and c.engine == scored.favourite else c.engine


def shared_point(r: Requirements, share: float) -> LoadPoint:
    """The regular load with a common beginning of so much of the prompt."""
    n = int(regular_point(r).removeprefix("parallel-").replace("single", "1"))
    return LoadPoint(
        name=SHARED_POINT, in_flight=n, input_tokens=r.input_tokens, output_tokens=r.output_tokens,
        shared_prefix=share, requests=max(24 + 2 * n, 4 * n), warmup_requests=min(2 * n, 16),
    )  # fmt: skip


def _hypothesis(
    engine: str, about: str, statement: str, lines: Sequence[str], names: dict[str, object], method: str,
    if_rejected: str,
) -> Hypothesis:  # fmt: skip
    return Hypothesis(
        id=f"{MARK}{candidate_of(engine)[:8].rstrip('-')}-{about}"[:20], statement=statement,
        conditions=tuple(parse_condition(line.format(**names)) for line in lines), method=method,
        if_rejected=if_rejected,
    )  # fmt: skip


def take_in(plan: Plan, taken: Sequence[Proposal]) -> Plan:
    """A plan with the hypotheses of proposals, whose load points get a stage of their own behind the others.

    The plan must have the proposals' engines among its candidates.
    """
    extended = with_points(plan, [p for proposal in taken for p in proposal.points])
    asked = (*plan.hypotheses, *(p.hypothesis for p in taken))
    return with_skips(extended.model_copy(update={"hypotheses": asked}))


def taken_in(plan: Plan) -> tuple[str, ...]:
    """Ids of the proposals that a plan took in."""
    return tuple(h.id for h in plan.hypotheses if h.id.startswith(MARK))
