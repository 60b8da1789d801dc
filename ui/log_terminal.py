"""The decision log in the terminal: search with filters, and the graph of what supersedes and rests on what."""

from __future__ import annotations

import argparse
from datetime import date

from decisions.graph import to_dot
from decisions.record import Status
from services.adr_graph import graph_around, graph_of
from services.adr_search import as_rows, find_adr, search, today
from services.workspace import Workspace
from ui.terminal import Argument, as_json, day, say, table


def _day(text: str) -> date:
    """A day, or `today`."""
    return today() if text == "today" else day(text)


SEARCH_ARGUMENTS = (
    Argument("words", {"nargs": "*", "metavar": "WORD", "help": "all of these words; a phrase as '\"shared prefix\"'"}),
    Argument("--status", {"choices": [s.value for s in Status], "help": "only in this status"}),
    Argument("--tag", {"metavar": "TAG", "help": "only with this tag"}),
    Argument("--owner", {"metavar": "NAME", "help": "only with a condition that this person looks after"}),
    Argument("--year", {"type": int, "metavar": "YEAR", "help": "only accepted in this year"}),
    Argument("--due", {"type": _day, "metavar": "DAY", "help": "to be looked at by this day, or by today"}),
    Argument("--fired", {"action": "store_true", "help": "only with a condition that fired and waits for an answer"}),
    Argument("--near", {"action": "store_true", "help": "only with a condition that is near"}),
)
SEARCH_EXAMPLE = 'adr search "shared prefix" --status accepted --json'
GRAPH_ARGUMENTS = (
    Argument("adr", {"nargs": "?", "metavar": "ADR", "help": "only what is tied to this one: its number or id"}),
)
GRAPH_EXAMPLE = "adr graph --case nortia > decisions.dot"


def search_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Print what is found; returns whether anything is."""
    status = Status(args.status) if args.status else None
    # The shell took the quotes of a phrase away.
    words = " ".join(f'"{w}"' if " " in w and '"' not in w else w for w in args.words)
    hits = search(ws, words, case=args.case, status=status, tag=args.tag, owner=args.owner,
                  fired=args.fired, near=args.near, due=args.due, year=args.year)  # fmt: skip
    rows = as_rows(hits, {c.id: c.slug for c in ws.store.cases.all()})
    if args.json:
        as_json(rows)
    elif rows:
        shown = [(h.adr.name, r["status"], r["case"], r["headline"], ", ".join(h.adr.tags), ", ".join(h.fields))
                 for h, r in zip(hits, rows, strict=True)]  # fmt: skip
        table(f"{len(rows)} found", ("adr", "status", "case", "headline", "tags", "found in"), shown)
    else:
        say("No decision has all of these words and passes the filter.")
    return bool(rows)


def print_graph(ws: Workspace, args: argparse.Namespace) -> None:
    """Print the graph as DOT, or as JSON."""
    if args.adr:
        adr = find_adr(ws, args.adr)
        graph, focus = graph_around(ws, adr), adr.id
    else:
        case = ws.store.cases.get(args.case).id if args.case else None
        graph, focus = graph_of(ws, ws.store.adrs.all(case=case)), ""
    if args.json:
        as_json({"nodes": [n._asdict() for n in graph.nodes], "edges": [e._asdict() for e in graph.edges]})
    else:
        print(to_dot(graph, focus), end="")
