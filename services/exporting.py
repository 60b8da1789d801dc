"""ADRs as Markdown files, one to take along or all into a team's folder, where nothing of anybody else is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from decisions.exports import Export, file_name, file_names, read_export
from decisions.lint import speed_warnings
from decisions.markdown import to_markdown
from decisions.record import Adr
from planner.errors import InputError, NotAllowed
from services.verdicts import CaseState, case_state, judge_adr
from services.workspace import Workspace


def export_markdown(ws: Workspace, adr_id: str, files: Mapping[str, str] | None = None) -> tuple[str, str]:
    """File name and MADR 4 text of one ADR; `files` are names by ADR id where they differ from the numbers."""
    adr = ws.store.adrs.get(adr_id)
    others = {a.id: a for a in ws.store.adrs.all()} if adr.supersedes or adr.superseded_by else {}
    return _markdown(adr, case_state(ws, adr.case), ws.store.adrs.head(adr_id), others, files or {})


def _markdown(
    adr: Adr, state: CaseState, head: str, others: Mapping[str, Adr], files: Mapping[str, str]
) -> tuple[str, str]:
    related = {id: others[id] for id in (*adr.supersedes, adr.superseded_by) if id in others}
    text = to_markdown(
        adr, judge_adr(state, adr), head=head, related=related, files=files,
        warnings=speed_warnings(adr, state.evidence, state.context_of(adr)),
    )  # fmt: skip
    return files.get(adr.id) or file_name(adr), text


def export_all(ws: Workspace, folder: Path, case: str | None = None) -> tuple[Path, ...]:
    """Write every ADR with a number into a folder; a number that another file has there gives way to the next free one.

    Raises NotAllowed when a file of ours was edited there, or one in its place is not ours; InputError for what is no
    folder. Nothing is written then.
    """
    present = _present(folder)
    adrs, heads = {a.id: a for a in ws.store.adrs.all()}, ws.store.adrs.heads()
    numbered = [a for a in adrs.values() if a.number]
    files = file_names(numbered, present, [a.number for a in numbered if a.number])
    states = {of: case_state(ws, of) for of in {a.case for a in numbered} if case in (None, of)}
    written = []
    for adr in numbered:
        if adr.case not in states:
            continue
        name, text = _markdown(adr, states[adr.case], heads[adr.id], adrs, files)
        if name in present:
            _must_be_untouched(folder / name, present[name])
        written.append((folder / name, text))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in written:
            path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(folder),
                         fix="Choose a folder you may write to.") from e  # fmt: skip
    return tuple(path for path, _ in written)


def _present(folder: Path) -> dict[str, Export | None]:
    """Markdown files of a folder by name, and what they are."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, not a folder.", where=str(folder), fix="Choose a folder.")
    return {path.name: _read(path) for path in sorted(folder.glob("*.md"))}


def _read(path: Path) -> Export | None:
    try:
        return read_export(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _must_be_untouched(path: Path, export: Export | None) -> None:
    if export is None:
        raise NotAllowed("exists and was not written by Flipline.", where=str(path), fix="Move it away first.")
    if not export.untouched:
        raise NotAllowed(
            "was edited by hand after it was written.", where=str(path),
            fix="Bring the edit into the record as a comment or a new draft, then move the file away.",
        )  # fmt: skip
