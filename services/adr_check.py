"""Exported decisions judged against bundles, without a database: what a repository of both runs in its CI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from bundle.folder import find_bundles
from bundle.run_data import read_run
from bundle.summary import evidence_of
from decisions.exports import read_export
from decisions.flips import FlipState, FlipVerdict, judge_flips
from decisions.lint import Finding, errors, lint
from decisions.madr_foreign import Read
from decisions.madr_reader import read_madr
from decisions.madr_text import text_of
from decisions.record import Adr, Status
from planner.conditions import Condition, Context, Evidence
from planner.contract import Contract
from planner.errors import FliplineError, InputError
from planner.faults import first_fault
from planner.known import Known
from planner.loads import LoadPoint
from services.import_files import Brought, brought
from services.workspace import now

JUDGED = (Status.PROPOSED, Status.ACCEPTED)
_BEFORE_ACCEPTANCE = "FL006"  # "has fired already" is a finding before acceptance; afterwards it is the verdict itself


class Checked(NamedTuple):
    """One decision: its conditions today, and what lint finds in it."""

    file: str
    adr: Adr
    verdicts: tuple[FlipVerdict, ...]
    findings: tuple[Finding, ...]

    @property
    def fired(self) -> tuple[FlipVerdict, ...]:
        """Conditions that fired."""
        return tuple(v for v in self.verdicts if v.state is FlipState.FIRED)

    @property
    def well(self) -> bool:
        """Nothing fired, and lint has no error."""
        return not self.fired and not errors(self.findings)


class Check(NamedTuple):
    """All decisions of a folder; `bundles` were read, `passed_over` are no exports of Flipline or out of force.

    `broken` says of every export that cannot be read which and why; the others are judged all the same.
    """

    decisions: tuple[Checked, ...]
    bundles: int
    passed_over: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def well(self) -> bool:
        """Whether a pipeline may go on."""
        return not self.broken and all(d.well for d in self.decisions)

    @property
    def sentence(self) -> str:
        """What was looked at and what came of it, so that nothing found is not taken for nothing looked at."""
        verdicts = [v for d in self.decisions for v in d.verdicts]
        found = [f for d in self.decisions for f in errors(d.findings)]
        decided = sum(v.state in (FlipState.ARMED, FlipState.NEAR, FlipState.FIRED) for v in verdicts)
        fired = sum(v.state is FlipState.FIRED for v in verdicts)
        unread = f" Not readable: {len(self.broken)}." if self.broken else ""
        return (
            f"{len(self.decisions)} decisions with {len(verdicts)} conditions held against {self.bundles} bundles: "
            f"{decided} decided, {fired} fired, {len(found)} lint errors.{unread}"
        )


class _Exported(NamedTuple):
    file: str
    adr: Adr
    told: Context


def check_folder(folder: Path, evidence: Path | None) -> Check:
    """Judge every exported decision in force of a folder against every bundle of another.

    Raises InputError where there is no decision, BundleError for a bundle that is incomplete or altered.
    """
    found, passed_over, broken = [], [], []
    for file in brought(folder):
        try:
            exported = _exported(file)
        except InputError as e:
            broken.append(str(e))
            continue
        if exported:
            found.append(exported)
        else:
            passed_over.append(file.name)
    if not found and not broken:
        raise InputError("holds no decision in force that Flipline exported.", where=str(folder),
                         fix="Write them with 'adr export DIR' first.")  # fmt: skip
    asked = tuple(c.condition for e in found for c in e.adr.active_conditions if c.condition)
    pieces, contracts, bundles = _evidence(evidence, asked)
    checked = tuple(_checked(e, pieces, contracts) for e in found)
    return Check(checked, bundles, tuple(passed_over), tuple(broken))


def _exported(file: Brought) -> _Exported | None:
    """A decision in force; None for what Flipline did not export, or what is in force no more."""
    export = read_export(file.body.decode(errors="replace").replace("\r\n", "\n"))
    if export is None or not export.adr:
        return None  # others may write in any encoding
    text = file.text().replace("\r\n", "\n")
    parts = read_madr(text, file.name)
    read, block = text_of(parts, file.name), parts.machine or {}
    adr = _adr(read, export.adr, str(block.get("case") or ""), file.name)
    return _Exported(file.name, adr, _told(block, file.name)) if adr.status in JUDGED else None


def _adr(read: Read, id: str, case: str, where: str) -> Adr:
    try:
        return Adr.model_validate({**read.text.model_dump(), "id": id, "case": case, "number": read.number,
                                   "status": read.status})  # fmt: skip
    except ValidationError as e:
        raise InputError(first_fault(e), where=where, fix="Export the decision again.") from None


def _evidence(folder: Path | None, asked: tuple[Condition, ...]) -> tuple[Known, dict[str, Contract], int]:
    """Figures of every bundle, with the limits counted that the conditions ask."""
    if folder is None:
        return Known(), {}, 0
    if not folder.is_dir():
        raise InputError("is not there.", where=str(folder), fix="Name the folder that holds the bundles.")
    pieces: list[Evidence] = []
    contracts: dict[str, Contract] = {}
    bundles = find_bundles(folder)
    for bundle in bundles:
        data = read_run(bundle)
        figures = tuple(evidence_of(data, asked))
        pieces += figures
        contracts |= {e.contract: data.manifest.contract for e in figures if e.contract}
    return Known(pieces), contracts, len(bundles)


def _checked(exported: _Exported, evidence: Known, contracts: Mapping[str, Contract]) -> Checked:
    adr = exported.adr
    context = exported.told.model_copy(update={"contracts": contracts})
    asked = {name for c in adr.active_conditions if c.condition for name in (c.condition.candidate, c.condition.over)}
    candidates = {o.candidate for o in adr.options} | context.decided.keys() | asked
    known = Known(e for e in evidence if not candidates - {None} or e.candidate in (None, *candidates))
    verdicts = judge_flips(adr, known, context)
    found = lint(adr, known, context)
    if adr.status is Status.ACCEPTED:
        found = tuple(f for f in found if f.rule != _BEFORE_ACCEPTANCE)
    return Checked(exported.file, adr, verdicts, found)


def _told(block: Mapping[str, Any], where: str) -> Context:
    """What the conditions are judged in, as the block tells; load points that it does not name are not limited."""
    told = block.get("judged_in")
    fields = told if isinstance(told, dict) else {}
    try:
        points = {name: LoadPoint.model_validate(p) for name, p in (fields.get("points") or {}).items()}
        decided = {name: Contract.model_validate(c) for name, c in (fields.get("decided") or {}).items()}
        return Context(now=now(), points=points or None, decided=decided, service_levels=fields.get("service_levels"))
    except (ValidationError, FliplineError, AttributeError) as e:
        what = first_fault(e) if isinstance(e, ValidationError) else str(e)
        raise InputError(f"judged_in: {what}", where=where, fix="Export the decision again.") from None


def rows(checked: Iterable[Checked]) -> list[tuple[str, str, str, str]]:
    """Every verdict and finding as file, what, state or severity, sentence."""
    return [
        row
        for c in checked
        for row in (
            *((c.file, v.condition, v.state.value, v.sentence) for v in c.verdicts),
            *((c.file, f.rule, f.severity, f.sentence) for f in c.findings),
        )
    ]
