"""Commands of the decision log: list, search, graph, due, verify, export, import, replay, differences."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from services.diffs import Diff
from services.workspace import Workspace
from ui.adr_terminal import (
    EXPORT_ARGUMENTS,
    EXPORT_EXAMPLE,
    IMPORT_ARGUMENTS,
    IMPORT_EXAMPLE,
    REPLAY_ARGUMENTS,
    REPLAY_EXAMPLE,
    export_and_print,
    import_and_print,
    replay_and_print,
)
from ui.command import ANY_CASE, BY, CASE, FAILS, JSON, OK, Command
from ui.diff_terminal import DIFF_ADR, VERSIONS, adr_asked, plan_asked, print_diff, requirements_asked, score_asked
from ui.due_terminal import DUE_ARGUMENTS, DUE_EXAMPLE, REJUDGE_EXAMPLE, due_and_print, rejudge_and_print
from ui.log_terminal import (
    GRAPH_ARGUMENTS,
    GRAPH_EXAMPLE,
    SEARCH_ARGUMENTS,
    SEARCH_EXAMPLE,
    print_graph,
    search_and_print,
)
from ui.terminal import as_json, table
from ui.verify_terminal import VERIFY_ARGUMENTS, VERIFY_EXAMPLE, verify_and_print


def adr_list(ws: Workspace, args: argparse.Namespace) -> int:
    """All ADRs with status and headline."""
    slugs = {c.id: c.slug for c in ws.store.cases.all()}
    case = ws.store.cases.get(args.case).id if args.case else None
    rows = [(slugs[a.case], a.name, a.status.value, a.title, a.headline) for a in ws.store.adrs.all(case=case)]
    columns = ("case", "adr", "status", "title", "headline")
    if args.json:
        as_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        table("Decisions", columns, rows)
    return OK


def adr_search(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions that have all words and pass the filters; 1 when there is none."""
    return OK if search_and_print(ws, args) else FAILS


def adr_graph(ws: Workspace, args: argparse.Namespace) -> int:
    """What supersedes what and rests on what, in the DOT language."""
    print_graph(ws, args)
    return OK


def adr_due(ws: Workspace, args: argparse.Namespace) -> int:
    """Reviews and re-checks that are due by now or soon."""
    return FAILS if due_and_print(ws, args) else OK


def adr_rejudge(ws: Workspace, args: argparse.Namespace) -> int:
    """Judge every condition again: a day passed, or a fact of the catalogue is another."""
    return FAILS if rejudge_and_print(ws, args) else OK


def adr_verify(ws: Workspace, args: argparse.Namespace) -> int:
    """The head hash of every ADR, and the first broken link where there is one."""
    return OK if verify_and_print(ws, args) else FAILS


def adr_export(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions as Markdown into a folder, or the log as JSON; 1 when a hand edit stands in the way."""
    return OK if export_and_print(ws, args) else FAILS


def adr_import(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions of a folder into a case, hand edits back into their records; 1 when a file did not come in."""
    return OK if import_and_print(ws, args) else FAILS


def adr_replay(ws: Workspace, args: argparse.Namespace) -> int:
    """Score and verdicts from what was kept with a decision; 1 when something comes out otherwise."""
    return OK if replay_and_print(ws, args) else FAILS


def compared(ask: Callable[[Workspace, argparse.Namespace], Diff]) -> Callable[[Workspace, argparse.Namespace], int]:
    """A command that prints the difference that `ask` finds."""

    def run(ws: Workspace, args: argparse.Namespace) -> int:
        print_diff(ask(ws, args), json=args.json)
        return OK

    return run


COMMANDS: tuple[Command, ...] = (
    Command("adr list", adr_list, "all decisions with their status", "adr list --case nortia", (ANY_CASE, JSON)),
    Command("adr search", adr_search, "decisions by words and filters; exit code 1 when there is none", SEARCH_EXAMPLE,
            (*SEARCH_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr graph", adr_graph, "what supersedes what and rests on what, in the DOT language", GRAPH_EXAMPLE,
            (*GRAPH_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr due", adr_due, "what somebody promised to look at; exit code 1 when a day is here or past",
            DUE_EXAMPLE, (*DUE_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr rejudge", adr_rejudge, "judge every condition again, as from cron; exit code 1 when one fires",
            REJUDGE_EXAMPLE, (ANY_CASE, JSON)),
    Command("adr verify", adr_verify, "check the hash chains; prints the head of each", VERIFY_EXAMPLE,
            (*VERIFY_ARGUMENTS, JSON)),
    Command("adr export", adr_export, "MADR 4 Markdown with an index and charts into a folder, or the log as JSON",
            EXPORT_EXAMPLE, EXPORT_ARGUMENTS),
    Command("adr import", adr_import, "bring in MADR or Nygard files, hand-edited exports, or a log as JSON",
            IMPORT_EXAMPLE, (*IMPORT_ARGUMENTS, BY)),
    Command("adr replay", adr_replay, "score and verdicts again from what was kept; exit code 1 when something differs",
            REPLAY_EXAMPLE, REPLAY_ARGUMENTS),
    Command("diff adr", compared(adr_asked), "two points of a decision's history, or two decisions",
            "diff adr 2 --against 1", (*DIFF_ADR, JSON)),
    Command("diff requirements", compared(requirements_asked), "two versions, and what the change invalidates",
            "diff requirements --case nortia 1 2", (CASE, *VERSIONS, JSON)),
    Command("diff score", compared(score_asked), "two versions' scores, one as decided (ADR-0001), or that of today",
            "diff score --case nortia ADR-0001 today", (CASE, *VERSIONS, JSON)),
    Command("diff plan", compared(plan_asked), "two stored plans, by the beginning of their hash",
            "diff plan --case nortia", (CASE, *VERSIONS, JSON)),
)  # fmt: skip
