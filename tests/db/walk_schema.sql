-- The database of the walk (migration m001 alone, as commit 25ecc9b made it) with a decision and what hangs on it.
CREATE TABLE migration (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE case_file (id TEXT PRIMARY KEY, slug TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
       created_at TEXT NOT NULL, created_by TEXT NOT NULL);
CREATE TABLE requirements_version (case_id TEXT NOT NULL REFERENCES case_file(id), n INTEGER NOT NULL,
       body BLOB NOT NULL, sha256 TEXT NOT NULL, supersedes TEXT, author TEXT NOT NULL, at TEXT NOT NULL,
       PRIMARY KEY (case_id, n)) WITHOUT ROWID;
CREATE TABLE plan (sha256 TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       title TEXT NOT NULL, body BLOB NOT NULL, body_sha256 TEXT NOT NULL, author TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE run (sha256 TEXT PRIMARY KEY, id TEXT NOT NULL, case_id TEXT NOT NULL REFERENCES case_file(id),
       plan_sha256 TEXT NOT NULL, candidate TEXT NOT NULL, stage TEXT NOT NULL, start INTEGER NOT NULL,
       kind TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, findings TEXT NOT NULL,
       manifest BLOB NOT NULL, path TEXT NOT NULL, imported_at TEXT NOT NULL, imported_by TEXT NOT NULL);
CREATE INDEX run_of_case ON run (case_id, created_at);
CREATE TABLE contract (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE evidence (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       run_sha256 TEXT REFERENCES run(sha256), metric TEXT NOT NULL, statistic TEXT NOT NULL, candidate TEXT,
       load_point TEXT, kind TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, sha256 TEXT NOT NULL);
CREATE INDEX evidence_of_case ON evidence (case_id, metric);
CREATE TABLE adr (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       created_at TEXT NOT NULL, created_by TEXT NOT NULL);
CREATE TABLE adr_draft (adr_id TEXT PRIMARY KEY REFERENCES adr(id), version INTEGER NOT NULL,
       body TEXT NOT NULL, updated_at TEXT NOT NULL, updated_by TEXT NOT NULL);
CREATE TABLE adr_edit (adr_id TEXT NOT NULL REFERENCES adr(id), seq INTEGER NOT NULL, number INTEGER UNIQUE,
       body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, PRIMARY KEY (adr_id, seq)) WITHOUT ROWID;
CREATE TABLE snapshot (sha256 TEXT PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE deployment (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       since TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE verdict_history (id INTEGER PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       adr_id TEXT REFERENCES adr(id), condition TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, value REAL,
       distance REAL, sentence TEXT NOT NULL, evidence TEXT NOT NULL);
CREATE INDEX verdict_of_case ON verdict_history (case_id, adr_id, condition);
CREATE TABLE job (id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES case_file(id),
       plan_sha256 TEXT NOT NULL, out_dir TEXT NOT NULL, pid INTEGER, state TEXT NOT NULL, message TEXT NOT NULL,
       created_at TEXT NOT NULL, created_by TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TRIGGER requirements_version_no_update BEFORE UPDATE ON requirements_version  BEGIN SELECT RAISE(ABORT, 'requirements_version is append-only'); END;
CREATE TRIGGER requirements_version_no_delete BEFORE DELETE ON requirements_version  BEGIN SELECT RAISE(ABORT, 'requirements_version is append-only'); END;
CREATE TRIGGER requirements_version_no_replace BEFORE INSERT ON requirements_version WHEN EXISTS (SELECT 1 FROM requirements_version WHERE case_id = NEW.case_id AND n = NEW.n) BEGIN SELECT RAISE(ABORT, 'requirements_version is append-only'); END;
CREATE TRIGGER adr_edit_no_update BEFORE UPDATE ON adr_edit  BEGIN SELECT RAISE(ABORT, 'adr_edit is append-only'); END;
CREATE TRIGGER adr_edit_no_delete BEFORE DELETE ON adr_edit  BEGIN SELECT RAISE(ABORT, 'adr_edit is append-only'); END;
CREATE TRIGGER adr_edit_no_replace BEFORE INSERT ON adr_edit WHEN EXISTS (SELECT 1 FROM adr_edit WHERE (adr_id = NEW.adr_id AND seq = NEW.seq) OR number = NEW.number OR hash = NEW.hash) BEGIN SELECT RAISE(ABORT, 'adr_edit is append-only'); END;
CREATE TRIGGER snapshot_no_update BEFORE UPDATE ON snapshot  BEGIN SELECT RAISE(ABORT, 'snapshot is append-only'); END;
CREATE TRIGGER snapshot_no_delete BEFORE DELETE ON snapshot  BEGIN SELECT RAISE(ABORT, 'snapshot is append-only'); END;
CREATE TRIGGER snapshot_no_replace BEFORE INSERT ON snapshot WHEN EXISTS (SELECT 1 FROM snapshot WHERE sha256 = NEW.sha256) BEGIN SELECT RAISE(ABORT, 'snapshot is append-only'); END;
CREATE TRIGGER deployment_no_update BEFORE UPDATE ON deployment  BEGIN SELECT RAISE(ABORT, 'deployment is append-only'); END;
CREATE TRIGGER deployment_no_delete BEFORE DELETE ON deployment  BEGIN SELECT RAISE(ABORT, 'deployment is append-only'); END;
CREATE TRIGGER deployment_no_replace BEFORE INSERT ON deployment WHEN EXISTS (SELECT 1 FROM deployment WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'deployment is append-only'); END;
CREATE TRIGGER verdict_history_no_update BEFORE UPDATE ON verdict_history  BEGIN SELECT RAISE(ABORT, 'verdict_history is append-only'); END;
CREATE TRIGGER verdict_history_no_delete BEFORE DELETE ON verdict_history  BEGIN SELECT RAISE(ABORT, 'verdict_history is append-only'); END;
CREATE TRIGGER verdict_history_no_replace BEFORE INSERT ON verdict_history WHEN EXISTS (SELECT 1 FROM verdict_history WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'verdict_history is append-only'); END;
