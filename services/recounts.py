"""Thresholds and service levels that were asked after a bundle was taken in: counted once and kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from bundle.manifest import MANIFEST
from bundle.run_data import RunData
from bundle.summary import evidence_of
from db.runs import Run
from planner.conditions import Condition, Evidence
from planner.errors import FliplineError
from planner.frozen import sha256_of
from planner.known import Derived, Known
from planner.poc import levels_hash
from services.evidence import read_kept
from services.workspace import VERSION, Workspace

Told = Callable[[int, int], None]  # how many bundles are counted, of how many


class Counted(NamedTuple):
    """Evidence with every asked threshold counted, and a sentence for each bundle that can no longer be read."""

    evidence: Known
    findings: tuple[str, ...]


class Question(NamedTuple):
    """What is asked of every bundle: limits as metric, statistic, threshold, comparison, and the service levels."""

    conditions: tuple[Condition, ...]
    levels: tuple[Condition, ...]

    @property
    def limits(self) -> frozenset[tuple[str, str, float, str]]:
        """The limits of percentiles, which are decided by how many samples lie beyond."""
        return frozenset(
            (c.metric, c.statistic, c.threshold, c.comparison)
            for c in self.conditions
            if c.comparison in ("<=", ">=") and c.statistic.startswith("p") and not c.over
        )

    def sha256(self) -> str:
        """Its identity; another version of Flipline may count in another way."""
        return sha256_of([VERSION, sorted(self.limits), levels_hash(self.levels)])


def counted_for(
    ws: Workspace, runs: Sequence[Run], evidence: Iterable[Evidence], conditions: Sequence[Condition],
    service_levels: Sequence[Condition] = (), told: Told | None = None,
) -> Counted:  # fmt: skip
    """The same evidence with every asked threshold counted, and goodput under these service levels.

    Kept bundles are summarised again where something is missing, once for a question; `told` hears after each, so that
    who waits can see it, and what was counted stays when it raises. A stored figure keeps its value,
    origin and findings; goodput under other levels than those at import is a figure of its own, beside the stored one.
    """
    known, question = Known.of(evidence), Question(tuple(conditions), tuple(service_levels))
    lost = {r.sha256 for r in runs if not (ws.runs / r.path / MANIFEST).is_file()}
    present = frozenset(r.sha256 for r in runs) - lost
    counted, unreadable = _COUNTED.get(known, (question, present), lambda: _counted(ws, runs, known, question, told))
    lost |= unreadable
    findings = tuple(
        f"The bundle of run {run.id} ({run.candidate}, stage {run.stage}, start {run.start}) is missing or was "
        "altered: its thresholds cannot be counted again. Take it in again."
        for run in runs
        if run.sha256 in lost
    )
    return Counted(counted, findings)


_COUNTED: Derived[tuple[Known, frozenset[str]]] = Derived()


def _counted(
    ws: Workspace, runs: Sequence[Run], known: Known, question: Question, told: Told | None
) -> tuple[Known, frozenset[str]]:  # fmt: skip
    """The evidence with all that is asked, and the hashes of bundles that cannot be read."""
    lacking = _uncounted(known, question) | _regraded(runs, known, question)
    again, lost = _again(ws, [r for r in runs if r.sha256[:12] in lacking], question, told)
    return (_merged(known, again, _regraded(runs, known, question), question) if again else known), frozenset(lost)


def _uncounted(known: Known, question: Question) -> set[str]:
    """Sources of which a figure lacks the count of an asked limit."""
    return {
        e.source
        for metric, statistic, threshold, comparison in question.limits
        for e in known.of_metric(metric)
        if e.statistic == statistic and e.beyond(threshold, comparison) is None
    }


def _regraded(runs: Sequence[Run], known: Known, question: Question) -> set[str]:
    """Sources of runs whose goodput was counted under other service levels, or under none."""
    levels = levels_hash(question.levels)
    if levels is None:
        return set()
    good = {e.source for e in known.of_metric("goodput") if e.service_levels == levels}
    return {r.sha256[:12] for r in runs} - good


def _again(
    ws: Workspace, runs: Sequence[Run], question: Question, told: Told | None
) -> tuple[dict[str, Evidence], set[str]]:  # fmt: skip
    """What the asked figures of some runs come to, by id, and the hashes of bundles that cannot be read."""
    if not runs:
        return {}, set()
    key, lost = question.sha256(), set()
    found = ws.store.recounts.find(key, [r.sha256 for r in runs])
    new = [run for run in runs if run.sha256 not in found]
    for i, run in enumerate(new):
        if told:
            told(i, len(new))
        try:
            found[run.sha256] = _asked_of(read_kept(ws, run), question)
        except (FliplineError, OSError):
            lost.add(run.sha256)
            continue
        with suppress(FliplineError):  # somebody else is writing: it is counted again next time
            ws.store.recounts.keep(run.sha256, key, found[run.sha256])
    if told and new:
        told(len(new), len(new))
    return {e.id: e for figures in found.values() for e in figures}, lost


def _asked_of(data: RunData, question: Question) -> tuple[Evidence, ...]:
    """The figures whose limits are asked, and goodput."""
    asked = {(metric, statistic) for metric, statistic, *_ in question.limits} | {("goodput", "value")}
    summary = evidence_of(data, question.conditions, question.levels)
    return tuple(e for e in summary if (e.metric, e.statistic) in asked)


def _counts(e: Evidence) -> dict[str, object]:
    """How many lie beyond each limit, and of how many: who had waited beyond a limit when it was cut off is of them."""
    return {"exceedances": e.exceedances, "n": e.n, "effective_n": e.effective_n}


def _merged(known: Known, again: Mapping[str, Evidence], regraded: Collection[str], question: Question) -> Known:
    """The known figures with the counts of those that were counted again, and goodput under the asked levels beside."""
    levels = levels_hash(question.levels)
    found = {m: known.of_metric(m) for m in sorted({e.metric for e in again.values()})}
    merged = {
        m: [e.model_copy(update=_counts(again[e.id])) if e.id in again else e for e in figures]
        for m, figures in found.items()
    }
    if levels:
        contract_of = {e.source: e.contract for figures in found.values() for e in figures}
        merged["goodput"] = [
            *merged.get("goodput", ()),
            *(
                e.model_copy(update={"id": f"{e.id}/{levels[:8]}", "contract": contract_of.get(e.source, e.contract)})
                for e in again.values()
                if e.metric == "goodput" and e.source in regraded
            ),
        ]
    return known.with_metrics(merged)
