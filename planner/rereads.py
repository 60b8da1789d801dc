"""Ratings too thin to lean on that no load can settle: they are read again, and no hypothesis asks for them."""

from __future__ import annotations

from planner.criterion_names import criterion_name
from planner.frozen import Frozen
from planner.proposals import PROBES, THIN_SURENESS, close_engines
from planner.scoring import Contribution, Score

# What a document can prove of itself (a licence, a list of hardware) is not thin; hearsay and inference are.
HEARSAY = frozenset({"reported", "inferred", "unknown"})


class Reread(Frozen):
    """A rating of an engine that could win, how it is known, and where to read again."""

    engine: str
    criterion: str
    sentence: str


def rereads(scored: Score) -> tuple[Reread, ...]:
    """What of the favourite and its rivals is to be read again, or tried by hand, before a decision; heaviest first."""
    found = [
        (p.weight, Reread(engine=c.engine, criterion=p.criterion, sentence=_sentence(c.engine_name, p)))
        for c in close_engines(scored) for p in c.contributions
        if p.weight > 0 and p.criterion not in PROBES and (p.sureness in THIN_SURENESS or p.basis in HEARSAY)
    ]  # fmt: skip
    return tuple(r for _, r in sorted(found, key=lambda x: -x[0]))


def _sentence(name: str, p: Contribution) -> str:
    about = criterion_name(p.criterion)
    if p.rating is None:
        return f"{about} of {name} is not known, and no load tells it: read or try it by hand ({'; '.join(p.source)})."
    return (
        f"{about} of {name} is rated {p.rating} of 3 ({p.evidence_kind}, {p.confidence} confidence), and no load tells "
        f"more: read again or try it by hand ({'; '.join(p.source)})."
    )
