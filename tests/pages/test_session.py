"""Links and cases: what an address opens, what a new case does, and figures that are too large."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import ROOT, Launch
from ui.words import in_short, metrics_in_words


def started(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def test_a_link_to_an_unknown_case_says_so_and_opens_another(home: Path) -> None:
    app = started(case="unknown *x*")
    assert [w.value for w in app.sidebar.warning] == [
        "There is no case 'unknown \\*x\\*' here: this is 'Nortia, internal assistant'."
    ]


@pytest.mark.parametrize(("field", "most"), [("rate", 100_000.0), ("years", 20.0)])
def test_a_figure_of_the_sizing_page_names_its_limit_at_the_field(launch: Launch, field: str, most: float) -> None:
    app = launch("sizing")
    widget = next(n for n in app.main.number_input if n.key.endswith(f"-{field}"))
    assert widget.max == most
    widget.set_value(most).run()
    assert not app.exception


def test_metrics_are_called_by_words_and_a_verdict_is_cut_to_value_and_threshold() -> None:
    sentence = "vllm: ttft p95 <= 2 s at peak: fails at 8.13 s; as imported, n = 175 (a source; and more)."
    assert in_short(sentence) == "vllm: TTFT p95 ≤ 2 s at peak: fails at 8.13 s."
    assert (
        metrics_in_words("prefix_hit mean over user_tok_s_of_mine") == "prefix cache hits mean over user_tok_s_of_mine"
    )
    assert metrics_in_words("measured_over_bound <= 1 x") == "measured / coverage bound ≤ 1 x"


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("vllm: kv_capacity_spread <= 0.1: holds at 12 %.", "vllm: spread of KV capacity ≤ 10 %: holds at 12 %."),
        ("completed_share is 1 at single", "completed is 100 % at single"),
        ("kv_use max between 0.1 and 0.75 at peak", "KV cache in use max between 10 % and 75 % at peak"),
        ("error_share <= 5e-05; ttft p95 <= 2 s", "errors ≤ 0.005 %; TTFT p95 ≤ 2 s"),
        ("vllm over tgi: error_share <= 0.5 x", "vllm over tgi: errors ≤ 0.5 x"),  # a ratio of two shares is none
        ("prefix_hit >= 30 %", "prefix cache hits ≥ 30 %"),
        ("restarts <= 1 at overload", "restarts ≤ 1 at overload"),
    ],
)
def test_a_share_is_read_in_percent_as_its_value_beside_it_is(line: str, read: str) -> None:
    assert metrics_in_words(line) == read
