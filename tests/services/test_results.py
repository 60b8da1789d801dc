"""What the results of the shipped cases come to: Nortia's imported rate sweep, and what "two cores" measured."""

from __future__ import annotations

import json
import shutil

import pytest

import cli
from planner.conditions import Kind
from planner.errors import InputError
from services.calibrations import calibration
from services.results import known_points, rate_capacity, results_of, theory_of, ttft_ladder, with_ttft_counted
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.services.made import CASE


@pytest.fixture
def nortia(shipped):
    return case_state(shipped, CASE)


def test_nortias_unit_keeps_no_rate_at_2_s_and_0_3_at_5_s_as_imported(nortia):
    # djangodevreng/dgx-spark-benchmarks@5636536, 11-rate-sweep: p95 2.81 s at 0.1 req/s, 4.40 s at 0.3, 5.26 s at 0.5
    none, *_ = rate_capacity(nortia, 2.0)
    assert none.knee.at is None and none.knee.kind is Kind.IMPORTED
    assert [u.units for u in none.units] == [None, None]
    kept, *_ = rate_capacity(nortia, 5.0)
    assert kept.knee.at.amount == 0.3 and kept.knee.kind is Kind.IMPORTED
    # 20 users send 0.333 req/s, 50 send 0.833; a unit at 70 % takes 0.21: 2 and 4 units, 3 and 5 with the spare.
    assert [(u.users, u.units, u.units_with_spare) for u in kept.units] == [(20, 2, 3), (50, 4, 5)]


def test_nothing_of_nortia_is_told_as_measured(shipped, nortia):
    vllm, ollama = results_of(shipped, nortia)
    assert {k.kind for k in vllm.knees} == {Kind.IMPORTED}
    assert vllm.limit is None  # nobody ran a number in flight
    assert ollama.knees == () and ollama.units[-1].sentence == "Units for 50 users are not known: no load is decided."
    assert theory_of(calibration(shipped), nortia).regimes == ()


def test_the_ladder_holds_the_required_time_and_the_asked_one(nortia):
    assert ttft_ladder(nortia.requirements, 3.0) == (2.0, 3.0, 5.0, 10.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_limit_that_cannot_be_is_refused(nortia, seconds):
    with pytest.raises(InputError, match="cannot be a limit"):
        rate_capacity(nortia, seconds)


@pytest.mark.parametrize("share", [0.0, 1.01, float("nan")])
def test_a_load_above_the_whole_unit_is_refused_even_where_nothing_was_measured(shipped, nortia, share):
    with pytest.raises(InputError, match="no share of what a unit can do"):
        results_of(shipped, nortia, share)


def test_two_cores_names_knee_limit_units_and_ratios_as_measured(shipped_home, tmp_path):
    home = shutil.copytree(shipped_home, tmp_path / "both")
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    state = case_state(ws, "two-cores")
    assert {"single", "overload"} <= set(known_points(state))
    for one in results_of(ws, state):
        assert one.unit.users_kind is Kind.MEASURED
        assert one.limit.max_num_seqs == one.unit.users  # no limit below the knee: both servers had eight slots
        assert one.cost.unit_power_w is None  # nobody states the power of this CPU, so none is made up
    found = theory_of(calibration(ws), state)
    assert {r.setting.engine for r in found.regimes} == {"vllm", "llama-server"}
    assert all(r.calibrates and r.over_bound.low <= r.over_bound.value <= r.over_bound.high for r in found.regimes)
    assert any("open load" in x.reason for x in found.left_out)
    # 0.5 s was asked when the bundles came in, 0.3 s is asked now: the requests beyond it are counted then.
    assert rate_capacity(state, 0.3) == ()
    (kept,) = rate_capacity(with_ttft_counted(ws, state, 0.3), 0.3)
    assert (kept.knee.candidate, kept.knee.at.amount, kept.knee.kind) == ("vllm", 8.0, Kind.MEASURED)
    ws.store.close()


def test_the_terminal_says_the_same_and_refuses_in_one_sentence(shipped_home, tmp_path, capsys):
    home = shutil.copytree(shipped_home, tmp_path / "home")

    def ran(*words):
        code = cli.main(["--home", str(home), "results", "--case", CASE, *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    code, out, _ = ran("--ttft", "5", "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["at_ttft"][0]["at"], told["at_ttft"][0]["kind"]) == (0.3, "imported")
    assert [u["with_spare"] for u in told["at_ttft"][0]["units"]] == [3, 5]
    assert told["regimes"] == []
    code, out, _ = ran()
    assert "0.1 req/s fails already" in out and "no run of this case can be held against it" in out
    assert ran("--ttft", "0")[::2] == (2, "TTFT level: 0 s cannot be a limit. Write seconds above 0.\n")
    assert ran("--utilisation", "2")[0] == 2
