"""For cron: judge again what a day or a changed fact may have moved, and list what somebody promised to look at."""

from __future__ import annotations

import argparse

from services.due import SOON_DAYS, due
from services.rejudging import judge_again
from services.webhook import failing, send_waiting
from services.workspace import Workspace
from ui.terminal import Argument, as_json, say, table

DUE_ARGUMENTS = (
    Argument("--within", {"type": int, "default": SOON_DAYS, "metavar": "DAYS",
                          "help": f"also what is due in so many days (default: {SOON_DAYS})"}),
)  # fmt: skip
DUE_EXAMPLE = "adr due --within 30"
REJUDGE_EXAMPLE = "adr rejudge"


def rejudge_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Judge one case or all and print what changed; returns whether a flip condition fired."""
    cases = [ws.store.cases.get(args.case)] if args.case else list(ws.store.cases.all())
    names = {a.id: a.name for a in ws.store.adrs.all()}
    rows, fired = [], False
    for case in cases:
        changed = judge_again(ws, case.id)
        fired = fired or bool(changed.fired)
        rows += [(case.slug, names.get(j.adr or "", "plan"), j) for j in changed.rows]
    send_waiting(ws)
    if args.json:
        as_json([{"case": slug, "of": of, **j.model_dump(mode="json", exclude={"adr"})} for slug, of, j in rows])
        return fired
    if rows:
        shown = [(slug, of, j.condition, j.state, j.cause.says) for slug, of, j in rows]
        table("Changed", ("case", "of", "condition", "state", "because"), shown)
    else:
        say("Nothing changed.")
    if told := failing(ws):
        say(f"The webhook at {told.host} has not taken a message since {told.since:%Y-%m-%d %H:%M} UTC: {told.why}.")
    return fired


def due_and_print(ws: Workspace, args: argparse.Namespace) -> bool:
    """Print what is due by now or soon; returns whether a day is here or past."""
    found = due(ws, args.case, args.within)
    if args.json:
        as_json([
            {"on": d.on, "days_left": d.days_left, "what": d.what, "adr": d.adr.id, "name": d.adr.name,
             "condition": d.condition or None, "who": d.who, "words": d.words}
            for d in found
        ])  # fmt: skip
    elif found:
        rows = [(str(d.on), d.days_left, d.what, d.adr.name, d.condition, d.who) for d in found]
        table("Due", ("on", "days left", "what", "decision", "condition", "who"), rows)
    else:
        say(f"Nothing is due within {args.within} days.")
    return any(d.overdue for d in found)
