"""Sentences of the domain name criteria by id; people read names."""

from __future__ import annotations

from planner.criterion_names import CRITERION_NAMES, with_names
from planner.weighting import CRITERIA


def test_every_criterion_has_a_name_and_no_other() -> None:
    assert set(CRITERION_NAMES) == set(CRITERIA)


def test_an_id_before_a_colon_a_comma_or_the_end_is_named_and_other_words_stay() -> None:
    told = "level in batching, kv_management, quantization: batching of its own, and no metrics here; openai_api"
    assert with_names(told) == (
        "level in Batching, KV cache management, Quantization: batching of its own, and no metrics here; "
        "OpenAI-compatible API"
    )
    assert with_names("metrics: none", {"metrics": "Metriken"}.__getitem__) == "Metriken: none"
