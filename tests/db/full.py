"""A store with a row in every table, for tests that go through all of them."""

from __future__ import annotations

from db.calibrations import CalibrationChoice
from db.jobs import Job, JobState
from db.store import Store
from db.verdicts import Judged
from decisions.record import Deployment
from tests.db.made import NOW, contracts, figure, run
from tests.db.test_cases import plan, requirements
from tests.decisions.made import nortia

RECORD, DRAFT = "01J0000000000000000NORTIA1", "01J0000000000000000NORTIA2"


def fill(store: Store) -> None:
    """Nortia with a decision, a draft, a bundle, figures and all that hangs on them."""
    store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato")
    store.plans.add("nortia", plan(), at=NOW, author="Sato")
    store.runs.take_in(run(), [figure("e1")], contracts())
    store.evidence.add("nortia", [figure("e2", note="日本語 – ½")])
    store.recounts.keep("b" * 64, "q", [figure("e1")])
    store.calibrations.add(CalibrationChoice(evidence="e1", used=False, reason="the fan", author="Lee", at=NOW))
    store.calibrations.add(CalibrationChoice(evidence="e1", used=True, reason="mended", author="Lee", at=NOW))
    store.adrs.add_draft(nortia(RECORD), at=NOW, by="Sato")
    store.adrs.propose(RECORD, version=1, at=NOW, author="Sato")
    store.adrs.accept(RECORD, at=NOW, author="Sato", snapshots={"plan": b"\x00\xff exact bytes"})
    store.adrs.add_draft(nortia(DRAFT), at=NOW, by="Lee")
    store.deployments.add("nortia", Deployment(candidate="vllm-b", since=NOW, engine="vllm", by="Lee"))
    judged = Judged(condition="few-users", adr=RECORD, at=NOW, state="armed", value=0.1 + 0.2, sentence="far")
    store.verdicts.record("nortia", [judged])
    job = Job(id="j1", case="nortia", plan_sha256="a" * 64, out_dir="out", created_at=NOW, created_by="Lee",
              updated_at=NOW)  # fmt: skip
    store.jobs.add(job)
    store.jobs.update("j1", JobState.DONE, at=NOW)
