"""What one unit serves by evidence, and how many units the peak needs: the rules of the sizing, on what was seen.

Users at once: units by the knee of the closed loop and by the total speed there (planner/scaling.py). Requests per
second: units by the knee of the open loop at a target utilisation (planner/request_rate.py). The larger counts, N + 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Literal

from planner.conditions import Evidence, Kind
from planner.deciding import per_start
from planner.frozen import Frozen
from planner.knee import Knee, in_words
from planner.known import Known
from planner.request_rate import offered_rate
from planner.requirements import Requirements
from planner.scaling import units_for_rate

Decides = Literal["users at once", "total throughput", "request rate"]


class UnitCapacity(Frozen):
    """What one unit serves while it keeps the levels of its knees; None: nothing decides it, 0: no load keeps them.

    `output_tok_s` is the total at the point that the cost rests on: the closed knee, else the open one. `good_per_s`
    counts only requests that met every level; it is known where goodput was counted under these very levels.
    """

    candidate: str
    users: int | None = None
    users_kind: Kind | None = None
    users_tok_s: float | None = None
    rate_per_s: float | None = None
    rate_kind: Kind | None = None
    rate_tok_s: float | None = None
    good_per_s: float | None = None

    @property
    def output_tok_s(self) -> float | None:
        """Total output at the knee that is known, in tok/s."""
        return self.users_tok_s or self.rate_tok_s

    @property
    def unit_rate_per_s(self) -> float | None:
        """Requests per second that units are counted with: the good ones where they were counted, else the offered."""
        return self.rate_per_s if self.good_per_s is None else self.good_per_s


class UnitsMeasured(Frozen):
    """Units for a number of users; each `by_` is None where nothing decides it. `rate_per_s` is what they send."""

    users: int
    rate_per_s: float
    utilisation: float
    by_users: int | None = None
    by_total: int | None = None
    by_rate: int | None = None
    out_of_reach: bool = False
    sentence: str

    @property
    def units(self) -> int | None:
        """Units that satisfy everything that is known; None where nothing is, or no number is enough."""
        known = [n for n in (self.by_users, self.by_total, self.by_rate) if n is not None]
        return max(known) if known and not self.out_of_reach else None

    @property
    def units_with_spare(self) -> int | None:
        """N + 1."""
        return None if self.units is None else self.units + 1

    @property
    def decides(self) -> Decides | None:
        """What asks for the most units."""
        ways: tuple[tuple[Decides, int | None], ...] = (
            ("users at once", self.by_users), ("total throughput", self.by_total), ("request rate", self.by_rate),
        )  # fmt: skip
        return next((name for name, n in ways if n is not None and n == self.units), None)


def unit_capacity(
    candidate: str, closed: Knee | None, open_: Knee | None, evidence: Iterable[Evidence],
    service_levels: str | None = None,
) -> UnitCapacity:  # fmt: skip
    """What one unit serves, from the knees of a candidate and the speeds seen there.

    `service_levels` is the hash of the levels that the knees keep: goodput under others is another figure.
    """
    evidence = Known.of(evidence)
    rate = _amount(open_)
    done, good = (_seen(open_, m, evidence, service_levels) for m in ("request_rate", "goodput"))
    users = _amount(closed)
    return UnitCapacity(
        candidate=candidate, users=None if users is None else int(users), users_kind=closed.kind if closed else None,
        users_tok_s=_seen(closed, "output_tok_s", evidence), rate_per_s=rate, rate_kind=open_.kind if open_ else None,
        rate_tok_s=_seen(open_, "output_tok_s", evidence),
        good_per_s=done * good if done is not None and good is not None else None,
    )  # fmt: skip


def _amount(knee: Knee | None) -> float | None:
    if knee is None or not knee.decided:
        return None
    return knee.at.amount if knee.at else 0.0


def _seen(
    knee: Knee | None, metric: str, evidence: Iterable[Evidence], service_levels: str | None = None
) -> float | None:
    """The median over starts of a figure at the knee, of its kind, and of the contract and load that it was judged on.

    What an older version or another load gave under the same name is no capacity of today.
    """
    if knee is None or knee.at is None:
        return None
    known = Known.of(evidence)
    judged_on = {(e.contract, e.load_hash) for e in known.by_id(knee.at.verdict.used).values()}
    found = [
        e
        for e in known.at(metric, knee.at.point)
        if (e.candidate, e.kind) == (knee.candidate, knee.kind)
        and e.valid
        and (e.contract, e.load_hash) in judged_on
        and (metric != "goodput" or (service_levels and e.service_levels == service_levels))
    ]
    return median(per_start(found).values()) if found else None


def units_measured(r: Requirements, unit: UnitCapacity, users: int, utilisation: float) -> UnitsMeasured:
    """Units for so many users at once and the requests that they send, each unit loaded to `utilisation` of its rate.

    Raises InputError for a utilisation outside (0, 1].
    """
    rate = offered_rate(r) * users / r.peak_users_max
    unit_rate = unit.unit_rate_per_s
    found = UnitsMeasured(
        users=users, rate_per_s=rate, utilisation=utilisation,
        by_users=math.ceil(users / unit.users) if unit.users else None,
        by_total=math.ceil(users * r.user_tok_s_target / unit.users_tok_s - 1e-9) if unit.users_tok_s else None,
        by_rate=units_for_rate(rate, unit_rate, utilisation)[0] if unit_rate else None,
        out_of_reach=unit.users == 0 or unit.rate_per_s == 0, sentence="",
    )  # fmt: skip
    return found.model_copy(update={"sentence": _sentence(found, unit)})


def _sentence(u: UnitsMeasured, unit: UnitCapacity) -> str:
    who = f"{u.users:,} users" if u.users != 1 else "1 user"
    if u.out_of_reach:
        what = "number in flight" if unit.users == 0 else "rate"
        return f"No number of units is known to be enough for {who}: the lowest {what} judged fails on one already."
    if u.units is None:
        return f"Units for {who} are not known: no load is decided."
    units = "1 unit" if u.units == 1 else f"{u.units:,} units"
    return f"{who[:1].upper()}{who[1:]} need {units}, {u.units_with_spare:,} with one to spare; {u.decides} decides."


def capacity_words(unit: UnitCapacity) -> tuple[str, ...]:
    """What one unit serves, a phrase a way."""
    said = []
    if unit.users:
        said.append(in_words("closed", unit.users))
    if unit.rate_per_s:
        good = f" offered, {unit.good_per_s:.3g} done and good" if unit.good_per_s is not None else ""
        said.append(in_words("open", unit.rate_per_s) + good)
    return tuple(said)
