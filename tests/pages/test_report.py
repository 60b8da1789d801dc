"""The report of a PoC: what it says of the shipped cases, and that neither form lets a name become structure."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cli
from planner.printable import printable
from planner.requirements import Hardware, ModelPlan, Requirements
from services.cases import begin_case
from services.verdicts import case_state
from services.workspace import Workspace, open_workspace
from tests.pages.conftest import Launch
from ui.charts import against_concurrency
from ui.report import report_of
from ui.report_html import as_html
from ui.report_markdown import as_markdown
from ui.report_parts import Chart, Heading, Limit, Mark, Paragraph, Report, Section, Table


class Page(HTMLParser):
    """The tags of a page in their order, their attributes, and the text between them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.said: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


@pytest.fixture(scope="module")
def shipped(shipped_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = shutil.copytree(shipped_home, tmp_path_factory.mktemp("report") / "home")
    ws = open_workspace(home, url=f"sqlite:///{home}/flipline.db")
    yield ws
    ws.store.close()


def made(ws: Workspace, slug: str) -> SimpleNamespace:
    report = report_of(ws, case_state(ws, slug))
    html = as_html(report)
    return SimpleNamespace(report=report, html=html, page=Page(html), markdown=as_markdown(report))


@pytest.fixture(scope="module")
def nortia(shipped: Workspace) -> SimpleNamespace:
    return made(shipped, "nortia")


@pytest.fixture(scope="module")
def two_cores(shipped: Workspace) -> SimpleNamespace:
    return made(shipped, "two-cores")


def titles(report: Report) -> list[str]:
    return [s.title for s in report.sections]


def test_it_reads_in_the_order_of_a_meeting(two_cores: SimpleNamespace) -> None:
    assert titles(two_cores.report) == [
        "In short", "Question and requirements", "What ran", "Verdicts", "Best operating point, units and cost",
        "Speed against load", "Rate curve", "Comparison", "Quality", "Theory against measurement",
        "What to measure next",
        "Figures", "Findings of the runs", "Evidence used", "Hashes", "How to read it",
    ]  # fmt: skip


def test_nothing_of_nortia_is_told_as_measured(nortia: SimpleNamespace) -> None:
    """djangodevreng/dgx-spark-benchmarks@5636536, 11-rate-sweep: p95 8.13 s at 0.7 req/s, 2.81 s at 0.1."""
    kinds = {m.key for m in nortia.report.marks()}
    assert "imported" in kinds
    assert not kinds & {"measured", "observed", "simulated"}
    assert "fails at 8.13 s; as imported, n = 175" in nortia.page.text
    assert "No load keeps every level: 0.1 req/s fails already (TTFT p95 ≤ 2 s reads 2.81 s)." in nortia.page.text
    assert "Nothing was measured here yet" in nortia.page.text


def test_the_limit_that_would_hold_stands_beside_the_one_that_does_not(nortia: SimpleNamespace) -> None:
    [ladder] = [b for s in nortia.report.sections for b in s.blocks
                if isinstance(b, Table) and b.head[0] == "First token within"]  # fmt: skip
    assert ladder.rows[1] == ("5 s", "vllm", "0.3 req/s", "2, 3 with a spare", "4, 5 with a spare", "as imported")


def test_two_cores_says_who_is_served_how_that_is_known_and_what_differs(two_cores: SimpleNamespace) -> None:
    report, said = two_cores.report, two_cores.page.text
    assert report.headline.marks == (Mark("measured"),)
    # Of whom the draft chose; the other candidate is told below.
    assert "get the promise on one unit (llama-server, measured); you need 4 to 8." in report.headline.text
    assert "on one unit (vllm, measured); you need 4 to 8." in said
    assert (
        "vllm against llama-server: comparable with a declared difference: weight_format: safetensors -> gguf." in said
    )
    assert "not comparable: with weight_format declared different, only figures per token compare" in said
    assert "Batch limit 8:" in said
    assert "vllm and llama-server-q4 differ in quantization (fp32 -> q4_0), and no quality result" in said
    assert "simulated" not in two_cores.html  # nothing of it is, so no legend speaks of it


def test_every_run_is_named_with_its_whole_hash_and_every_figure_with_its_id(
    shipped: Workspace, two_cores: SimpleNamespace
) -> None:
    state = case_state(shipped, "two-cores")
    assert state.plan is not None
    for sha256 in (*(r.sha256 for r in state.runs), state.plan.sha256()):
        assert sha256 in two_cores.html
        assert sha256 in two_cores.markdown
    [evidence] = [b for s in two_cores.report.sections for b in s.blocks if isinstance(b, Table) and b.head[0] == "Id"]
    known = {e.id: e for e in state.evidence}
    assert all(known[str(row[0])].kind == row[2].key for row in evidence.rows if isinstance(row[2], Mark))
    assert len(evidence.rows) == len({row[0] for row in evidence.rows})


def test_simulated_figures_are_called_so_wherever_they_stand(full: Workspace) -> None:
    """The workspace of `full` holds a bundle of the emulator and figures by hand, and nothing of a real server."""
    report = report_of(full, case_state(full, "nortia"))
    full.store.close()
    keys = {m.key for m in report.marks()}
    assert {"simulated", "entered"} <= keys
    assert "measured" not in keys
    assert "They test the instrument and decide nothing." in as_markdown(report)


@pytest.mark.parametrize("slug", ["nortia", "two_cores"])
def test_the_page_needs_nothing_else(slug: str, request: pytest.FixtureRequest) -> None:
    one = request.getfixturevalue(slug)
    names = {name for name, _ in one.page.attributes}
    assert not names & {"src", "href", "xlink:href", "srcset", "data", "action", "onload", "style"}
    assert not set(one.page.tags) & {"script", "link", "iframe", "object", "img", "base", "form"}
    assert not re.search(r"@import|url\(", one.html)
    for needed in ("prefers-color-scheme: dark", "@media print", "@page"):
        assert needed in one.html


@pytest.mark.parametrize("slug", ["nortia", "two_cores"])
def test_every_picture_says_what_it_shows_and_has_its_figures_beside_it(
    slug: str, request: pytest.FixtureRequest
) -> None:
    one = request.getfixturevalue(slug)
    charts = [b for s in one.report.sections for b in s.blocks if isinstance(b, Chart)]
    assert charts
    labels = [value for name, value in one.page.attributes if name == "aria-label"]
    assert {c.words for c in charts} <= set(labels)
    assert one.page.tags.count("details") == len(charts) == one.page.tags.count("svg")
    ids = [value for name, value in one.page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_same_state_makes_the_same_bytes(shipped: Workspace, nortia: SimpleNamespace) -> None:
    again = report_of(shipped, case_state(shipped, "nortia"))
    assert as_html(again) == nortia.html
    assert as_markdown(again) == nortia.markdown


def test_a_case_without_a_plan_says_so_and_no_more(shipped: Workspace) -> None:
    tiny = ModelPlan(id="T", label="tiny", model="tiny-llama-4x256", quantization="fp32")
    r = Requirements(peak_users_min=1, peak_users_max=2, user_tok_s_promise=1, user_tok_s_target=2, ttft_s=2,
                     input_tokens=64, output_tokens=32, context_tokens=2048, model_plans=(tiny,),
                     hardware=(Hardware(gpu="two-cpu-cores"),))  # fmt: skip
    begin_case(shipped, "Empty <b>one</b>", r, "Kim", slug="empty")
    report = report_of(shipped, case_state(shipped, "empty"))
    assert titles(report) == ["In short", "Question and requirements", "Hashes"]
    assert "PoC report: Empty &lt;b&gt;one&lt;/b&gt;" in as_html(report)
    assert r"# PoC report: Empty \<b>one\</b>" in as_markdown(report)


# --- text from outside is text ---------------------------------------------------------------------------------------


def with_text(text: str) -> Report:
    """A report with this text in every place that holds one, charts apart."""
    blocks = (
        Paragraph(text, (Mark("holds"),)), Paragraph(text, tone="warning"), Heading(text, (Mark("fails"),)),
        Table((text, "n"), ((text, Mark("measured")), ("1", text))), Table((text,), ((text,),), wide=True),
    )  # fmt: skip
    return Report(
        text, Paragraph(text, (Mark("imported"),)), text, (Section(text, blocks), Section(text, blocks, True))
    )


HOSTILE = st.one_of(
    st.text(max_size=60),
    st.sampled_from([
        "</td></tr></table><script>alert(1)</script>", '" onload="alert(1)', "<!-- ", "]]>", "{{ 7*7 }}{% if x %}",
        "| a | b |\n|---|---|", "\n\n# heading", "![x](http://x/y.png)", "<img src=x>", "```\ncode", "\u202eabc\u0000",
        "- item", "[link](javascript:alert(1))", "</style><style>*{display:none}", "&lt;b&gt;",
    ]),
)  # fmt: skip


@given(HOSTILE)
@settings(max_examples=30)
def test_no_text_becomes_a_tag_and_all_of_it_is_read(text: str) -> None:
    page, expected = Page(as_html(with_text(text))), Page(as_html(with_text("x")))
    assert page.tags == expected.tags
    assert page.attributes == expected.attributes
    words = " ".join(printable(text).split())
    assert page.text.count(words) >= 16 or not words


@given(HOSTILE)
@settings(max_examples=30)
def test_no_text_becomes_a_line_or_a_cell_of_its_own(text: str) -> None:
    def shape(markdown: str) -> list[tuple[str, int]]:
        bare = (re.sub(r"\\.", "x", line) for line in markdown.splitlines())
        return [(re.match(r"#+ |> |\| |", line)[0], line.count("|")) for line in bare]  # type: ignore[index]

    empty = not " ".join(printable(text).split())
    assert shape(as_markdown(with_text(text))) == shape(as_markdown(with_text("" if empty else "x")))


def chart(series: str) -> Chart:
    frame = pd.DataFrame({"batch": [1, 4], "series": series, "kind": "measured", "value": [20.0, 5.0],
                          "low": [18.0, 5.0], "high": [22.0, 5.0], "n": [60, 60]})  # fmt: skip
    picture = against_concurrency(frame, y="value", y_title=series, required=10.0, required_label=series,
                                  series="series")  # fmt: skip
    return Chart(series, series, picture, frame, "batch", "In flight", "tok/s", (Limit("promised", 10.0),))


def with_chart(series: str) -> Report:
    return Report("r", Paragraph("h"), "u", (Section("s", (chart(series),)),))


def test_a_name_in_a_picture_stays_a_name() -> None:
    hostile = '</text></svg><script>alert(1)</script>" onload="x'
    page, expected = Page(as_html(with_chart(hostile))), Page(as_html(with_chart("vllm measured")))
    assert set(page.tags) == set(expected.tags)
    assert {name for name, _ in page.attributes} == {name for name, _ in expected.attributes}
    assert "<script" not in as_html(with_chart(hostile))


def test_markdown_draws_its_charts_as_bars_that_are_as_long_as_the_values() -> None:
    """20 tok/s is the longest and gets 24 characters, 5 a quarter of them, the required 10 half of them."""
    rows = [line.split("|") for line in as_markdown(with_chart("vllm measured")).splitlines() if "tok/s" in line]
    assert [row[-2].strip() for row in rows] == ["█" * 24, "█" * 6, "░" * 12]
    assert rows[0][3].strip() == "20 tok/s"
    assert rows[0][4].strip() == "18 tok/s – 22 tok/s"
    assert rows[1][4].strip() == "–"


# --- where it is asked for -------------------------------------------------------------------------------------------


def test_both_forms_are_offered_on_the_results_page(launch: Launch) -> None:
    app = launch("results")
    assert not app.exception
    labels = [b.label for b in app.get("download_button")]
    assert "HTML, with charts" in labels and "Markdown" in labels


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_terminal_writes_the_form_that_the_name_asks_for(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    out = tmp_path / name
    assert cli.main(["--home", str(home), "report", "--case", "nortia", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>" if name.endswith("html") else "# PoC report: Nortia")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("report.pdf", ".pdf is no form of a report. End the name in .html or .md."),
     ("report", "a name without ending is no form of a report. End the name in .html or .md."),
     ("nowhere/report.md", "cannot be written: No such file or directory. Check the path.")],
)  # fmt: skip
def test_a_place_that_cannot_be_is_one_sentence(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, sentence: str
) -> None:
    out = tmp_path / name
    assert cli.main(["--home", str(home), "report", "--case", "nortia", "--out", str(out)]) == 2
    assert capsys.readouterr().err.strip() == f"{out}: {sentence}"
    assert not out.exists()
