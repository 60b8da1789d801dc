"""A store with the Nortia case, and the small values that tests put in."""

from __future__ import annotations

from datetime import UTC, datetime

from db.cases import Case
from db.runs import Run
from db.store import Store, open_store
from planner.conditions import Evidence, Kind
from planner.contract import Contract

NOW = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
CONTRACT = Contract(shared={"model": "tiny"}, observed={"gpu": "none"})


def with_nortia(url: str) -> Store:
    store = open_store(url)
    store.cases.add(Case(id="nortia", slug="nortia", title="Nortia", created_at=NOW, created_by="Sato"))
    return store


def figure(id: str, value: float = 10.0, **fields: object) -> Evidence:
    return Evidence.model_validate({
        "id": id, "metric": "output_tok_s", "value": value, "unit": "tok/s", "kind": Kind.SIMULATED,
        "source": "emulator", "at": NOW, "candidate": "vllm-b", "load_point": "peak",
        "contract": CONTRACT.full_hash(), **fields,
    })  # fmt: skip


def run(sha256: str = "b" * 64, case: str = "nortia") -> Run:
    return Run(
        sha256=sha256, id="01JRUN00", case=case, plan_sha256="a" * 64, candidate="vllm-b", stage="A", start=1,
        kind=Kind.SIMULATED, status="complete", created_at="2026-09-01T08:00:00+00:00", findings=("slow client",),
        manifest=b'{"id": "01JRUN00"}', path="bundles/one", imported_at=NOW, imported_by="Lee",
    )  # fmt: skip


def contracts() -> dict[str, Contract]:
    return {CONTRACT.full_hash(): CONTRACT}
