"""A table out of a spreadsheet: figures in base units, rows refused by their number, oddities told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.loads import LoadPoint
from services.filled import Filled
from services.pasted import Stated, figures_of
from services.pasted_sheet import proposed, read_sheet, read_sheet_file
from services.pasted_words import Heading
from tests.services.made import small_plan

EIGHT = LoadPoint(name="parallel-8", in_flight=8, input_tokens=512, output_tokens=128)
PLAN = small_plan(EIGHT, LoadPoint(name="parallel-32", in_flight=32, input_tokens=512, output_tokens=128))
HEAD = "Engine\tparallel\tinput tokens\toutput tokens\tTTFT p95 [s]\ttok/s in total\tn"
ROW = "vLLM\t8\t512\t128\t0.349\t1,234.5\t64"
ABOUT = Filled("vllm", "parallel-8", 8, None, 512, 128, "", "", 0.0, 64, row=2)


def pasted(*lines, stated=None, mark=None):
    sheet = read_sheet("\n".join(lines))
    return figures_of(sheet, proposed(sheet), PLAN, stated or Stated(), mark)


def test_a_row_becomes_figures_in_base_units_at_the_plans_load_point():
    got = pasted(HEAD, ROW)
    # 0.349 s are 349 ms; 1,234.5 is told by its point
    assert got.rows == (
        ABOUT._replace(metric="ttft_ms", statistic="p95", value=349.0),
        ABOUT._replace(metric="output_tok_s", statistic="value", value=1234.5),
    )
    assert got[1:] == ((), (), ())


@pytest.mark.parametrize(
    "lines",
    [
        (HEAD.replace("\t", ","), 'vLLM,8,512,128,0.349,"1,234.5",64'),
        (HEAD.replace("\t", ";"), "vLLM;8;512;128;0,349;1.234,5;64"),
        (f"| {HEAD} |".replace("\t", " | "), "|---|---|--:|--:|--:|--:|--:|", f"| {ROW} |".replace("\t", " | ")),
        (HEAD, ROW.replace("0.349", "349 ms")),
        ("エンジン\t並列数\t入力トークン数\t出力トークン数\tTTFT p95(秒)\t出力スループット(トークン/秒)\t件数",
         "vllm\t８\t512\t128\t0.349\t1,234.5\t64"),
        ("", HEAD, ROW, "", ""),
    ],
    ids=["csv", "semicolons and decimal commas", "markdown", "unit in the cell", "japanese", "blank lines"],
)  # fmt: skip
def test_the_same_table_in_other_clothes(lines):
    got = pasted(*lines)
    assert [f._replace(row=2) for f in got.rows] == list(pasted(HEAD, ROW).rows)
    assert got.refused == ()


def test_what_the_sheet_does_not_say_is_stated_for_all_rows():
    got = pasted("TTFT p95 [ms]\tn", "349\t64", stated=Stated("vllm", 8, None, 512, 128))
    assert got.rows == (ABOUT._replace(metric="ttft_ms", statistic="p95", value=349.0),)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("vLLM\t8\t\t128\t0.349\t1,234.5\t64", "row 3: a speed without requests in flight (or rate), input and output"),
        ("vLLM\t\t512\t128\t0.349\t1,234.5\t64", "row 3: a speed without requests in flight"),
        ("vLLM\t9\t512\t128\t0.349\t1,234.5\t64", "row 3: no load point offers this load. Use parallel-32, "),
        ("vlm\t8\t512\t128\t0.349\t1,234.5\t64", "row 3: unknown candidate 'vlm'. Did you mean 'vllm'?"),
        ("vLLM\t8\t-512\t128\t0.349\t1,234.5\t64", "row 3, input_tokens: -512 is less than 1"),
        ("vLLM\t8\t512.5\t128\t0.349\t1,234.5\t64", "row 3, input tokens: 512.5 is not a whole number"),
        ("vLLM\t8\t512\t128\t-0.349\t1,234.5\t64", "row 3: -349 ms cannot be"),
        ("vLLM\t8\t512\t128\t0\t1,234.5\t64", "row 3: 0 ms cannot be. Leave empty what nobody measured"),
        ("vLLM\t8\t512\t128\t73 (70-78)\t1,234.5\t64", "row 3, TTFT p95 [s]: '73 (70-78)' is not one number"),
        ("vLLM\t8\t512\t128\t0.3 tok/s\t1,234.5\t64", "row 3, TTFT p95 [s]: unit 'tok/s' does not fit ttft"),
        ("vLLM\t8\t512\t128\t0.349\t1,234.5", "row 3: 6 cells under 7 headings"),
        ("vLLM\t8\t512\t128\t0.349\t1,234.5\t64\t1", "row 3: 8 cells under 7 headings"),
        ('vLLM\t8\t512\t128\t"0.3"49\t1,234.5\t64', "row 3: is broken"),
    ],
)  # fmt: skip
def test_a_row_with_a_fault_is_refused_whole_by_its_number(row, message):
    got = pasted(HEAD, ROW, row)
    assert [f.row for f in got.rows] == [2, 2]
    assert len(got.refused) == 1
    assert got.refused[0].startswith(message)


def test_a_row_in_which_nothing_was_measured_is_no_fault():
    got = pasted(HEAD, ROW, "vLLM\t32\t512\t128\t-\tn/a\t未測定")
    assert ([f.row for f in got.rows], got.refused) == ([2, 2], ())


def test_a_latency_without_a_unit_is_not_guessed():
    got = pasted(HEAD.replace(" [s]", ""), ROW)
    assert got.refused == ("row 2, TTFT p95: 0.349 of what: s or ms? Write the unit into the heading.",)


def test_columns_that_are_not_understood_are_listed_and_mapped_by_hand():
    sheet = read_sheet("what\twho\tspeed of it\tmemo\n8\tvllm\t31\tx")
    found = pasted("what\twho\tspeed of it\tmemo\tTTFT p95 (ms)", "8\tvllm\t31\tx\t40").left_out
    assert found[0] == "'what' is left out: 'what' is no heading that is known here"
    by_hand = [Heading("in_flight"), Heading("candidate"), Heading("user_tok_s p5", "tok/s"), Heading("left out")]
    got = figures_of(sheet, by_hand, PLAN, Stated(input_tokens=512, output_tokens=128))
    assert got.rows == (ABOUT._replace(metric="user_tok_s", statistic="p5", value=31.0, n=None),)
    with pytest.raises(InputError, match="no column holds a figure"):
        figures_of(sheet, proposed(sheet), PLAN)


def test_the_second_column_of_the_same_thing_is_left_out():
    got = pasted(HEAD + "\tTTFT p95 (ms)", ROW + "\t349")
    assert got.left_out == ("'TTFT p95 (ms)' is left out: another column holds this already",)


def test_starts_and_repeats_keep_their_numbers():
    got = pasted(HEAD + "\tstart\trepeat", ROW + "\t1\t1", ROW + "\t1\t2", ROW + "\t2\t1")
    ttft = [(f.start, f.repeat) for f in got.rows if f.metric == "ttft_ms"]
    assert ttft == [(1, 1), (1, 2), (2, 1)]


def test_rows_of_the_same_load_without_a_number_are_repeats():
    got = pasted(HEAD, ROW, ROW.replace("0.349", "0.454"))
    assert [(f.value, f.repeat) for f in got.rows if f.metric == "ttft_ms"] == [(349.0, 1), (454.0, 2)]
    assert got.findings == ("rows 2, 3 are read as repeats of the same load",)


def test_repeats_may_have_counted_another_number_of_requests():
    got = pasted(HEAD, ROW, ROW.removesuffix("64") + "60")
    assert [(f.n, f.repeat) for f in got.rows if f.metric == "ttft_ms"] == [(64, 1), (60, 2)]


def test_the_smallest_of_a_high_percentile_may_lie_below_a_low_one():
    head = "Engine\tparallel\tinput\toutput\tTTFT p50 [ms]\tTTFT p95 [ms]\tTTFT p95 min [ms]"
    got = pasted(head, "vllm\t8\t512\t128\t100\t200\t90")  # in its fastest repeat
    assert ([f.value for f in got.rows], got.refused) == ([100, 200, 90], ())


def test_two_rows_with_the_same_number_are_refused():
    with pytest.raises(InputError, match="rows 2 and 3 are both repeat 1 of the same load"):
        pasted(HEAD + "\trepeat", ROW + "\t1", ROW + "\t1")


def test_columns_of_smallest_middle_and_largest_are_a_spread():
    head = "Engine\tparallel\tinput\toutput\tTTFT p95 min [ms]\tTTFT p95 mean [ms]\tTTFT p95 max [ms]\tn"
    got = pasted(head, "vllm\t8\t512\t128\t70\t73\t78\t64")
    # three figures of the same 64 requests, which are not 192
    assert [(f.value, f.spread, f.n) for f in got.rows] == [(70, "min", 64), (73, "mean", None), (78, "max", None)]


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        ("TTFT p50 [ms]\tTTFT p95 [s]", "350\t0.04", "row 2: ttft p50 is above p95: 350 > 40."),
        ("TTFT p95 [s]\tE2E p95 [ms]", "350\t4000", "row 2: ttft p95 is longer than e2e p95: 350000 > 4000 ms."),
    ],
)
def test_milliseconds_against_seconds_show_where_figures_contradict(head, row, message):
    got = pasted(f"in flight\tinput\toutput\t{head}", f"8\t512\t128\t{row}")
    assert (got.rows, len(got.refused)) == ((), 1)
    assert got.refused[0].startswith(message)


def test_milliseconds_against_seconds_are_named_where_they_are_only_likely():
    assert pasted(HEAD.replace("[s]", "[ms]"), ROW).findings == (
        "values of ttft that are hardly possible: 1 (first: row 2, 0.349 ms). Seconds against milliseconds?",
    )
    both = pasted(HEAD, ROW, "vllm\t32\t512\t128\t349\t1,234.5\t64")
    assert both.findings == (
        "ttft runs from 349 ms (row 2) to 349000 ms (row 3). Seconds and milliseconds in one column?",
    )


def test_days_stand_in_their_rows_and_zones_are_not_mixed():
    got = pasted(HEAD + "\tdate", ROW + "\t2026-11-01T10:00+09:00")
    assert got.rows[0].at == datetime(2026, 11, 1, 1, tzinfo=UTC)
    with pytest.raises(InputError, match=r"time zone: 1 \(first: row 3\); that do not: 2 \(first: row 2"):
        pasted(HEAD + "\tdate", *(ROW + f"\t2026-11-0{i}T10:00{z}" for i, z in ((1, ""), (2, "+09:00"), (3, ""))))
    assert "'1.11.2026' is no day or time" in pasted(HEAD + "\tdate", ROW + "\t1.11.2026").refused[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (HEAD, "holds no row under a heading"),
        ("one\ntwo", "holds no row under a heading"),
        ("x" * 5_000_001, "is longer than 5,000,000 characters"),
    ],
)
def test_what_is_no_table_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        read_sheet(text)


def test_a_file_out_of_excel():
    text = f"{HEAD}\r\n{ROW}\r\n"
    for content in (text.encode(), text.encode("utf-8-sig"), text.encode("utf-16")):
        assert read_sheet_file("a.txt", content).rows[0].cells[0] == "vLLM"
    with pytest.raises(InputError, match="is not text in UTF-8"):
        read_sheet_file("a.csv", "並列".encode("cp932"))


CELLS = st.one_of(
    st.sampled_from(
        ["vLLM", "8", "512", "128", "0.3", "1,234", "-5", "1e999", "nan", "320 ms", '"', "|", "-", "95%", ""]
    ),
    st.text(max_size=6),
)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=8), max_size=5), st.sampled_from("\t;,|"))
@settings(max_examples=120, deadline=None)
def test_whatever_is_pasted_gives_figures_that_can_be_or_one_sentence(rows, delimiter):
    text = "\n".join([HEAD.replace("\t", delimiter), *(delimiter.join(cells) for cells in rows)])
    try:
        sheet = read_sheet(text)
        got = figures_of(sheet, proposed(sheet), PLAN)
    except InputError as e:
        assert str(e)
        return
    assert all(f.value > 0 and f.candidate == "vllm" and f.load_point in PLAN.points() for f in got.rows)
    assert {r.number for r in sheet.rows} >= {f.row for f in got.rows}
