"""Eight people save at once, and one of them is killed in the middle: is anything lost or doubled?

    python -m perf.writers                       a minute on a SQLite file of its own
    python -m perf.writers --url URL             the same in an empty PostgreSQL database
    python -m perf.writers --seconds 5 --writers 4 --json

Every writer is a process. It appends comments to one record that all share, and takes drafts of its own through
proposal to acceptance, with snapshots. What the store said is stored it writes down on a pipe; what it had only begun
when it was killed may be there or not, but whole. Exit code: 0 when nothing was lost or doubled, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.machine import cpu_model
from db.cases import Case
from db.engines import shown
from db.store import Store, open_store
from decisions.edits import Commented
from decisions.record import Adr, AdrText, draft
from planner.errors import ConflictError

WRITERS, SECONDS = 8, 60.0
SHARED = "01JSHARED00000000000000000"
NOW = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
ROOT = Path(__file__).resolve().parent.parent
COMMENTS_TO_A_DECISION = 4


def save(url: str, who: str, seconds: float) -> None:
    """One writer: save until the time is over, and print each thing once the store has said that it is stored.

    Each takes at least two decisions, however slow the machine.
    """
    store, until, n = open_store(url), time.monotonic() + seconds, 0
    while time.monotonic() < until or n < 2 * COMMENTS_TO_A_DECISION:
        n += 1
        try:
            if n % COMMENTS_TO_A_DECISION:
                store.adrs.append(SHARED, Commented(at=NOW, author=who, text=f"{who} {n}"))
                _told(f"comment {who} {n}")
            else:
                _told(f"accepted {_decide(store, who, n)}")
        except ConflictError as e:  # others held the lock for ten seconds: nothing was stored, which is no loss
            _told(f"refused {e}")
    store.close()


def _decide(store: Store, who: str, n: int) -> str:
    id = f"01J{who.replace('-', '').upper()}{n:018d}"
    begun = store.adrs.add_draft(_adr(id, f"Decision {n} of {who}"), at=NOW, by=who)
    saved = store.adrs.save_draft(_adr(id, f"Decision {n} of {who}, second try"), version=begun.version, at=NOW, by=who)
    store.adrs.propose(id, version=saved.version, at=NOW, author=who)
    store.adrs.accept(id, at=NOW, author=who, snapshots={"plan": f"plan of {who} {n}".encode()})
    return id


def _adr(id: str, title: str) -> Adr:
    return draft(id, "log", AdrText(title=title))


def _told(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # one write is one line, whenever the process is killed


def report(url: str | None, writers: int, seconds: float, seed: int = 1) -> dict[str, Any]:
    """Run the writers, kill one of them at a random moment, and compare what they were told with what is stored."""
    with TemporaryDirectory() as scratch:
        where = url or f"sqlite:///{scratch}/flipline.db"
        store = open_store(where)
        store.cases.add(Case(id="log", slug="log", title="Eight writers", created_at=NOW, created_by="Sato"))
        shared = store.adrs.add_draft(_adr(SHARED, "All write here"), at=NOW, by="Sato")
        store.adrs.propose(SHARED, version=shared.version, at=NOW, author="Sato")
        told, failed, killed = _run(where, writers, seconds, random.Random(seed))
        found = _compare(store, told)
        store.close()
    wrong = [*failed, *found.pop("wrong")]
    return {
        "machine": cpu_model(), "database": shown(where).split(":")[0], "writers": writers, "seconds": seconds,
        "killed": killed, **found, "wrong": wrong, "reached": not wrong,
    }  # fmt: skip


def _run(where: str, writers: int, seconds: float, rng: random.Random) -> tuple[list[str], list[str], str]:
    names = [f"w-{n}" for n in range(writers)]
    # the URL goes through the environment: a command line is seen by everybody on the machine
    environment = {**os.environ, "FLIPLINE_DATABASE_URL": where, "PYTHONPATH": str(ROOT)}
    running = {
        who: subprocess.Popen(
            [sys.executable, "-m", "perf.writers", "--as", who, "--seconds", str(seconds)],
            env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for who in names
    }  # fmt: skip
    victim = rng.choice(names)
    pipe = running[victim].stdout
    assert pipe is not None
    told = [pipe.readline()]  # it has begun to save
    time.sleep(rng.uniform(0.2, 0.8) * seconds)
    running[victim].send_signal(signal.SIGKILL)
    failed = []
    for who, process in running.items():
        out, err = process.communicate(timeout=seconds + 120)
        told += out.splitlines(keepends=True)
        if who != victim and process.returncode != 0:
            failed.append(f"{who} ended with {process.returncode}: {err.strip().splitlines()[-1:]}")
    return [line.strip() for line in told if line.endswith("\n")], failed, victim


def _compare(store: Store, told: list[str]) -> dict[str, Any]:
    comments = Counter(c.text for c in store.adrs.get(SHARED).comments)
    accepted = {a.id: a for a in store.adrs.all() if a.number}
    said = {
        kind: [t.partition(" ")[2] for t in told if t.startswith(kind)] for kind in ("comment", "accepted", "refused")
    }
    wrong = [f"lost: {text}" for text in said["comment"] if text not in comments]
    wrong += [f"doubled: {text}" for text, n in comments.items() if n > 1]
    wrong += [f"lost: {id}" for id in said["accepted"] if id not in accepted]
    # the one that was killed had one thing in hand at most
    surplus = sum(comments.values()) - len(said["comment"]) + len(accepted) - len(said["accepted"])
    if surplus not in (0, 1):
        wrong.append(f"{surplus} more are stored than anybody was told")
    numbers = sorted(a.number for a in accepted.values() if a.number)
    if numbers != list(range(1, len(numbers) + 1)):
        wrong.append(f"numbers are not 1 to {len(numbers)}: {numbers}")
    for a in accepted.values():
        for ref in a.snapshots:
            store.snapshots.get(ref.sha256)
    wrong += [f"broken: {b}" for b in store.adrs.verify(store.adrs.heads(), nothing_after=True)]
    return {
        "comments": sum(comments.values()), "accepted": len(accepted), "refused": len(said["refused"]),
        "stored_but_not_told": surplus, "wrong": wrong,
    }  # fmt: skip


def in_words(found: dict[str, Any]) -> str:
    """The report as lines."""
    return "\n".join([
        f"{found['machine']}, {found['database']}: {found['writers']} writers for {found['seconds']:g} s, "
        f"{found['killed']} killed",
        f"  {found['comments']:,} comments on one record, {found['accepted']:,} ADRs accepted, "
        f"{found['refused']:,} refused after waiting, {found['stored_but_not_told']} stored of what was cut short",
        *(f"  {w}" for w in found["wrong"][:20]),
        "nothing lost, nothing doubled, every chain whole" if found["reached"] else "something is wrong",
    ])  # fmt: skip


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m perf.writers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--url", help="an empty PostgreSQL database (default: a SQLite file)")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--writers", type=int, default=WRITERS)
    parser.add_argument("--as", dest="who", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.who:
        save(os.environ["FLIPLINE_DATABASE_URL"], args.who, args.seconds)
        return 0
    found = report(args.url, args.writers, args.seconds)
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
