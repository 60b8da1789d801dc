"""Headings that people write, in English and Japanese; what is not understood says what is missing."""

from __future__ import annotations

import pytest

from planner.metrics import METRICS
from services.pasted_words import LEFT_OUT, ROLES, heading, meanings


@pytest.mark.parametrize(
    ("text", "holds", "unit"),
    [
        ("TTFT p95 [s]", "ttft_ms p95", "s"),
        ("ttft_p95_ms", "ttft_ms p95", "ms"),
        ("P99 TTFT (ms)", "ttft_ms p99", "ms"),
        ("95th percentile TTFT [ms]", "ttft_ms p95", "ms"),
        ("Median TTFT ms", "ttft_ms p50", "ms"),
        ("TTFT 95パーセンタイル(秒)", "ttft_ms p95", "秒"),
        ("TTFT中央値（ミリ秒）", "ttft_ms p50", "ミリ秒"),
        ("Mean TPOT (ms)", "tpot_ms mean", "ms"),
        ("ITL max (ms)", "itl_ms max", "ms"),
        ("E2E p95 (s)", "e2e_ms p95", "s"),
        ("tok/s per user p5", "user_tok_s p5", "tok/s"),
        ("1ユーザーあたり速度 p5 (トークン/秒)", "user_tok_s p5", "トークン/秒"),
        ("tok/s in total", "output_tok_s value", "tok/s"),
        ("Output token throughput (tok/s)", "output_tok_s value", "tok/s"),
        ("出力スループット(トークン/秒)", "output_tok_s value", "トークン/秒"),
        ("Request throughput (req/s)", "request_rate value", "req/s"),
        ("error rate [%]", "error_share value", "%"),
        ("KV capacity", "kv_capacity_tokens value", ""),
        ("Requests (n)", "n", ""),
        ("リクエスト数", "n", ""),
        ("concurrency", "in_flight", ""),
        ("並列数", "in_flight", ""),
        ("同時リクエスト数", "in_flight", ""),
        ("rate (req/s)", "rate_per_s", "req/s"),
        ("Input tokens", "input_tokens", ""),
        ("入力トークン数", "input_tokens", ""),
        ("OSL", "output_tokens", ""),
        ("出力長", "output_tokens", ""),
        ("Engine", "candidate", ""),
        ("エンジン", "candidate", ""),
        ("Load point", "load_point", ""),
        ("start", "start", ""),
        ("試行", "repeat", ""),
        ("測定日", "at", ""),
    ],
)
def test_a_heading_and_its_unit(text, holds, unit):
    read = heading(text)
    assert (read.holds, read.unit, read.spread, read.why) == (holds, unit, "", "")


@pytest.mark.parametrize(
    ("text", "holds", "spread"),
    [
        ("TTFT p95 max [s]", "ttft_ms p95", "max"),
        ("TTFT p95 (ms) min", "ttft_ms p95", "min"),
        ("Throughput avg [tok/s]", "output_tok_s value", "mean"),
        ("出力スループット最小(トークン/秒)", "output_tok_s value", "min"),
    ],
)
def test_which_end_of_the_repeats_a_column_holds(text, holds, spread):
    assert heading(text)[:3:2] == (holds, spread)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tok/s", "per user, or in total?"),
        ("req/s", "offered, or completed?"),
        ("TTFT (ms)", "which statistic of ttft: p5, p50, p90, p95, p99, mean?"),
        ("TTFT min (ms)", "ttft has the statistics p5, p50, p90, p95, p99, mean"),
        ("Total token throughput (tok/s)", "it counts prompt tokens too"),
        ("Latency", "'latency' is no heading that is known here"),
        ("notes", "'notes' is no heading that is known here"),
        ("", "it names nothing that was measured"),
    ],
)
def test_a_heading_that_is_not_understood_says_what_is_missing(text, why):
    read = heading(text)
    assert (read.holds, read.why) == (LEFT_OUT, why)


def test_every_figure_of_a_benchmark_can_be_named_by_hand():
    known = meanings()
    assert set(ROLES) | {LEFT_OUT, "ttft_ms p95", "output_tok_s value"} <= set(known)
    assert not any(name.startswith("peak_in_flight") for name in known)  # demand is observed, never entered


@pytest.mark.parametrize("name", [n for n in meanings() if " " in n and n != LEFT_OUT])
def test_a_name_by_hand_is_a_metric_with_its_statistic(name):
    metric, statistic = name.split()
    assert statistic in METRICS[metric].statistics
