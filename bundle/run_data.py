"""A bundle, verified and read: what the summary counts in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bundle.folder import bundle_sha256, open_bundle
from bundle.manifest import Manifest, Repeat
from bundle.quality import Judged, read_quality
from bundle.records import Record, Sample, read_records, read_telemetry
from bundle.samples import Window, steady_window
from bundle.validity import Finding, facts, findings
from planner.loads import LoadPoint


class RepeatData(NamedTuple):
    """One repeat, read: its records, telemetry, steady window and the rules that fired."""

    repeat: Repeat
    point: LoadPoint
    records: list[Record]
    telemetry: list[Sample]
    window: Window
    findings: tuple[Finding, ...]
    quality: tuple[Judged, ...] = ()


class RunData(NamedTuple):
    """One bundle, read and verified."""

    manifest: Manifest
    sha256: str
    repeats: tuple[RepeatData, ...]


def read_run(folder: Path) -> RunData:
    """Verify and read a bundle; raises BundleError."""
    manifest = open_bundle(folder)
    points = {p.name: p for p in manifest.points}
    repeats = []
    for repeat in manifest.repeats:
        records = read_records(folder / repeat.records)
        telemetry = read_telemetry(folder / repeat.telemetry) if repeat.telemetry else []
        point = points[repeat.load_point]
        window = steady_window(records, point)
        fired = findings(facts(manifest, repeat, point, records, telemetry, window))
        judged = read_quality(folder / repeat.quality) if repeat.quality else ()
        repeats.append(RepeatData(repeat, point, records, telemetry, window, fired, judged))
    return RunData(manifest, bundle_sha256(folder), tuple(repeats))
