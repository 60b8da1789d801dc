"""Where a test's database lies, and a foreign client's way in: plain SQL with none of our settings."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg

from db.tables import Base
from tests.postgres import Server

REFUSED = (sqlite3.IntegrityError, psycopg.IntegrityError)


class Place:
    """A database by its URL. Statements may hold ? for values; each stands on its own."""

    url: str
    name: str

    def run(self, *statements: str | tuple[str, tuple[Any, ...]], before: str = "") -> list[tuple[Any, ...]]:
        """Run statements as a foreign client and return the rows of the last; `before` sets that client up."""
        raise NotImplementedError

    def columns(self) -> dict[str, set[str]]:
        """Column names by table."""
        raise NotImplementedError

    def lift(self, table: str) -> None:
        """Take away what makes a table append-only, as whoever owns the file or the database can."""
        raise NotImplementedError

    def rewrites(self, table: str, column: str, key: str) -> tuple[str, ...]:
        """Statements that would change, remove or replace the rows of a table."""
        upsert = f"ON CONFLICT ({key}) DO UPDATE SET {column} = 'forged'"
        return (
            f"UPDATE {table} SET {column} = 'forged'",
            f"DELETE FROM {table}",
            f"INSERT INTO {table} SELECT * FROM {table} WHERE true {upsert}",
        )


class OnSQLite(Place):
    """A file."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def run(self, *statements: str | tuple[str, tuple[Any, ...]], before: str = "") -> list[tuple[Any, ...]]:
        raw = sqlite3.connect(self.path, isolation_level=None)
        try:
            rows: list[tuple[Any, ...]] = []
            for statement in (*([before] if before else []), *statements):
                text, values = statement if isinstance(statement, tuple) else (statement, ())
                rows = raw.execute(text, values).fetchall()
            return rows
        finally:
            raw.close()

    def columns(self) -> dict[str, set[str]]:
        tables = self.run("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {t: {r[1] for r in self.run(f"PRAGMA table_info({t})")} for (t,) in tables}

    def rewrites(self, table: str, column: str, key: str) -> tuple[str, ...]:
        return (
            *super().rewrites(table, column, key),
            f"UPDATE OR REPLACE {table} SET {column} = 'forged'",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
            f"REPLACE INTO {table} SELECT * FROM {table}",
        )

    def lift(self, table: str) -> None:
        self.run(*(f"DROP TRIGGER {table}_{what}" for what in ("no_update", "no_delete", "no_replace")))


class OnPostgreSQL(Place):
    """A database of a server."""

    name = "postgresql"

    def __init__(self, server: Server, database: str) -> None:
        self.server, self.database = server, database
        self.url = server.url(database)

    def run(self, *statements: str | tuple[str, tuple[Any, ...]], before: str = "") -> list[tuple[Any, ...]]:
        with self.server.connect(self.database) as raw:
            rows: list[tuple[Any, ...]] = []
            for statement in (*([before] if before else []), *statements):
                text, values = statement if isinstance(statement, tuple) else (statement, None)
                found = raw.execute(text.replace("?", "%s") if values else text, values)  # type: ignore[call-overload]
                rows = found.fetchall() if found.description else []
            return rows

    def columns(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        for table, column in self.run(query):
            found.setdefault(table, set()).add(column)
        return found

    def rewrites(self, table: str, column: str, key: str) -> tuple[str, ...]:
        match = " AND ".join(f"t.{k} = s.{k}" for k in key.split(", "))
        return (
            *super().rewrites(table, column, key),
            f"TRUNCATE {table} CASCADE",
            f"MERGE INTO {table} t USING {table} s ON {match} WHEN MATCHED THEN DELETE",
        )

    def lift(self, table: str) -> None:
        self.run(f"ALTER TABLE {table} DISABLE TRIGGER USER")

    def put_back(self) -> None:
        """Leave the schema and the Nortia case, whatever a test did to the rows and their triggers."""
        tables = [t.name for t in Base.metadata.sorted_tables]
        lifted = self.run("SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgenabled = 'D'")
        with self.server.connect(self.database) as raw:
            others = "pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            raw.execute(f"SELECT {others} AND pid <> pg_backend_pid()")
            raw.execute("SET session_replication_role = replica")  # no trigger of ours or of a foreign key
            raw.execute("; ".join([
                *(f"DELETE FROM {t}" for t in tables if t != "case_file"),
                "DELETE FROM case_file WHERE id <> 'nortia'",
                "DELETE FROM migration WHERE name LIKE 'm900%'",
                *(f"ALTER TABLE {t} ENABLE TRIGGER USER" for (t,) in lifted),
                "SELECT setval(seqrelid, 1, false) FROM pg_sequence",
            ]))  # fmt: skip
