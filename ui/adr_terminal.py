"""`cli.py adr check | export | import | replay`: decisions as files, in and out, and held against what they rest on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from decisions.lint import RULES, Finding, errors
from planner.errors import InputError
from services.adr_check import Check, check_folder, rows
from services.adr_search import find_adr
from services.decisions import findings
from services.exporting import File, plan_export, write
from services.importing import Imported, import_path
from services.log_file import export_log, import_log
from services.replay import Part, Replayed, replay
from services.workspace import Workspace, open_workspace
from ui.adr_charts import charts_of
from ui.terminal import Argument, as_json, read_text, say, table

CHECK_EXAMPLE = "adr check docs/decisions --evidence results/ --json"
CHECK_ARGUMENTS = (
    Argument("folder", {"type": Path, "nargs": "?", "metavar": "DIR",
                        "help": "exported decisions, judged without a database (default: lint those of the log)"}),
    Argument("--evidence", {"type": Path, "metavar": "DIR", "help": "bundles that the conditions are held against"}),
    Argument("--json", {"action": "store_true", "help": "print JSON"}),
)  # fmt: skip
EXPORT_EXAMPLE = "adr export docs/decisions --language ja"
EXPORT_ARGUMENTS = (
    Argument("folder", {"type": Path, "nargs": "?", "metavar": "DIR", "help": "where the Markdown goes"}),
    Argument("--case", {"metavar": "SLUG", "help": "only this case"}),
    Argument("--language", {"choices": ("en", "ja"), "default": "en", "help": "of headings (default: en)"}),
    Argument("--proposed", {"action": "store_true", "help": "proposals too, each with the next free number"}),
    Argument("--json", {"type": Path, "metavar": "FILE", "help": "the whole log as one JSON document"}),
)  # fmt: skip
IMPORT_EXAMPLE = "adr import docs/decisions --case nortia"
IMPORT_ARGUMENTS = (
    Argument("path", {"type": Path, "metavar": "PATH", "help": "a folder, .zip or .md, or a log as .json"}),
    Argument("--case", {"metavar": "SLUG", "help": "the case that they belong to (not for a log)"}),
    Argument("--json", {"action": "store_true", "help": "print JSON"}),
)  # fmt: skip
REPLAY_EXAMPLE = "adr replay ADR-0001 --json"
REPLAY_ARGUMENTS = (
    Argument("adr", {"metavar": "ID", "help": "its id, or its number as in 1 or ADR-0001"}),
    Argument("--json", {"action": "store_true", "help": "print JSON"}),
)


def check_and_print(args: argparse.Namespace) -> bool:
    """Lint and judge; says whether nothing fired and no rule of severity error is broken."""
    if args.folder is None:
        if args.evidence:
            raise InputError("--evidence needs the folder of the decisions.", where="adr check",
                             fix=f"As in: {CHECK_EXAMPLE}.")  # fmt: skip
        return _check_log(args)
    found = check_folder(args.folder, args.evidence)
    if args.json:
        as_json(_check_json(found))
    else:
        for sentence in found.broken:
            say(f"BROKEN {sentence}")
        table("Decisions", ("file", "what", "state", "sentence"), rows(found.decisions))
        say(found.sentence)
        _explain(f for c in found.decisions for f in c.findings)
    return found.well


def _check_log(args: argparse.Namespace) -> bool:
    ws = open_workspace(args.home)
    try:
        found = [(a.name, f) for a in ws.store.adrs.all() if a.status in ("draft", "proposed", "accepted")
                 for f in findings(ws, a) if not (a.status == "accepted" and f.rule == "FL006")]  # fmt: skip
    finally:
        ws.store.close()
    if args.json:
        as_json([{"adr": name, **_finding_json(f)} for name, f in found])
    else:
        table("Lint", ("adr", "rule", "severity", "sentence"), [(n, f.rule, f.severity, f.sentence) for n, f in found])
        _explain(f for _, f in found)
    return not errors(f for _, f in found)


def _explain(found: Iterable[Finding]) -> None:
    for rule in sorted({f.rule for f in found}):
        say(f"{rule} {RULES[rule].title}: {RULES[rule].explanation}")


def _check_json(found: Check) -> dict[str, object]:
    return {
        "well": found.well, "sentence": found.sentence, "bundles": found.bundles,
        "passed_over": list(found.passed_over), "broken": list(found.broken),
        "decisions": [
            {"file": c.file, "adr": c.adr.id, "status": c.adr.status.value,
             "conditions": [v.model_dump(mode="json", exclude={"verdict"}) for v in c.verdicts],
             "findings": [_finding_json(f) for f in c.findings]}
            for c in found.decisions
        ],
    }  # fmt: skip


def _finding_json(f: Finding) -> dict[str, object]:
    return {**f._asdict(), "explanation": RULES[f.rule].explanation}


def export_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Write Markdown into a folder, or the log as JSON; says whether nothing stood in the way."""
    case = ws.store.cases.get(args.case).id if args.case else None
    if args.folder is None and args.json is None:
        raise InputError("neither a folder nor --json is named.", where="adr export", fix=f"As in: {EXPORT_EXAMPLE}.")
    if args.json is not None:
        _write_log(args.json, export_log(ws, case))
    if args.folder is None:
        return True
    planned = plan_export(ws, args.folder, case, language=args.language, proposed=args.proposed, charts=charts_of)
    for refused in planned.refused:
        say(str(refused.error))
        say(refused.difference)
    if planned.refused:
        return False
    write(planned, args.folder)
    for file in planned.files:
        say(_written(file))
    for left in planned.left:
        say(f"{left} (theirs, left as it is)")
    if not planned.files:
        say("No ADR has a number yet: one is given when it is accepted. --proposed writes proposals too.")
    return True


def _written(file: File) -> str:
    return str(file.path) if file.state != "same" else f"{file.path} (as it was)"


def _write_log(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(path), fix="Name another file.") from None
    say(str(path))


def import_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Take decisions in; says whether every file came in."""
    if args.path.suffix.lower() == ".json":
        joined = import_log(ws, read_text(args.path), args.by, args.path.name)
        if args.json:
            as_json(joined._asdict())
        else:
            say(f"{len(joined.new)} new, {len(joined.there)} known.")
            for sentence in joined.renamed:
                say(sentence)
        return True
    if not args.case:
        raise InputError("--case is missing.", where="adr import", fix=f"As in: {IMPORT_EXAMPLE}.")
    done = import_path(ws, args.case, args.path, args.by)
    if args.json:
        as_json(_import_json(done))
    else:
        _print_import(done)
    return not (done.broken or done.refused)


def _print_import(done: Imported) -> None:
    if done.new:
        table("New", ("adr", "status", "title"), [(a.name, a.status.value, a.title) for a in done.new])
    for came in done.edited:
        say(f"{came.file}: {', '.join(e.kind for e in came.edit.asked.edits)}, by {came.edit.author}")
    for came in done.refused:
        say(f"REFUSED {came.file}: {' '.join(came.edit.asked.refused)}")
        say(came.edit.asked.difference)
    for broken in done.broken:
        say(f"BROKEN {broken.error}")
    say(done.sentence)


def _import_json(done: Imported) -> dict[str, object]:
    return {
        "new": [{"id": a.id, "number": a.number, "status": a.status.value, "title": a.title} for a in done.new],
        "edited": [{"file": c.file, "adr": c.edit.adr.id, "author": c.edit.author,
                    "edits": [e.kind for e in c.edit.asked.edits]} for c in done.edited],
        "refused": [{"file": c.file, "why": list(c.edit.asked.refused), "difference": c.edit.asked.difference}
                    for c in done.refused],
        "known": list(done.there), "passed_over": list(done.passed_over),
        "broken": [{"file": b.file, "why": str(b.error)} for b in done.broken],
    }  # fmt: skip


def replay_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Work a decision out again; says whether it came out as it was."""
    done = replay(ws, find_adr(ws, args.adr).id)
    if args.json:
        as_json(_replay_json(done))
        return done.same
    for part in (*done.parts, done.today):
        if part.lacking:
            say(f"{part.name}: not replayed, {part.lacking}.")
        elif part.differences:
            table(part.name, ("field", "then", "now"), [(d.where, d.before or "–", d.after or "–")
                                                        for d in part.differences])  # fmt: skip
        else:
            say(f"{part.name}: nothing differs.")
    return done.same


def _replay_json(done: Replayed) -> dict[str, object]:
    def told(part: Part) -> dict[str, object]:
        differing = [{"field": list(d.path), "then": d.before, "now": d.after} for d in part.differences]
        return {"name": part.name, "lacking": part.lacking, "differences": differing}

    return {"adr": done.adr.id, "same": done.same, "parts": [told(p) for p in done.parts], "today": told(done.today)}
