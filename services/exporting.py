"""ADRs as Markdown files, one to take along or all into a team's folder, where nothing of anybody else is touched."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from decisions.exports import (
    Export,
    file_name,
    file_names,
    foreign_id,
    is_foreign,
    other_foreign_ids,
    read_export,
    same_decision,
    signed,
    untouched_picture,
)
from decisions.index_page import Listed, Other, index_page
from decisions.lint import speed_warnings
from decisions.madr_foreign import Read
from decisions.madr_reader import CONFLICT, read_madr
from decisions.madr_text import text_of
from decisions.madr_words import Language
from decisions.markdown import Chart, to_markdown
from decisions.record import Adr, Status
from planner.errors import FliplineError, InputError, NotAllowed
from services.decided import accepted_requirements
from services.git_tree import must_be_finished
from services.hand_edits import read_hand_edit
from services.verdicts import CaseState, case_state, judge_adr
from services.workspace import Workspace

Kind = Literal["decision", "index", "chart"]
INDEX = ("README.md", "index.md")  # the first that is free, or ours


class Drawn(NamedTuple):
    """A chart for a decision: a short name, what it says in words, the picture."""

    key: str
    words: str
    svg: str


Charts = Callable[[CaseState, Adr], Sequence[Drawn]]


def no_charts(state: CaseState, adr: Adr) -> Sequence[Drawn]:
    """Text alone."""
    return ()


class File(NamedTuple):
    """A file that an export writes, and what that does to the folder."""

    path: Path
    text: str
    kind: Kind
    state: Literal["new", "updated", "same"]


class Refused(NamedTuple):
    """A file in the way of an export, and the difference between it and what would be written."""

    path: Path
    error: NotAllowed
    difference: str


class Planned(NamedTuple):
    """What an export would do; with anything refused it does nothing. `left` are imported files that stay theirs."""

    files: tuple[File, ...]
    refused: tuple[Refused, ...]
    left: tuple[Path, ...]


def export_markdown(
    ws: Workspace, adr_id: str, files: Mapping[str, str] | None = None, language: Language = "en"
) -> tuple[str, str]:  # fmt: skip
    """File name and MADR 4 text of one ADR; `files` are names by ADR id where they differ from the numbers."""
    adr = ws.store.adrs.get(adr_id)
    others = {a.id: a for a in ws.store.adrs.all()} if adr.supersedes or adr.superseded_by else {}
    name = (files or {}).get(adr.id) or file_name(adr)
    return name, _markdown(adr, case_state(ws, adr.case), ws.store.adrs.head(adr_id), others, files or {}, language)


def _markdown(
    adr: Adr, state: CaseState, head: str, others: Mapping[str, Adr], files: Mapping[str, str], language: Language,
    charts: Sequence[Chart] = (),
) -> str:  # fmt: skip
    related = {id: others[id] for id in (*adr.supersedes, adr.superseded_by or "") if id in others}
    context = state.context_of(adr)
    return to_markdown(
        adr, judge_adr(state, adr), head=head, related=related, files=files, language=language, charts=charts,
        context=context, warnings=speed_warnings(adr, state.evidence, context),
    )  # fmt: skip


def export_all(
    ws: Workspace, folder: Path, case: str | None = None, *, language: Language = "en", proposed: bool = False,
    charts: Charts = no_charts,
) -> tuple[Path, ...]:  # fmt: skip
    """Write every ADR with a number into a folder with an index and charts; returns the files of the ADRs.

    Raises NotAllowed when a file of ours was edited there, or one in its place is not ours, or a merge is unfinished;
    InputError for what is no folder. Nothing is written then.
    """
    planned = plan_export(ws, folder, case, language=language, proposed=proposed, charts=charts)
    write(planned, folder)
    return tuple(f.path for f in planned.files if f.kind == "decision")


def plan_export(
    ws: Workspace, folder: Path, case: str | None = None, *, language: Language = "en", proposed: bool = False,
    charts: Charts = no_charts,
) -> Planned:  # fmt: skip
    """What an export would write and what stands in its way; with `proposed`, proposals get the next free number.

    A number that another file has there gives way to the next free one. Raises NotAllowed in the middle of a merge,
    InputError for what is no folder.
    """
    must_be_finished(folder)
    present = _present(folder)
    adrs, heads = {a.id: a for a in ws.store.adrs.all()}, ws.store.adrs.heads()
    theirs = _theirs(folder, present, adrs)
    out = [a for a in adrs.values() if a.number or (proposed and a.status is Status.PROPOSED)]
    out = [a for a in out if a.id not in theirs]
    files = theirs | file_names(out, present, [a.number for a in adrs.values() if a.number])
    there = [a for a in out if files[a.id] in present or case in (None, a.case)]
    states = {of: case_state(ws, of) for of in {a.case for a in there}}
    texts: dict[str, tuple[str, Kind]] = {}
    for adr in there:
        if case not in (None, adr.case):
            continue
        state, name = states[adr.case], files[adr.id]
        drawn = {f"{Path(name).stem}-{d.key}.svg": d for d in charts(_as_decided(ws, state, adr), adr)}
        links = [Chart(file, d.words) for file, d in drawn.items()]
        texts[name] = _markdown(adr, state, heads[adr.id], adrs, files, language, links), "decision"
        texts |= {file: (signed(d.svg), "chart") for file, d in drawn.items()}
    index = next((n for n in INDEX if n not in present or _is_index(present[n])), None)
    if index and (there or theirs):
        rows = [Listed(a, files[a.id], tuple(v.state.value for v in judge_adr(states[a.case], a))) for a in there]
        texts[index] = index_page(rows, _others(folder, present), language=language), "index"
    made = [_file(folder / name, text, kind) for name, (text, kind) in texts.items()]
    refused = [r for f in made if (r := _in_the_way(ws, f)) is not None]
    return Planned(tuple(made), tuple(refused), tuple(folder / n for n in sorted(set(theirs.values()))))


def write(planned: Planned, folder: Path) -> None:
    """Write what is new or other; raises the first refusal, or InputError for a folder that cannot be written to."""
    if planned.refused:
        raise planned.refused[0].error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in planned.files:
            if file.state != "same":
                _put(file.path.resolve(), file.text)
    except OSError as e:
        raise InputError(f"cannot be written: {e.strerror}.", where=str(folder),
                         fix="Choose a folder you may write to.") from e  # fmt: skip


def _put(path: Path, text: str) -> None:
    """The whole text or what stood there: half a file would not be known as ours any more."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)


def export_zip(
    ws: Workspace, case: str | None = None, *, language: Language = "en", proposed: bool = False,
    charts: Charts = no_charts,
) -> bytes:  # fmt: skip
    """The same files as into an empty folder, as a .zip; the same log gives the same bytes."""
    nowhere = Path("/nonexistent")
    planned = plan_export(ws, nowhere, case, language=language, proposed=proposed, charts=charts)
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(planned.files):
            entry = zipfile.ZipInfo(file.path.name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, file.text.encode(), zipfile.ZIP_DEFLATED)
    return body.getvalue()


def _as_decided(ws: Workspace, state: CaseState, adr: Adr) -> CaseState:
    """The case with the requirements and the plan that an ADR was accepted on: those of today would redraw it."""
    r, plan = accepted_requirements(ws, adr), state.accepted_plans.get(adr.id)
    return state._replace(requirements=r or state.requirements, plan=plan or state.plan)


def _theirs(folder: Path, present: Mapping[str, Export | None], adrs: Mapping[str, Adr]) -> dict[str, str]:
    """Decisions that came out of files that stand there, by id: known by name, or by another way to the same file."""
    found: dict[str, str] = {}
    cases = {a.case for a in adrs.values() if is_foreign(a.id)}
    for name, case in product((n for n, export in present.items() if export is None), cases):
        by_name = foreign_id(case, name)
        ids = [i for i in (by_name, *other_foreign_ids(case, name, (folder / name).absolute())) if i in adrs]
        read = _decision(folder / name) if ids and ids != [by_name] else None
        same = [i for i in ids if read and same_decision(adrs[i], read.text)]
        found |= dict.fromkeys(same or [i for i in ids if i == by_name], name)
    return found


def _present(folder: Path) -> dict[str, Export | None]:
    """Markdown files of a folder by name, and what they are."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, not a folder.", where=str(folder), fix="Choose a folder.")
    return {path.name: read_export(_read(path) or "") for path in sorted(folder.glob("*.md"))}


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _is_index(export: Export | None) -> bool:
    return export is not None and export.adr == ""


def _others(folder: Path, present: Mapping[str, Export | None]) -> list[Other]:
    """Decisions that others wrote into the folder, as far as they can be read."""
    names = (n for n, export in present.items() if export is None and n[:1].isdigit())
    return [Other(name, read.text.title, read.status_words, read.day.isoformat() if read.day else "")
            for name in names if (read := _decision(folder / name))]  # fmt: skip


def _decision(path: Path) -> Read | None:
    """What a file of others says; None for what cannot be read."""
    try:
        return text_of(read_madr(_read(path) or "", path.name), path.name)
    except FliplineError:
        return None


def _file(path: Path, text: str, kind: Kind) -> File:
    if not path.exists():
        return File(path, text, kind, "new")
    return File(path, text, kind, "same" if _read(path) == text else "updated")


def _in_the_way(ws: Workspace, file: File) -> Refused | None:
    """Why a file may not be written over, if so: not ours, in the middle of a merge, or edited by hand."""
    if file.state != "updated":
        return None
    stands, where = _read(file.path), str(file.path)
    shown = "\n".join(unified_diff(file.text.split("\n"), (stands or "").split("\n"), "as Flipline would write it",
                                   file.path.name, n=1, lineterm=""))  # fmt: skip
    if stands is not None and CONFLICT.search(stands):
        return Refused(file.path, NotAllowed("holds the marks of an unfinished merge.", where=where,
                                             fix="Finish the merge, then export again."), shown)  # fmt: skip
    untouched = _untouched(file.kind, stands or "")
    if untouched is None:
        return Refused(file.path, NotAllowed("exists and was not written by Flipline.", where=where,
                                             fix="Move it away first."), shown)  # fmt: skip
    if untouched or (file.kind == "decision" and _all_in_the_record(ws, stands or "", where)):
        return None
    way_out = "Import the folder to bring the edit into the record, or move the file away."
    return Refused(file.path, NotAllowed(
        "was edited by hand after it was written.", where=where,
        fix=way_out if file.kind == "decision" else "Keep it under another name.",
    ), shown)  # fmt: skip


def _untouched(kind: Kind, text: str) -> bool | None:
    """Whether a file of ours is as it was written; None for one that is not ours."""
    if kind == "chart":
        return untouched_picture(text)
    export = read_export(text)
    return export and export.untouched


def _all_in_the_record(ws: Workspace, text: str, where: str) -> bool:
    """Whether everything that a hand edit asks for was taken in already."""
    try:
        asked = read_hand_edit(ws, text, where, author="").asked
    except FliplineError:
        return False
    return not asked.edits and not asked.refused
