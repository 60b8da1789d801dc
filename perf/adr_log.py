"""Is a long decision log listed, searched, verified and exported in time? Made-up ADRs, the same every time.

    python -m perf.adr_log                  1,000 ADRs and a chain of 10,000 edits, in a SQLite file of its own
    python -m perf.adr_log --url URL        the same in an empty PostgreSQL database
    python -m perf.adr_log --json           the same as JSON
    python -m perf.adr_log --adrs 100 --edits 1000

Exit code: 0 when every limit was reached, 1 when one was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.machine import cpu_model
from db.cases import Case
from db.engines import shown
from db.store import Store, open_store
from db.tables import AdrRow, EditRow
from decisions import chain
from decisions.edits import Accepted, Commented, Edit, edit_to_json
from decisions.record import Adr, AdrText, Option, People, Status, draft
from decisions.view import propose
from services.adr_search import Wanted, found_in
from services.exporting import export_all
from services.workspace import open_workspace

ADRS, EDITS, REPEATS = 1_000, 10_000, 5
NOW = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
# What is timed -> the most seconds it may take. The first list of a process reads and replays every record, the first
# search reads every text; later ones only what changed.
LIMITS_S = {
    "first_list": 0.2, "list": 0.2, "filter": 0.2, "first_search": 0.2, "search": 0.2, "read_one": 0.2,
    "verify": 1.0, "export": 10.0,
}  # fmt: skip
_WORDS = ("latency", "throughput", "licence", "batching", "quantisation", "prefix cache", "scheduler", "memory")


def text_of(n: int) -> AdrText:
    """A text of about 3 kB, as a team would write it."""
    sentence = f"Decision {n} weighs {_WORDS[n % 8]} against {_WORDS[n // 8 % 8]} for the internal assistant. "
    options = tuple(
        Option(title=name, candidate=name, pros=(sentence,), cons=(sentence,)) for name in ("vLLM", "Ollama", "SGLang")
    )
    return AdrText(
        title=f"{_WORDS[n % 8].capitalize()} comes first ({n})", headline=sentence, context=sentence * 10,
        chosen="vLLM", options=options, outcome=sentence, drivers=(sentence,),
        people=People(decided=("Sato",)), tags=(_WORDS[n % 8],),
        evidence_absent="Nothing was measured yet.",
    )  # fmt: skip


def fill_long(store: Store, edits: int) -> None:
    """One record of `edits` edits.

    The rows are written as the store writes them, at once: the store's own way takes a transaction for each edit.
    """
    with store.transaction(), store._database.write() as session:
        comments = [Commented(at=NOW, author="Lee", text=f"Comment {n} on the long record.") for n in range(edits - 2)]
        _write(session, draft(f"01JLONG{0:019d}", "log", text_of(0)), comments)


def fill(store: Store, adrs: int) -> None:
    """A case with `adrs` accepted records of four edits each."""
    store.cases.add(Case(id="log", slug="log", title="A long log", created_at=NOW, created_by="Sato"))
    with store.transaction(), store._database.write() as session:
        for n in range(adrs):
            adr = draft(f"01JADR{n:020d}", "log", text_of(n))
            more = (
                Accepted(at=NOW + timedelta(days=n), author="Sato", number=n + 1),
                Commented(at=NOW + timedelta(days=n, hours=1), author="Lee", text="Agreed."),
            )
            _write(session, adr, more)


def _write(session: Any, adr: Adr, more: Iterable[Edit]) -> None:
    session.add(AdrRow(id=adr.id, case_id=adr.case, created_at=NOW.isoformat(), created_by="Sato"))
    session.flush()
    last = None
    edits: list[Edit] = [*propose(adr, at=NOW, author="Tanaka"), *more]
    for edit in edits:
        last = chain.link(adr.id, edit_to_json(edit), last)
        number = edit.number if edit.kind == "accepted" else None
        session.add(EditRow(adr_id=adr.id, seq=last.seq, number=number, body=last.body, prev=last.prev, hash=last.hash))
    session.flush()
    session.expunge_all()


def report(url: str | None, adrs: int, edits: int) -> dict[str, Any]:
    """Every figure in seconds: medians, but for what happens once in a process."""
    with TemporaryDirectory() as scratch:
        where = url or f"sqlite:///{scratch}/flipline.db"
        store = open_store(where)
        fill(store, adrs)
        store.close()
        ws = open_workspace(Path(scratch), where)
        store = ws.store
        listed = Wanted(case="log", status=Status.ACCEPTED, tag=_WORDS[0], due=NOW.date())
        asked = Wanted(words='latency "prefix cache"')
        seconds = {
            "first_list": timed(store.adrs.all, once=True),
            "list": timed(store.adrs.all),
            "filter": timed(lambda: found_in(store.adrs.all(), listed)),
            "first_search": timed(lambda: found_in(store.adrs.all(), asked), once=True),
            "search": timed(lambda: found_in(store.adrs.all(), asked)),
            "read_one": timed(lambda: store.adrs.get(f"01JADR{adrs // 2:020d}")),
            "export": timed(lambda: export_all(ws, Path(scratch) / "adr"), once=True),
        }
        fill_long(store, edits)
        seconds["verify"] = timed(lambda: whole(store))
        written = len(list((Path(scratch) / "adr").glob("[0-9]*.md")))
        store.close()
    kept = all(seconds[name] < most for name, most in LIMITS_S.items())
    return {
        "machine": cpu_model(), "database": shown(where).split(":")[0], "adrs": adrs, "edits": edits,
        "exported": written, "most_seconds": LIMITS_S, "seconds": seconds, "reached": kept and written == adrs,
    }  # fmt: skip


def whole(store: Store) -> None:
    """Verify all that the database holds."""
    broken = store.adrs.verify()
    assert not broken, broken[0]


def timed(action: Callable[[], Any], once: bool = False) -> float:
    """Seconds of an action: of the first call, or the median of several."""
    took = []
    for _ in range(1 if once else REPEATS):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return median(took)


def in_words(found: dict[str, Any]) -> str:
    """The report as lines."""
    lines = [
        f"{found['machine']}, {found['database']}: {found['adrs']:,} ADRs and a chain of {found['edits']:,} edits",
        *(f"  {name:14s} {took:7.3f} s of {LIMITS_S[name]:g} s" for name, took in found["seconds"].items()),
        f"  {found['exported']:,} files exported",
    ]
    return "\n".join([*lines, "every limit reached" if found["reached"] else "a limit was missed"])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m perf.adr_log", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--url", help="an empty PostgreSQL database (default: a SQLite file)")
    parser.add_argument("--adrs", type=int, default=ADRS)
    parser.add_argument("--edits", type=int, default=EDITS)
    args = parser.parse_args()
    found = report(args.url, args.adrs, args.edits)
    print(json.dumps(found, indent=2) if args.json else in_words(found))
    return 0 if found["reached"] else 1


if __name__ == "__main__":
    sys.exit(main())
