"""One piece of evidence of a bundle: its id, where it belongs, and what all pieces of the bundle share."""

from __future__ import annotations

from datetime import datetime

from pydantic import ValidationError

from bundle.manifest import Figure
from bundle.run_data import RepeatData, RunData
from planner.conditions import Evidence, Kind
from planner.errors import BundleError
from planner.faults import first_fault
from planner.loads import LoadPoint
from planner.metrics import METRICS


class EvidenceMaker:
    """Fills in what all evidence of one bundle shares; raises BundleError for a figure that cannot be."""

    def __init__(self, run: RunData) -> None:
        m = run.manifest
        self._id = run.sha256[:12]
        self._common = {
            "kind": Kind(m.kind),
            "source": run.sha256[:12],
            "run": m.plan_sha256[:12] or None,
            "at": datetime.fromisoformat(m.finished_at),
            "candidate": m.candidate,
            "start": m.start,
            "contract": m.contract.full_hash(),
        }

    def make(
        self, metric: str, value: float, statistic: str = "value", data: RepeatData | None = None, **more: object
    ) -> Evidence:
        """One piece of evidence; with `data` it belongs to that repeat and inherits its findings."""
        where: dict[str, object] = {}
        key = f"{self._id}/{metric}/{statistic}"
        if data is not None:
            key = f"{self._id}/{data.point.name}/{data.repeat.repeat}/{metric}/{statistic}"
            where = {
                "load_point": data.point.name,
                "load_hash": data.point.load_hash(),
                "repeat": data.repeat.repeat,
                "spoiled_by": tuple(str(f) for f in data.findings if f.spoils(metric)),
                "note": "; ".join(str(f) for f in data.findings if not f.rule.spoils),
            }
        return self._valid(
            {"id": key, "metric": metric, "statistic": statistic, "value": value, "unit": METRICS[metric].unit}
            | self._common | where | more
        )  # fmt: skip

    def figure(self, f: Figure, point: LoadPoint, note: str) -> Evidence:
        """A figure that a foreign tool had computed."""
        return self._valid(
            {
                "id": f"{self._id}/{point.name}/{f.repeat}/{f.metric}/{f.statistic}", "metric": f.metric,
                "statistic": f.statistic, "value": f.value, "unit": METRICS[f.metric].unit, "n": f.n,
                "repeat": f.repeat, "load_point": point.name, "load_hash": point.load_hash(),
                "spoiled_by": f.spoiled_by, "note": note,
            } | self._common | {"kind": f.kind}
        )  # fmt: skip

    def _valid(self, fields: dict[str, object]) -> Evidence:
        """Raises BundleError for a figure that cannot be, such as a rate out of counters that run over."""
        try:
            return Evidence.model_validate(fields)
        except ValidationError as e:
            raise BundleError(f"{fields['metric']} {fields['statistic']} cannot be: {first_fault(e)}", where=self._id,
                              fix="Use the original bundle.") from None  # fmt: skip
