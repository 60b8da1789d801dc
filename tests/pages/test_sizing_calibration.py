"""The Sizing page's calibration section: shipped runs shown by regime, a point taken out and put back, nothing yet."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest


def section(slug: str, context: int, slow_start: bool) -> None:
    import streamlit as st

    from planner.calibration import calibrate
    from planner.conditions import Kind
    from services.calibrations import calibration
    from services.cases import favourite_sizing
    from services.scores import case_score
    from services.what_if import Question
    from ui.cached import workspace
    from ui.sizing_calibration import show

    ws = workspace()
    version = ws.store.cases.current_requirements(ws.store.cases.get(slug).id)
    assert version is not None
    requirements = version.requirements().model_copy(update={"context_tokens": context})
    if "flash" in st.session_state:
        st.success(st.session_state.pop("flash"))
    sizing = favourite_sizing(ws, requirements)
    asked = Question(
        requirements, sizing.plan, sizing.hardware, sizing.settings, case_score(ws, requirements).favourite
    )
    known = calibration(ws)
    if slow_start:
        [group] = [g for g in known.groups if (g.setting.engine, g.batch, g.kind) == ("vllm", 8, Kind.MEASURED)]
        slow = group.points[0].model_copy(update={"id": "slow/overload/1/tpot_ms/p50", "measured_tok_s": 1.0})
        known = calibrate((*group.points, slow))
    show(ws, known, asked, sizing)


def opened(slug: str, context: int, *, slow_start: bool = False) -> AppTest:
    asked = {"slug": slug, "context": context, "slow_start": slow_start}
    app = AppTest.from_function(section, kwargs=asked, default_timeout=60)
    app.session_state["author"] = "Lee"
    app.run()
    assert not app.exception
    return app


def test_the_section(home: Path) -> None:
    app = opened("two-cores", 96)
    assert app.markdown[0].value.startswith("Planning values on this page")
    table = app.dataframe[0].value
    assert list(table[table.Used]["In flight"]) == ["1", "2 to 7", "8 to 31"]
    one = table[table.Used].iloc[0]
    # 0.952 ms by the bound over 3.628, 3.674 and 3.231 ms measured
    assert (one["Measured / coverage bound"], one["Range"], one["Points (starts)"]) == (
        "0.26",
        "0.26 – 0.29",
        "3 (3) · few",
    )
    assert float(one["Default"]) > 2 * 0.26
    # measured up to eight in flight (sixteen on eight slots are eight), as many as the case's users at most
    assert not any("No run had" in c.value for c in app.caption)
    assert app.selectbox[0].options[0] == "llama-server, fp32, 1 in flight, up to 1k"
    assert app.expander[0].label == "Left out: 9"

    submit = {b.label: b for b in app.button}
    submit["Take out"].click().run()
    assert "no reason is given" in app.error[0].value
    app.text_input[0].set_value("the room was hot")
    next(b for b in app.button if b.label == "Take out").click().run()
    assert app.success[0].value.startswith("Calibration changed: ")
    assert app.expander[0].label == "Left out: 10"
    assert "the room was hot" in app.dataframe[1].value.iloc[0]["Because"]

    away = opened("two-cores", 2048)
    assert (
        "Default constants are used: vllm was not measured here with fp32 at 1k to 8k tokens" in away.markdown[0].value
    )
    assert not away.dataframe[0].value.Used.any()

    empty = opened("nortia", 4096)
    assert empty.markdown[0].value == "No measured runs yet: default constants are used."


def test_a_start_far_from_the_others_is_named_and_not_counted(home: Path) -> None:
    """At 1 tok/s beside six starts of over 150: |0.6745 (x - median) / MAD| is far beyond 3.5."""
    (outlier,) = opened("two-cores", 96, slow_start=True).warning
    assert "Outlier, not counted: vllm, " in outlier.value
