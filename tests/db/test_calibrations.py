"""Points taken out of the calibration and back in: the last decision stands, and none is forgotten."""

from datetime import timedelta

import pytest

from db.calibrations import CalibrationChoice
from planner.errors import InputError
from tests.db.made import NOW, contracts, figure
from tests.db.places import REFUSED

ID = "b1/single/1/user_tok_s/p50"


def choice(used, hours=0, evidence=ID):
    return CalibrationChoice(
        evidence=evidence, used=used, reason="the fan had failed", author="Lee", at=NOW + timedelta(hours=hours)
    )


@pytest.fixture
def kept(store):
    store.evidence.add("nortia", [figure(ID)], contracts())
    return store


def test_the_last_decision_about_a_point_stands(kept):
    out, back, again = choice(False), choice(True, 1), choice(False, 2)
    kept.calibrations.add(out)
    assert kept.calibrations.excluded() == {ID: out}
    kept.calibrations.add(back)
    assert kept.calibrations.excluded() == {}
    kept.calibrations.add(again)
    assert kept.calibrations.excluded() == {ID: again}
    assert kept.calibrations.all() == (out, back, again)


def test_only_a_stored_figure_can_be_taken_out(kept):
    with pytest.raises(InputError, match="not stored"):
        kept.calibrations.add(choice(False, evidence="nothing"))


def test_a_decision_cannot_be_rewritten(kept, place):
    kept.calibrations.add(choice(False))
    for statement in place.rewrites("calibration_choice", "reason", "id"):
        with pytest.raises(REFUSED, match="calibration_choice is append-only"):
            place.run(statement)
    assert kept.calibrations.all() == (choice(False),)
