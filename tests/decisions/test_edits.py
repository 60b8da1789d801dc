"""An ADR's life: what is allowed when, and that the view is nothing but its edits."""

from datetime import date, timedelta
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.edits import (
    Accepted,
    Amended,
    Commented,
    ConditionAdded,
    ConditionFired,
    ConditionRetired,
    Created,
    Deprecated,
    Edit,
    EvidenceAttached,
    FireConfirmed,
    Proposed,
    Rejected,
    ReviewMoved,
    Superseded,
    edit_from_json,
    edit_to_json,
)
from decisions.flip_condition import FlipCondition
from decisions.flips import from_template
from decisions.record import EvidenceRef, Fire, Status
from decisions.view import apply, current, propose
from planner.conditions import Kind
from planner.errors import InputError, NotAllowed, UnknownName
from tests.decisions.made import NOW, accepted_edits, nortia, text

BY = {"at": NOW, "author": "Lee"}
FIRE = Fire(condition="few-users", at=NOW, sentence="peak_in_flight max <= 5: holds at 5", value=5, distance=0)


def test_a_proposal_that_is_accepted_carries_its_number_and_who_decided():
    adr = current(accepted_edits())
    assert (adr.status, adr.number, adr.accepted_by) == (Status.ACCEPTED, 7, "Sato")
    assert adr.name == "ADR-0007"
    assert [s.sha256 for s in adr.snapshots] == ["a" * 64]
    assert adr.text == text().model_copy(update={"snapshots": adr.snapshots})


def test_accepting_twice_names_who_was_first():
    edits = accepted_edits()
    with pytest.raises(
        NotAllowed, match=r"ADR-0007: cannot be accepted: it is accepted already, by Sato on 2026-09-02"
    ):
        apply(current(edits), Accepted(**BY, number=8))


def test_an_accepted_text_is_not_edited_any_more():
    with pytest.raises(NotAllowed, match="write a draft that supersedes it"):
        apply(current(accepted_edits()), Amended(**BY, text=text()))


def test_a_proposal_is_amended_as_a_whole():
    shorter = text().model_copy(update={"title": "vLLM first"})
    assert current([*propose(nortia(), **BY), Amended(**BY, text=shorter)]).title == "vLLM first"


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (Rejected(**BY), "cannot be rejected: it is accepted already"),
        (Proposed(**BY), "cannot be proposed: it is accepted already"),
        (Deprecated(**BY), "cannot be deprecated without a reason"),
        (ConditionRetired(**BY, condition="few-users"), "without a reason"),
        (ConditionRetired(**BY, condition="no-such", reason="x"), "unknown flip condition 'no-such'"),
        (ConditionAdded(**BY, condition=from_template("few-users")), "'few-users' exists already"),
        (FireConfirmed(**BY, condition="few-users", answer="reopen"), "has not fired"),
        (Created(**BY, adr="01J0", case="nortia", text=text()), "cannot be created again"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(edit, sentence):
    with pytest.raises((NotAllowed, UnknownName), match=sentence):
        apply(current(accepted_edits()), edit)


def test_nothing_happens_to_what_was_never_created():
    with pytest.raises(NotAllowed, match="never created"):
        current([Commented(**BY, text="hello")])
    with pytest.raises(NotAllowed, match="without edits"):
        current([])


def test_a_draft_is_proposed_before_it_is_accepted():
    with pytest.raises(NotAllowed, match=r"cannot be accepted: it is draft\. Propose it first"):
        apply(nortia(), Accepted(**BY, number=1))
    with pytest.raises(NotAllowed, match="cannot be proposed"):
        propose(current(accepted_edits()), **BY)


def test_conditions_come_and_go_and_stay_readable():
    price = FlipCondition(id="price", statement="Electricity doubles", owner="finance", recheck_on=date(2027, 1, 1))
    adr = current([
        *accepted_edits(), ConditionAdded(**BY, condition=price),
        ConditionRetired(**BY, condition="few-users", reason="usage is known to grow"),
    ])  # fmt: skip
    assert [c.id for c in adr.active_conditions][-1] == "price"
    assert adr.condition("few-users").retired
    with pytest.raises(NotAllowed, match="retired already"):
        apply(adr, ConditionRetired(**BY, condition="few-users", reason="again"))
    with pytest.raises(NotAllowed, match="cannot fire"):
        apply(adr, ConditionFired(**BY, fire=FIRE))


def test_a_fired_condition_waits_for_a_person_and_changes_no_status():
    fired = current([*accepted_edits(), ConditionFired(**BY, fire=FIRE)])
    assert (fired.status, [f.condition for f in fired.fires]) == (Status.ACCEPTED, ["few-users"])
    with pytest.raises(NotAllowed, match="needs a reason"):
        apply(fired, FireConfirmed(**BY, condition="few-users", answer="stands"))
    stands = apply(fired, FireConfirmed(**BY, condition="few-users", answer="stands", reason="a holiday month"))
    assert (stands.status, stands.fires) == (Status.ACCEPTED, ())


def test_superseding_and_the_rest_leave_their_mark():
    evidence = EvidenceRef(id="e-2", sha256="f" * 64, kind=Kind.MEASURED)
    adr = current([
        *accepted_edits(), EvidenceAttached(**BY, evidence=(evidence, evidence)),
        ReviewMoved(**BY, review_on=date(2028, 1, 1)), Commented(**BY, text="seen"), Superseded(**BY, by="01J9"),
    ])  # fmt: skip
    assert (adr.status, adr.superseded_by, adr.review_on) == (Status.SUPERSEDED, "01J9", date(2028, 1, 1))
    assert [c.text for c in adr.comments] == ["seen"]
    assert [e.id for e in adr.evidence] == ["e-1", "e-2"]
    rejected = current([*propose(nortia(), **BY), Rejected(**BY, reason="no money")])
    assert rejected.status is Status.REJECTED


def test_text_that_is_no_edit_says_so():
    with pytest.raises(InputError, match="edit 3"):
        edit_from_json('{"kind": "vanished"}', where="edit 3")


EDITS = st.lists(
    st.sampled_from([
        Commented(**BY, text="a"), ReviewMoved(**BY, review_on=date(2027, 5, 1)), ConditionFired(**BY, fire=FIRE),
        FireConfirmed(**BY, condition="few-users", answer="stands", reason="r"),
        ConditionRetired(**BY, condition="shared-prefix-dominates", reason="r"),
        Deprecated(**BY, reason="r"), Superseded(**BY, by="01J9"), Rejected(**BY, reason="r"),
        Amended(at=NOW + timedelta(days=1), author="Lee", text=text()), *accepted_edits(),
    ]),
    max_size=8,
)  # fmt: skip


@settings(max_examples=60)
@given(EDITS)
def test_the_view_is_the_fold_of_whatever_was_allowed_and_survives_json(tried: list[Edit]):
    kept: list[Edit] = list(propose(nortia(), **BY))
    view = current(kept)
    for edit in tried:
        try:
            view = apply(view, edit)
        except NotAllowed:
            continue
        kept.append(edit)
    assert current(kept) == view
    assert current(edit_from_json(edit_to_json(e)) for e in kept) == view
    assert reduce(lambda v, e: apply(v, e), kept, None) == view
    if any(e.kind == "accepted" for e in kept):
        assert view.number == 7
        assert not any(e.kind == "amended" for e in kept[[e.kind for e in kept].index("accepted"):])  # fmt: skip
