"""Requirements from real traffic: looked at, refused in one sentence, taken over by a named person."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

from services.traffic import kept
from services.verdicts import case_state
from services.workspace import open_workspace
from tests.pages.conftest import Launch
from tests.pages.test_pages import text

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(
    f"2026-11-02 10:00:{i:02d}.0000000,1000,50" for i in range(40)
)
BY_HAND = "when,in,out\n1700000000,10,5\n1700000060,20,5\n"


def uploaded(launch: Launch, name: str, content: str) -> AppTest:
    app = launch("requirements")
    return app.file_uploader(key="traffic-nortia").upload(name, content.encode(), "text/csv").run()


def button(app: AppTest, label: str):
    return next(b for b in app.button if b.label == label)


def test_a_public_trace_is_recognised_and_taken_over_by_a_named_person(launch: Launch, home: Path) -> None:
    app = uploaded(launch, "azure.csv", AZURE)
    assert not app.exception
    assert "Azure LLM inference trace" in text(app)
    proposal = next(d.value for d in app.dataframe if "By the log" in d.value)
    # 2 s and 50 tokens at 25 tok/s: four in flight of a request each second.
    assert list(proposal[proposal["Field"] == "peak_users_max"]["By the log"]) == ["4"]
    button(app, "Keep them and save a new version").click().run()
    assert "Write your name" in app.error[0].value
    app.session_state["author"] = "Kim"
    button(app, "Keep them and save a new version").click().run()
    assert not app.exception
    assert "Saved as version 2" in text(app)
    ws = open_workspace(home)
    r = case_state(ws, "nortia").requirements
    (record,) = kept(ws, "nortia")
    ws.store.close()
    assert r is not None and (r.peak_users_max, r.input_tokens, r.output_tokens) == (4, 1000, 50)
    assert record.by == "Kim"


def test_broken_rows_are_one_sentence_until_they_are_left_out(launch: Launch) -> None:
    app = uploaded(launch, "azure.csv", AZURE + "\n2026-11-02 10:01:00,-5,1\n")
    assert "1 row with negative tokens" in app.error[0].value
    next(x for x in app.toggle if x.label.startswith("Leave broken rows out")).set_value(True).run()
    assert not app.error and not app.exception
    assert "negative tokens" in text(app)


def test_columns_are_named_by_hand_where_none_are_recognised(launch: Launch) -> None:
    app = uploaded(launch, "gateway.csv", BY_HAND)
    assert "Choose a column for time, prompt and answer." in [i.value for i in app.info]
    for role, column in (("time", "when"), ("input", "in"), ("output", "out")):
        next(s for s in app.selectbox if s.key and s.key.startswith(f"column-{role}-")).set_value(column)
    app.run()
    assert not app.error and not app.exception
    assert "columns named by hand" in text(app)
    assert any("file_sha256" in c.value for c in app.code)
