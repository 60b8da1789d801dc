"""Traffic of a case: what a log says, kept without the log; and taken into the requirements when a person says so.

A kept log is a folder of the workspace that is only added to: traffic/CASE/ID with record.json (the summary, who, when,
the SHA-256 of the file it came from) and trace.csv.gz (times, lengths, numbered sessions; no texts, no ids).
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from db.cases import RequirementsVersion
from db.ids import new_id
from planner.errors import InputError, UnknownName
from planner.frozen import Frozen
from planner.requirements import Requirements
from planner.traffic import TrafficSummary
from planner.traffic_in_flight import LatencyModel
from planner.traffic_proposal import propose
from planner.traffic_replay import Cut, replay, trace_csv
from services.cases import requirements_from, save_requirements
from services.traffic_log import Log
from services.workspace import UNFINISHED, Workspace, now, signed_by

RECORD, TRACE = "record.json", "trace.csv.gz"


class KeptTraffic(Frozen):
    """What is kept of a log. `source_sha256` is that of the file, which is not kept, `trace_sha256` that of the trace.

    `trace_sha256` is None where the log has no times to replay.
    """

    id: str
    name: str
    source_sha256: str
    layout: str
    summary: TrafficSummary
    latency: LatencyModel | None
    findings: tuple[str, ...]
    left_out: tuple[str, ...]
    trace_sha256: str | None
    by: str
    at: datetime


def latency_of(r: Requirements) -> LatencyModel:
    """The latency that the requirements promise: what is assumed for a log that does not say how long answers took."""
    return LatencyModel(first_s=r.ttft_s, tok_s=r.user_tok_s_target)


def keep(ws: Workspace, case: str, log: Log, summary: TrafficSummary, latency: LatencyModel | None,
         by: str) -> KeptTraffic:  # fmt: skip
    """Keep summary and scrubbed trace of a log; one that is kept already with the same figures is not kept twice.

    Raises InputError where there is no room for it.
    """
    trace = trace_csv(replay(log.requests, Cut())) if log.requests.at_s else None
    at = now()
    record = KeptTraffic(
        id=new_id(at), name=Path(log.name).name, source_sha256=log.sha256, layout=log.layout, summary=summary,
        latency=latency, findings=log.findings, left_out=log.left_out,
        trace_sha256=hashlib.sha256(trace).hexdigest() if trace is not None else None,
        by=signed_by(by, "traffic"), at=at,
    )  # fmt: skip
    for old in kept(ws, case):
        if (old.source_sha256, old.summary, old.left_out) == (log.sha256, summary, log.left_out):
            return old
    folder = _folder(ws, case)
    part = folder / f"{UNFINISHED}{record.id}"
    try:
        part.mkdir(parents=True)
        if trace is not None:
            (part / TRACE).write_bytes(gzip.compress(trace, mtime=0))
        (part / RECORD).write_text(record.model_dump_json(), encoding="utf-8")
        part.rename(folder / record.id)  # whole or not at all
    except OSError as e:
        shutil.rmtree(part, ignore_errors=True)
        raise InputError(f"cannot be kept: {e.strerror}.", where=record.name,
                         fix=f"Make room in {ws.home}, or make it writable.") from None  # fmt: skip
    return record


def kept(ws: Workspace, case: str) -> tuple[KeptTraffic, ...]:
    """The logs of a case by time; raises InputError for a record that was damaged."""
    found = []
    for path in sorted(_folder(ws, case).glob(f"*/{RECORD}")):
        if path.parent.name.startswith(UNFINISHED):
            continue
        try:
            found.append(KeptTraffic.model_validate_json(path.read_bytes()))
        except ValidationError:
            raise InputError("is not as it was written.", where=str(path),
                             fix="Restore the file, or move its folder out of the workspace.") from None  # fmt: skip
    return tuple(found)


def trace_of(ws: Workspace, case: str, id: str) -> bytes:
    """The scrubbed trace of a kept log as CSV; raises UnknownName, InputError when it is not the one that was kept."""
    records = {k.id: k for k in kept(ws, case)}
    if id not in records or records[id].trace_sha256 is None:
        raise UnknownName.from_known("traffic", id, [k for k, v in records.items() if v.trace_sha256])
    path = _folder(ws, case) / id / TRACE
    try:
        body = gzip.decompress(path.read_bytes())
    except (OSError, EOFError):
        body = b""
    if hashlib.sha256(body).hexdigest() != records[id].trace_sha256:
        raise InputError("is not the trace that was kept.", where=str(path), fix="Bring the log in again.")
    return body


def _folder(ws: Workspace, case: str) -> Path:
    return ws.home / "traffic" / ws.store.cases.get(case).id


def take(ws: Workspace, case: str, r: Requirements, traffic: KeptTraffic, fields: Collection[str], author: str,
         after: int) -> RequirementsVersion:  # fmt: skip
    """Save requirements with the chosen fields of what a kept log proposes; the notes say which log it was.

    Raises InputError when nothing is chosen or the chosen values do not fit the others, ConflictError when somebody
    saved after version `after`.
    """
    chosen = [p for p in propose(r, traffic.summary) if p.field in fields]
    if not chosen:
        raise InputError("no figure is chosen.", where="traffic", fix="Choose what is to be taken over.")
    note = f"{', '.join(p.field for p in chosen)} from {traffic.name} (sha256 {traffic.source_sha256[:12]})."
    changed = {p.field: p.proposed for p in chosen} | {"notes": f"{r.notes}\n{note}".strip()}
    return save_requirements(
        ws, ws.store.cases.get(case).id, requirements_from(r.model_dump() | changed), author, after
    )
