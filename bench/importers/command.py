"""What `python -m bench import` does and says."""

from __future__ import annotations

import argparse
import json
import tempfile
from datetime import date
from pathlib import Path

from bench.commands import OK, read_plan
from bench.importers.foreign import Stated
from bench.importers.take import Choices, import_file
from bundle.manifest import Manifest
from bundle.summary import summarise
from planner.conditions import Evidence
from planner.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Import one file; with --dry-run only say what would be taken."""
    choices = Choices(
        candidate=options.candidate, plan=read_plan(options.plan) if options.plan else None,
        stands_for=_pairs(options.point, "--point", alone=True), source=options.source, licence=options.licence,
        contract=_pairs(options.state, "--state"),
        stated=Stated(options.in_flight, options.rate, _day(options.date)),
    )  # fmt: skip
    if options.dry_run:
        with tempfile.TemporaryDirectory() as scratch:
            folder, manifest, foreign = import_file(options.file, Path(scratch), choices, options.format)
            evidence = summarise(folder)
    elif options.out is None:
        raise InputError("--out is missing.", fix="Name the folder for the bundle, or try with --dry-run.")
    else:
        folder, manifest, foreign = import_file(options.file, options.out, choices, options.format)
        evidence = summarise(folder)
    own = list(dict.fromkeys(load.point.name for load in foreign.loads))
    told = _told(manifest, evidence, own) | {"bundle": "" if options.dry_run else str(folder)}
    given = {e.metric for e in evidence}
    told["taken"] = {theirs: ours for theirs, ours in foreign.taken.items() if given & set(ours.split(", "))}
    print(json.dumps(told) if options.json else _in_words(told))
    return OK


def _pairs(words: list[str], option: str, *, alone: bool = False) -> dict[str, str]:
    """NAME=VALUE words; one without a name is for the only load of the file where `alone` allows it."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.rpartition("=")
        if not value or (not equals and not alone) or name in found:
            raise InputError(f"{option} {word!r} is not NAME=VALUE, or is there twice.", fix="Write each once.")
        found[name] = value
    return found


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"--date {text!r} is not a day.", fix="Write it as 2026-08-14.") from None


def _told(manifest: Manifest, evidence: list[Evidence], own: list[str]) -> dict[str, object]:
    imported = manifest.imported
    if imported is None:
        raise InputError("holds no imported result.")
    metrics = sorted({e.metric for e in evidence})
    return {
        "tool": f"{imported.tool} {imported.version}".strip(),
        "loads": dict(zip(own, imported.loads.values(), strict=False)), "figures": len(evidence),
        "requests": sum(r.scheduled for r in manifest.repeats), "metrics": metrics,
        "not_measured": imported.not_measured, "refused": imported.refused, "findings": list(manifest.findings),
    }  # fmt: skip


def _in_words(told: dict[str, object]) -> str:
    lines = [f"{told['tool']}: {told['figures']} figures" + (
        f" from {told['requests']} requests" if told["requests"] else ", as the tool computed them")]  # fmt: skip
    for title, key in (("load", "loads"), ("taken", "taken"), ("not measured", "not_measured"), ("refused", "refused")):
        pairs = told[key]
        lines += [f"  {title}: {a}: {b}" for a, b in (pairs.items() if isinstance(pairs, dict) else ())]
    findings = told["findings"]
    lines += [f"  {f}" for f in (findings if isinstance(findings, list) else ())]
    return "\n".join([*lines, str(told["bundle"])]).strip()
