"""The schema as a list of small functions; which ones ran is recorded in the table `migration`.

A migration that was released is never changed: the next one changes what it made. They are written in SQLite's words,
which db/dialects.py turns into PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, inspect, text

from db.dialects import SQLITE, append_only, counted, ddl
from planner.errors import InputError, SchemaTooNew

Migration = Callable[[Connection], None]
MIGRATIONS: list[Migration] = []


def migration(function: Migration) -> Migration:
    """Register a step; steps run once each, in the order in which they stand here."""
    MIGRATIONS.append(function)
    return function


def migrate(connection: Connection) -> list[str]:
    """Run what is pending and return its names. The caller holds the write lock and commits.

    Raises SchemaTooNew when the database was written by a newer Flipline, InputError for a file of another program.
    """
    tables = inspect(connection).get_table_names()
    if "migration" not in tables:
        if tables and connection.dialect.name == SQLITE.name:  # a PostgreSQL may be shared, a file is one program's
            raise InputError(f"the file belongs to another program: it holds the table {tables[0]!r}.",
                             where="database", fix="Choose another file.")  # fmt: skip
        ddl(connection, "CREATE TABLE migration (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    applied = {row[0] for row in connection.execute(text("SELECT name FROM migration"))}
    unknown = sorted(applied - {m.__name__ for m in MIGRATIONS})
    if unknown:
        raise SchemaTooNew(f"the database knows {unknown[-1]}, this Flipline does not.", where="database",
                           fix="Update Flipline, or open another database.")  # fmt: skip
    pending = [m for m in MIGRATIONS if m.__name__ not in applied]
    for step in pending:
        step(connection)
        connection.execute(
            text("INSERT INTO migration (name, applied_at) VALUES (:name, :at)"),
            {"name": step.__name__, "at": datetime.now(UTC).isoformat()},
        )
    return [m.__name__ for m in pending]


_FIRST_TABLES = (
    # `case` is a reserved word of SQL
    """CREATE TABLE case_file (id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
       created_at TEXT NOT NULL, created_by TEXT NOT NULL)""",
    """CREATE TABLE requirements_version (case_id TEXT NOT NULL REFERENCES case_file(id), n INTEGER NOT NULL,
       body BLOB NOT NULL, sha256 TEXT NOT NULL, supersedes TEXT, author TEXT NOT NULL, at TEXT NOT NULL,
       PRIMARY KEY (case_id, n)) WITHOUT ROWID""",
    """CREATE TABLE plan (sha256 TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       title TEXT NOT NULL, body BLOB NOT NULL, body_sha256 TEXT NOT NULL, author TEXT NOT NULL, at TEXT NOT NULL)""",
    """CREATE TABLE run (sha256 TEXT PRIMARY KEY, id TEXT NOT NULL, case_id TEXT NOT NULL REFERENCES case_file(id),
       plan_sha256 TEXT NOT NULL, candidate TEXT NOT NULL, stage TEXT NOT NULL, start INTEGER NOT NULL,
       kind TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, findings TEXT NOT NULL,
       manifest BLOB NOT NULL, path TEXT NOT NULL, imported_at TEXT NOT NULL, imported_by TEXT NOT NULL)""",
    "CREATE INDEX run_of_case ON run (case_id, created_at)",
    "CREATE TABLE contract (hash TEXT PRIMARY KEY, body TEXT NOT NULL)",
    """CREATE TABLE evidence (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       run_sha256 TEXT REFERENCES run(sha256), metric TEXT NOT NULL, statistic TEXT NOT NULL, candidate TEXT,
       load_point TEXT, kind TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, sha256 TEXT NOT NULL)""",
    "CREATE INDEX evidence_of_case ON evidence (case_id, metric)",
    """CREATE TABLE adr (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       created_at TEXT NOT NULL, created_by TEXT NOT NULL)""",
    """CREATE TABLE adr_draft (adr_id TEXT PRIMARY KEY REFERENCES adr(id), version INTEGER NOT NULL,
       body TEXT NOT NULL, updated_at TEXT NOT NULL, updated_by TEXT NOT NULL)""",
    """CREATE TABLE adr_edit (adr_id TEXT NOT NULL REFERENCES adr(id), seq INTEGER NOT NULL, number INTEGER UNIQUE,
       body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, PRIMARY KEY (adr_id, seq)) WITHOUT ROWID""",
    "CREATE TABLE snapshot (sha256 TEXT PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE deployment (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       since TEXT NOT NULL, body TEXT NOT NULL)""",
    """CREATE TABLE verdict_history (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       adr_id TEXT REFERENCES adr(id), condition TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, value REAL,
       distance REAL, sentence TEXT NOT NULL, evidence TEXT NOT NULL)""",
    "CREATE INDEX verdict_of_case ON verdict_history (case_id, adr_id, condition)",
    """CREATE TABLE job (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       plan_sha256 TEXT NOT NULL, out_dir TEXT NOT NULL, pid INTEGER, state TEXT NOT NULL, message TEXT NOT NULL,
       created_at TEXT NOT NULL, created_by TEXT NOT NULL, updated_at TEXT NOT NULL)""",
)
# Table -> what makes a row unique, each as a condition between the row to come (NEW) and a stored one.
APPEND_ONLY = {
    "requirements_version": "case_id = NEW.case_id AND n = NEW.n",
    "adr_edit": "(adr_id = NEW.adr_id AND seq = NEW.seq) OR number = NEW.number OR hash = NEW.hash",
    "snapshot": "sha256 = NEW.sha256",
    "deployment": "id = NEW.id",
    "verdict_history": "id = NEW.id",
}


@migration
def m001_the_first_tables(connection: Connection) -> None:
    """All aggregates; history tables that only grow."""
    for statement in _FIRST_TABLES:
        ddl(connection, statement)
    for table, same_row in APPEND_ONLY.items():
        append_only(connection, table, same_row)


@migration
def m002_calibration_choices(connection: Connection) -> None:
    """Which figures a team takes out of its calibration, and why."""
    ddl(connection,
        """CREATE TABLE calibration_choice (id INTEGER PRIMARY KEY, evidence_id TEXT NOT NULL REFERENCES evidence(id),
           used FLAG NOT NULL, reason TEXT NOT NULL, author TEXT NOT NULL, at TEXT NOT NULL)""")  # fmt: skip
    append_only(connection, "calibration_choice", "id = NEW.id")


@migration
def m003_evidence_revisions_and_recounts(connection: Connection) -> None:
    """Whether a case's figures changed, told without reading them; and thresholds that were counted after import."""
    ddl(connection,
        """CREATE TABLE evidence_revision (case_id TEXT PRIMARY KEY REFERENCES case_file(id), n INTEGER NOT NULL)
           WITHOUT ROWID""")  # fmt: skip
    ddl(connection, "INSERT INTO evidence_revision SELECT case_id, count(*) FROM evidence GROUP BY case_id")
    counted(connection, "evidence", key="case_id", counter="evidence_revision")
    ddl(connection,
        """CREATE TABLE recount (run_sha256 TEXT NOT NULL REFERENCES run(sha256), question TEXT NOT NULL,
           body TEXT NOT NULL, PRIMARY KEY (run_sha256, question)) WITHOUT ROWID""")  # fmt: skip


@migration
def m004_why_a_verdict_changed(connection: Connection) -> None:
    """What changed a condition's state (a run, a fact, a date), and whether its re-check date had passed."""
    ddl(connection, "ALTER TABLE verdict_history ADD COLUMN cause TEXT NOT NULL DEFAULT ''")
    ddl(connection, "ALTER TABLE verdict_history ADD COLUMN overdue INTEGER NOT NULL DEFAULT 0")


@migration
def m005_what_figures_there_are_is_read_from_an_index(connection: Connection) -> None:
    """Which metrics, kinds, candidates and load points a case has, without walking over its figures."""
    ddl(connection, "DROP INDEX evidence_of_case")
    ddl(connection, "CREATE INDEX evidence_of_case ON evidence (case_id, metric, kind, candidate, load_point)")
