"""The shipped start-up logs are predicted within the bounds that the planner promises."""

import csv
from functools import cache
from pathlib import Path

import pytest

from perf.memory_truth import predict
from perf.predicted import Predicted
from planner.catalog import load_catalog

CATALOG = load_catalog()
TRUTH = Path(__file__).parents[2] / "perf" / "truth" / "memory.csv"
ROWS = list(csv.DictReader(TRUTH.read_text(encoding="utf-8").splitlines()))


@cache  # not on import: whoever runs other tests collects this file too
def predicted() -> list[Predicted]:
    return predict(ROWS, CATALOG)


def _mape(rows: list[Predicted]) -> float:
    errors = [abs(p.error) for p in rows if p.error is not None]
    return 100 * sum(errors) / len(errors)


def _of(quantity: str) -> list[Predicted]:
    return [p for p in predicted() if p.quantity == quantity and p.predicted is not None]


@pytest.mark.parametrize(
    ("quantity", "at_least", "percent"),
    [("weights_gib", 65, 1.0), ("kv_tokens", 65, 0.1), ("max_concurrency", 60, 5.0), ("kv_cache_gib", 55, 10.0)],
)
def test_mean_errors(quantity: str, at_least: int, percent: float) -> None:
    rows = _of(quantity)
    assert len(rows) >= at_least
    assert _mape(rows) <= percent


def test_text_only_weights() -> None:
    assert _mape([p for p in _of("weights_gib") if p.detail == "text only"]) <= 1.0


def test_every_reported_figure_has_a_prediction_or_a_reason() -> None:
    reported = sum(bool(r[c]) for r in ROWS for c in r if c.endswith("_reported"))
    assert len(predicted()) == reported
    assert all((p.predicted is None) == bool(p.reason) for p in predicted())


def test_unknown_models_are_never_taken_for_something_else() -> None:
    row = {**ROWS[0], "model": "someone/Quux-13B"}
    (first, *_) = predict([row], CATALOG)
    assert first.predicted is None
    assert "no model 'someone/Quux-13B'" in first.reason
    assert first.klass == "unknown"


@pytest.mark.parametrize(
    ("said", "weights_gib"),
    [
        ({"model": "QWEN/qwen2.5-7b-instruct-AWQ", "dtype_weights": "awq int4"}, 5.19),
        (
            {"model": "other/Qwen2.5-7B-Instruct-FP8-dynamic", "dtype_weights": "fp8/int8 compressed-tensors"},
            8.11,
        ),
        ({"model": "Qwen2.5-7B", "dtype_weights": ""}, 14.19),
    ],
)
def test_names_and_formats_as_others_write_them(said: dict[str, str], weights_gib: float) -> None:
    # 6.53 B weights in the layers and 1.09 B in two tables that stay 16 bit: 4.156, 8 or 16 bit for the former.
    (first, *_) = predict([{**ROWS[0], **said}], CATALOG)
    assert first.quantity == "weights_gib"
    assert first.predicted == pytest.approx(weights_gib, rel=0.005)


def test_figures_of_several_cards_are_per_card() -> None:
    by_cards = {p.detail + p.model: p for p in _of("weights_gib") if "70B" in p.model}
    assert by_cards  # 33.88 GiB on each of two, 16.96 on each of four
    assert all(abs(p.error or 0) < 0.01 for p in by_cards.values())
