"""History cannot be rewritten through SQL, by a client of ours or by a foreign one with other settings."""

from datetime import timedelta

import pytest

from db.verdicts import Judged
from decisions.record import Deployment
from planner.errors import ConflictError
from tests.db.made import NOW
from tests.db.places import REFUSED
from tests.db.test_cases import requirements
from tests.decisions.made import nortia

ID = nortia().id


@pytest.fixture
def full(store):
    store.adrs.add_draft(nortia(), at=NOW, by="Sato")
    store.adrs.propose(ID, version=1, at=NOW, author="Sato")
    store.adrs.accept(ID, at=NOW, author="Sato", snapshots={"plan": b"plan"})
    store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato")
    store.deployments.add("nortia", Deployment(candidate="vllm-b", since=NOW, engine="vllm", by="Lee"))
    store.verdicts.record("nortia", [Judged(condition="few-users", adr=ID, at=NOW, state="armed", sentence="far")])
    return store


# table -> a column with text, what makes a row unique
TABLES = {
    "adr_edit": ("body", "adr_id, seq"), "snapshot": ("kind", "sha256"), "deployment": ("body", "id"),
    "requirements_version": ("author", "case_id, n"), "verdict_history": ("state", "id"),
}  # fmt: skip


def dump(place, table):
    return place.run(f"SELECT * FROM {table} ORDER BY 1, 2")


@pytest.mark.parametrize("table", TABLES)
def test_update_delete_and_replace_are_refused(full, place, table):
    before = dump(place, table)
    assert before
    settings = {"sqlite": ("PRAGMA recursive_triggers = ON", "PRAGMA recursive_triggers = OFF"), "postgresql": ("",)}
    for setting in settings[place.name]:
        for statement in place.rewrites(table, *TABLES[table]):
            with pytest.raises(REFUSED, match=f"{table} is append-only"):
                place.run(statement, before=setting)
            assert dump(place, table) == before


@pytest.mark.parametrize(
    "values",
    [
        f"'{ID}', 3, NULL, 'forged', 'p', 'h'",  # the same place
        f"'{ID}', 9, 1, 'forged', 'p', 'h'",  # the same number: would push the accepted edit out
        f"'{ID}', 9, NULL, 'forged', 'p', (SELECT hash FROM adr_edit WHERE seq = 1)",  # the same hash
    ],
)
def test_a_replacement_by_any_unique_column_is_refused(full, place, values):
    before = dump(place, "adr_edit")
    word = "INSERT OR REPLACE" if place.name == "sqlite" else "INSERT"
    with pytest.raises(REFUSED, match=r"adr_edit is append-only|duplicate key"):
        place.run(f"{word} INTO adr_edit VALUES ({values})")
    assert dump(place, "adr_edit") == before


def test_through_our_own_door_it_is_a_conflict(full):
    with pytest.raises(ConflictError, match="append-only"), full._database.write() as session:
        session.connection().exec_driver_sql("DELETE FROM adr_edit")
    assert len(full.adrs.edits(ID)) == 3


def test_only_what_changed_is_written_to_the_verdict_history(full):
    later = NOW + timedelta(days=1)
    same = Judged(condition="few-users", adr=ID, at=later, state="armed", sentence="far, in other words")
    fired = same.model_copy(update={"state": "fired", "value": 5.0, "distance": 0.0, "evidence": ("e",)})
    assert full.verdicts.record("nortia", [same]) == ()
    assert full.verdicts.record("nortia", [fired, fired]) == (fired,)
    assert [j.state for j in full.verdicts.history("nortia", adr=ID)] == ["armed", "fired"]
    assert full.verdicts.latest("nortia")[ID, "few-users"] == fired
