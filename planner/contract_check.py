"""The contract of a plan before anything runs: how much of it is stated, and where it contradicts the load points."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.contract import FIELDS, Contract
from planner.errors import InputError
from planner.frozen import Frozen
from planner.loads import LoadPoint
from planner.offered import run_points
from planner.plan_budget import ladder
from planner.poc import Plan, PlanCandidate
from planner.server_schema import RequestFields


class Completeness(Frozen):
    """The material fields that one candidate's contract states, and those that it does not.

    Only what a person can state beforehand counts; the rest is recorded at each start.
    """

    candidate: str
    stated: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """Stated share of the material fields."""
        return len(self.stated) / (len(self.stated) + len(self.missing))


class Contradiction(Frozen):
    """A field of a candidate's contract that a load point cannot be run under: which, why, and the way out."""

    candidate: str
    field: str
    point: str
    sentence: str
    fix: str

    def __str__(self) -> str:
        """The whole as one line."""
        return f"candidate {self.candidate}, {self.field}: {self.sentence} {self.fix}"


def completeness(plan: Plan) -> tuple[Completeness, ...]:
    """How complete the contract of each candidate is."""
    fields = [f.name for f in FIELDS if f.material and f.part != "observed"]
    found = []
    for c in plan.candidates:
        stated = Contract(shared=plan.shared_contract, candidate=c.contract).stated()
        found.append(Completeness(
            candidate=c.id, stated=tuple(n for n in fields if n in stated),
            missing=tuple(n for n in fields if n not in stated),
        ))  # fmt: skip
    return tuple(found)


def undeclared_differences(plan: Plan) -> tuple[str, ...]:
    """Fields in which candidates differ and may not, as long as nobody declares it: they refuse a comparison."""
    contracts = [Contract(candidate=c.contract).stated() for c in plan.candidates]
    return tuple(
        f.name for f in FIELDS
        if f.part == "candidate" and f.between in ("must match", "may be declared")
        and f.name not in plan.declared_differences and len({c.get(f.name, "") for c in contracts}) > 1
    )  # fmt: skip


def contradictions(plan: Plan, request_of: dict[str, RequestFields] | None = None) -> tuple[Contradiction, ...]:
    """Every contradiction between contract and load points.

    `request_of` has what each candidate's server takes in a request, where that is known: a server without ignore_eos
    and min_tokens cannot hold an answer's length.
    """
    found: list[Contradiction] = []
    for c in plan.candidates:
        request = (request_of or {}).get(c.id)
        found += [*_too_long(plan, c), *_too_many(plan, c), *_of_another_length(plan, c, request)]
    return tuple(found)


def refuse_contradictions(plan: Plan, request_of: dict[str, RequestFields] | None = None, *, where: str) -> None:
    """Raise InputError with the first contradiction, and how many more there are."""
    found = contradictions(plan, request_of)
    if found:
        more = f" ({len(found) - 1} more of the kind.)" if len(found) > 1 else ""
        first = found[0]
        raise InputError(
            f"candidate {first.candidate}, {first.field}: {first.sentence}", where=where, fix=first.fix + more
        )


def _number(candidate: PlanCandidate, field: str) -> int | None:
    stated = candidate.contract.get(field, "").replace(",", "").strip()
    return int(stated) if stated.isdecimal() else None


def _too_long(plan: Plan, c: PlanCandidate) -> Iterator[Contradiction]:
    most = _number(c, "max_model_len")
    for p in run_points(plan) if most is not None else ():
        kinds = [("requests", p.input_tokens, p.output_tokens)]
        if p.aggressor_input_tokens:
            kinds.append(("long prompts", p.aggressor_input_tokens, p.aggressor_output_tokens))
        for what, input_tokens, output_tokens in kinds:
            if input_tokens + output_tokens > (most or 0):
                yield Contradiction(
                    candidate=c.id, field="max_model_len", point=p.name,
                    sentence=f"{most:,} tokens are fewer than the {input_tokens:,} + {output_tokens:,} of the {what} "
                    f"at {p.name}.",
                    fix=f"State {input_tokens + output_tokens:,} or more, or shorten the point.",
                )  # fmt: skip


def _too_many(plan: Plan, c: PlanCandidate) -> Iterator[Contradiction]:
    """Where a rule looks for the knee nothing may queue unseen, so the limit is at least the largest point there."""
    most = _number(c, "max_num_seqs")
    if most is None:
        return
    rungs = {p.name: p for stage in plan.stages if stage.rule for p in ladder(plan, stage)}
    for p in rungs.values():
        if (p.in_flight or 0) > most:
            yield Contradiction(
                candidate=c.id, field="max_num_seqs", point=p.name,
                sentence=f"{most:,} at once are fewer than the {p.in_flight:,} in flight at {p.name}, so some would "
                "wait unseen where the stage's rule looks for the knee.",
                fix=f"State {p.in_flight:,} or more, or take {p.name} out of that stage.",
            )  # fmt: skip


def _of_another_length(plan: Plan, c: PlanCandidate, request: RequestFields | None) -> Iterator[Contradiction]:
    stated = c.contract.get("output_length", "").strip().lower()
    if not stated.startswith("fixed"):
        return
    fixed = [p for p in run_points(plan) if not p.free_length]
    number = re.search(r"\d[\d,]*", stated)
    if number:
        tokens = int(number.group().replace(",", ""))
        for p in fixed:
            if p.output_tokens != tokens:
                yield _length(c, p, f"{tokens:,} tokens are not the {p.output_tokens:,} that {p.name} asks for.",
                              "State the length of the points, or 'fixed' alone.")  # fmt: skip
    if request and not (request.ignore_eos or request.min_tokens):
        for p in fixed[:1]:
            yield _length(c, p, f"{c.engine} takes neither ignore_eos nor min_tokens, so at {p.name} its answers end "
                          "when they end.", "State 'free', and declare output_length as a difference.")  # fmt: skip
    if not fixed:
        first = run_points(plan)[0]
        yield _length(c, first, f"answers at {first.name} end by themselves, as at every point of the plan.",
                      "State 'free'.")  # fmt: skip


def _length(c: PlanCandidate, point: LoadPoint, sentence: str, fix: str) -> Contradiction:
    return Contradiction(candidate=c.id, field="output_length", point=point.name, sentence=sentence, fix=fix)
