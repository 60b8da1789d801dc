"""The Results page's own sections: the rate curve at a chosen limit, units from evidence, theory that a person sees."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from bundle.folder import open_bundle, seal
from services.arrivals import bring_in
from services.verdicts import case_state
from services.workspace import now, open_workspace
from tests.bundle.made import request
from tests.pages.conftest import Launch
from tests.pages.test_pages import text
from tests.services.made import asking, measured, with_plan
from ui.views import of_older_versions, rate_frame, results_frame, ttft_frame


def table_with(app: AppTest, column: str) -> list[dict[str, object]]:
    """The rows of the first table that has this column."""
    frame = next(x.value for x in (*app.table, *app.dataframe) if column in x.value.columns)
    return frame.reset_index().to_dict("records")


def test_nortias_rates_read_as_imported_with_none_at_2_s_and_0_3_at_5_s(launch: Launch) -> None:
    app = launch("results")
    rows = {row["First token within"]: row for row in table_with(app, "Rate a unit keeps")}
    assert (rows["2 s"]["Rate a unit keeps"], rows["2 s"]["Units for 50 users"]) == ("none", "not known")
    assert rows["5 s"]["Rate a unit keeps"] == "0.3 req/s"
    # 50 users x 1 a minute = 0.833 req/s over 0.7 x 0.3: 4 units
    assert rows["5 s"]["Units for 50 users"] == "4, 5 with a spare"
    assert {row["Known"] for row in rows.values()} == {"as imported"}
    assert "0.1 req/s fails already" in text(app)


def test_the_curve_holds_the_rates_that_were_offered_and_not_the_peak_that_one_stands_in_for(home: Path) -> None:
    workspace = open_workspace(home)
    curve = rate_frame(case_state(workspace, "nortia"), "ttft_ms", "p95")
    workspace.store.close()
    assert list(curve.rate) == [0.1, 0.2, 0.3, 0.5, 0.7, 1.0]  # the sweep of djangodevreng/dgx-spark-benchmarks@5636536


def test_figures_of_an_older_version_are_no_part_of_a_median_and_are_named(home: Path, tmp_path: Path) -> None:
    workspace = open_workspace(home)
    with_plan(workspace, asking("vllm: ttft p95 <= 300 ms at parallel-2", levels=("ttft p95 <= 300 ms",)))
    for version, ttft_s in (("0.31.0", 0.4), ("0.32.0", 0.2)):
        for start in (1, 2, 3):
            folder = tmp_path / f"{version}-{start}"
            measured(folder, start=start, reported=version, asked=version,
                     records=[request(i, i * 0.35, ttft_s=ttft_s) for i in range(130)])  # fmt: skip
            run = open_bundle(folder)
            ended = now() - timedelta(hours=2 if version == "0.31.0" else 1)
            seal(folder, run.model_copy(update={"id": f"{run.id}-{version}", "finished_at": ended.isoformat()}))
            bring_in(workspace, "nortia", folder, "Kim")
    state = case_state(workspace, "nortia")
    workspace.store.close()
    row = results_frame(state).query("Kind == 'measured'").iloc[0]
    assert (row["TTFT p95"], row["Starts"]) == ("200 ms", 3)  # three starts of 400 ms before them are of 0.31.0
    (drawn,) = ttft_frame(state).query("kind == 'measured' and series == 'p95'").itertuples()
    assert (drawn.low, drawn.high) == (pytest.approx(200), pytest.approx(200))
    assert of_older_versions(state) == ["vllm"]


def test_goodput_that_was_counted_before_the_levels_changed_is_in_no_median(home: Path, tmp_path: Path) -> None:
    workspace = open_workspace(home)
    with_plan(workspace, asking("vllm: goodput >= 90 % at parallel-2", levels=("ttft p95 <= 150 ms",)))
    for start in (1, 2, 3):  # every first token comes after 200 ms
        bring_in(workspace, "nortia", measured(tmp_path / f"{start}", start=start), "Kim")
    assert results_frame(case_state(workspace, "nortia")).iloc[0]["Goodput"] == "0 %"
    with_plan(workspace, asking("vllm: goodput >= 90 % at parallel-2", levels=("ttft p95 <= 2 s",)))
    assert results_frame(case_state(workspace, "nortia")).iloc[0]["Goodput"] == "100 %"
    workspace.store.close()


def test_another_first_token_limit_is_a_row_and_its_knee_a_sentence(launch: Launch) -> None:
    app = launch("results")
    app = app.number_input(key="rate-level-nortia").set_value(5.0).run()
    assert not app.exception
    assert "0.3 req/s keeps every level, 0.5 req/s does not" in text(app)
    app = app.number_input(key="rate-level-nortia").set_value(3.0).run()
    assert "3 s" in {row["First token within"] for row in table_with(app, "Rate a unit keeps")}


def test_two_cores_shows_limit_units_and_the_ratios_that_the_sizing_uses(launch: Launch) -> None:
    app = launch("results")
    app.session_state["case"] = "two-cores"
    app = app.run()
    assert not app.exception
    said = text(app)
    assert "`--max-num-seqs" in said and "`-np" in said
    # What keeps 0.5 s keeps the looser limits of the ladder, 2.5 and 5 times it, though nobody counted by them.
    assert [row["First token within"] for row in table_with(app, "Rate a unit keeps")] == ["0.5 s", "1.25 s", "2.5 s"]
    ratios = table_with(app, "Over planning value")
    assert {row["Engine"] for row in ratios} == {"vllm", "llama-server"}
    assert {row["Sizing"] for row in ratios} == {"used"}
    assert "With one to spare" in table_with(app, "By total output")[0]
