"""The Sizing page's calibration section: shipped runs shown by regime, a point taken out and put back, nothing yet."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest


def section(slug: str, context: int) -> None:
    import streamlit as st

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
    show(ws, calibration(ws), asked, sizing)


def opened(slug: str, context: int) -> AppTest:
    app = AppTest.from_function(section, kwargs={"slug": slug, "context": context}, default_timeout=60)
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
    # 0.952 ms by the bound over 4.193, 4.379 and 3.541 ms measured
    assert (one["Measured / bound"], one["Range"], one["Points (starts)"]) == ("0.23", "0.22 – 0.27", "3 (3) · few")
    assert float(one["Default"]) > 2 * 0.23
    # measured up to eight in flight (sixteen on eight slots are eight), as many as the case's users at most
    assert not any("No run had" in c.value for c in app.caption)
    assert app.selectbox[0].options[0].endswith("in flight, up to 1k")
    (outlier,) = app.warning
    assert "Outlier, not counted: vllm, overload, run" in outlier.value
    assert app.expander[0].label == "Left out: 7"

    submit = {b.label: b for b in app.button}
    submit["Take out"].click().run()
    assert "no reason is given" in app.error[0].value
    app.text_input[0].set_value("the room was hot")
    next(b for b in app.button if b.label == "Take out").click().run()
    assert app.success[0].value.startswith("Calibration changed: ")
    assert app.expander[0].label == "Left out: 8"
    assert "the room was hot" in app.dataframe[1].value.iloc[0]["Because"]

    away = opened("two-cores", 2048)
    assert "Default constants are used: vllm was not measured here at 1k to 8k tokens" in away.markdown[0].value
    assert not away.dataframe[0].value.Used.any()

    empty = opened("nortia", 4096)
    assert empty.markdown[0].value == "No measured runs yet: default constants are used."
