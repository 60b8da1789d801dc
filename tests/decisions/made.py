"""Values that several tests start from: the Nortia decision as a team would write it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from decisions.edits import Accepted, Edit
from decisions.flips import from_template
from decisions.record import Adr, AdrText, Consequences, EvidenceRef, Option, People, SnapshotRef, draft
from decisions.view import propose
from planner.conditions import Context, Evidence, Kind

NOW = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
SEEDS_FOUR = ("engine-does-not-start", "few-users", "shared-prefix-dominates", "format-not-supported")


def text() -> AdrText:
    return AdrText(
        title="vLLM serves the internal assistant",
        headline="How many users get the promise on one unit is not measured yet; 20 to 50 are needed.",
        context="20 to 50 users at once ask an internal assistant.\n\nToday developers run Ollama on their own PCs.",
        drivers=("peak of 20 to 50 users", "TTFT p95 <= 2 s, queue included"),
        options=(
            Option(
                title="vLLM", candidate="vllm-b", pros=("batches continuously",), cons=("releases often",),
                neutral=("needs FP8 support on the GPU",),
            ),
            Option(title="Ollama", candidate="ollama-b", pros=("known to all",), cons=("few slots",)),
        ),
        chosen="vLLM",
        outcome="it batches, speaks the API and shows its metrics.",
        consequences=Consequences(good=("one server for all",), bad=("one person must follow its releases",)),
        confirmation="The six hypotheses of the PoC plan.",
        conditions=tuple(
            from_template(id, candidate="vllm-b", owner="infrastructure", recheck_on=date(2026, 12, 1))
            for id in SEEDS_FOUR
        ),
        evidence=(EvidenceRef(id="e-1", sha256="e" * 64, run="b" * 64, kind=Kind.IMPORTED, says="TTFT p95 2.8 s"),),
        people=People(decided=("Sato",), consulted=("Tanaka", "Lee")),
        review_on=date(2027, 3, 1),
        tags=("inference",),
    )  # fmt: skip


def nortia(id: str = "01J0000000000000000NORTIA1") -> Adr:
    return draft(id, "nortia", text())


def accepted_edits(id: str = "01J0000000000000000NORTIA1", number: int = 7) -> tuple[Edit, ...]:
    created, proposed = propose(nortia(id), at=NOW, author="Tanaka")
    snapshot = SnapshotRef(kind="plan", sha256="a" * 64)
    decided = Accepted(at=NOW + timedelta(days=1), author="Sato", number=number, snapshots=(snapshot,))
    return created, proposed, decided


def observed_peak(value: float, *, days: float = 28, kind: Kind = Kind.OBSERVED, id: str = "peak") -> Evidence:
    return Evidence(
        id=id, metric="peak_in_flight", statistic="max", value=value, unit="count", kind=kind, source="request log",
        at=NOW, n=int(days), window_days=days, coverage=1.0, run="c" * 64 if kind is Kind.MEASURED else None,
    )  # fmt: skip


def context(**fields: object) -> Context:
    return Context.model_validate({"now": NOW, **fields})
