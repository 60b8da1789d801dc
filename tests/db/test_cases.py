"""Cases, requirements and plans: exact bytes, and the second saver hears about the first."""

import hashlib

import pytest

from planner.errors import ConflictError, InputError, UnknownName
from planner.loads import LoadPoint
from planner.plan_file import plan_to_yaml
from planner.poc import Launch, Plan, PlanCandidate, Stage
from planner.requirements import Hardware, ModelPlan, Requirements
from tests.db.made import NOW


def requirements(**changes):
    return Requirements.model_validate({
        "peak_users_min": 20, "peak_users_max": 50, "user_tok_s_promise": 20, "user_tok_s_target": 25, "ttft_s": 2,
        "input_tokens": 3596, "output_tokens": 500, "context_tokens": 4096,
        "model_plans": [ModelPlan(id="b", label="B", model="qwen3-30b-a3b")], "hardware": [Hardware(gpu="gb10")],
        **changes,
    })  # fmt: skip


def plan(title="PoC"):
    return Plan(
        case="nortia", title=title, shared_contract={"model": "tiny"},
        candidates=(PlanCandidate(id="vllm-b", role="favourite", engine="vllm", model_name="m", launch=Launch()),),
        load_points=(LoadPoint(name="peak", in_flight=50, input_tokens=3596, output_tokens=500),),
        stages=(Stage(name="A", points=("peak",)),),
    )  # fmt: skip


def test_a_case_is_found_by_slug_and_a_near_name_is_offered(store):
    assert store.cases.get("nortia").title == "Nortia"
    with pytest.raises(UnknownName, match="Did you mean 'nortia'"):
        store.cases.get("norta")


def test_a_slug_is_taken_once(store):
    with pytest.raises(ConflictError, match="'nortia' exists already"):
        store.cases.add(store.cases.get("nortia").model_copy(update={"id": "another"}))


def test_requirements_are_versions_of_exact_bytes(store):
    first = store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato", after=0)
    second = store.cases.save_requirements("nortia", requirements(ttft_s=3), at=NOW, author="Lee", after=1)
    assert (first.n, second.n, second.supersedes) == (1, 2, first.sha256)
    stored = store.cases.requirements("nortia")
    assert stored == (first, second)
    assert [hashlib.sha256(v.body).hexdigest() for v in stored] == [v.sha256 for v in stored]
    assert stored[0].requirements() == requirements()
    assert stored[0].sha256 == requirements().sha256()


def test_saving_the_same_again_makes_no_version(store):
    first = store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato")
    assert store.cases.save_requirements("nortia", requirements(), at=NOW, author="Lee") == first


def test_the_second_saver_hears_who_was_first(store):
    store.cases.save_requirements("nortia", requirements(), at=NOW, author="Sato", after=0)
    with pytest.raises(ConflictError, match=r"Sato saved version 1 on 2026-09-01 at 09:00 UTC"):
        store.cases.save_requirements("nortia", requirements(ttft_s=3), at=NOW, author="Lee", after=0)
    assert store.cases.current_requirements("nortia").author == "Sato"


def test_requirements_of_no_case(store):
    with pytest.raises(InputError, match="not stored here"):
        store.cases.save_requirements("nobody", requirements(), at=NOW, author="Sato")
    assert store.cases.current_requirements("nobody") is None


def test_a_plan_keeps_the_bytes_it_came_in_as(store):
    file = b"# by hand\n" + plan_to_yaml(plan()).encode()
    stored = store.plans.add("nortia", plan(), at=NOW, author="Sato", body=file)
    assert store.plans.get(plan().sha256()) == stored
    assert (stored.body, stored.plan()) == (file, plan())
    assert store.plans.add("nortia", plan(), at=NOW, author="Lee") == stored
    other = store.plans.add("nortia", plan("another"), at=NOW, author="Lee")
    assert {p.sha256 for p in store.plans.of_case("nortia")} == {stored.sha256, other.sha256}
    with pytest.raises(UnknownName):
        store.plans.get("0" * 64)


def test_a_moment_without_zone_is_refused(store):
    with pytest.raises(InputError, match="no time zone"):
        store.plans.add("nortia", plan(), at=NOW.replace(tzinfo=None), author="Sato")
    assert store.plans.of_case("nortia") == ()
