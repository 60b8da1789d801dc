"""Words of a terminal as a sizing question: units are never converted, a slip is named with what would be right."""

import pytest

from planner.catalog import load_catalog
from planner.errors import FliplineError
from planner.speculation import Speculation
from services.typed_question import TYPED, question_of
from ui.sizing_terminal import ASKED

CATALOG = load_catalog()
WORDS = {"model": "Qwen/Qwen3-30B-A3B", "gpu": "GX-10", "context": "4096", "users": "50", "quantization": "fp8"}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"model": "qwen3-30b-a3b"}, "catalogue: unknown model 'qwen3-30b-a3b'. Did you mean 'Qwen/Qwen3-30"),
        ({"gpu": "GX10x"}, "catalogue: unknown GPU 'GX10x'. Did you mean 'GX10'?"),
        ({"quantization": "fp7"}, "model plan: unknown quantization 'fp7'. Did you mean 'fp8'?"),
        ({"kv_dtype": "fp9"}, "unknown KV cache format 'fp9'. Did you mean 'fp8'?"),
        ({"engine": "vlm"}, "catalogue: unknown engine 'vlm'. Did you mean 'vllm'?"),
        ({"context": "-5"}, "context: -5 is outside 16 to 2,000,000."),
        ({"context": "9e99"}, "context: 9e+99 is outside 16 to 2,000,000."),
        ({"users": "0"}, "users: 0 is outside 1 to 100,000."),
        ({"users": "1.5"}, "users: 1.5 is not a whole number."),
        ({"users": "many"}, "users: 'many' is not a number."),
        ({"target": "0"}, "target: 0 is outside 0.1 to 10,000."),
        ({"output": "5000"}, "output: an answer of 5,000 tokens leaves no room for a prompt in 4,096."),
        # 20 x 2^30 / 10^9 = 21.4748; 128 x 10^9 / 2^30 = 119.209: neither is silently taken for the other.
        ({"tenants": "20GiB"}, "tenants: 20 GiB given where GB are asked. Write 21.4748 GB."),
        ({"device_total": "128GB"}, "device total: 128 GB given where GiB are asked. Write 119.209 GiB."),
        ({"bandwidth": "0.273TB/s"}, "memory bandwidth: 0.273 TB/s given where GB/s are asked. Write 273 G"),
        ({"bandwidth": "0.273"}, "memory bandwidth: 0.273 GB/s is outside 10 to 20,000 GB/s."),
        ({"tenant_bandwidth": "30"}, "tenant-bandwidth: 30 is above 1. Write 30% or 0.3."),
        ({"fraction": "120%"}, "fraction: 1.2 is outside 0.01 to 1."),
        ({"rate": "3/s"}, "rate: '3/s' is not a number."),
        ({"draft": "4"}, "draft: --acceptance is missing."),
        ({"acceptance": "0.8"}, "size: --acceptance is of a draft, and --draft is missing."),
        ({"draft": "40", "acceptance": "0.8"}, "draft: 40 is outside 1 to 16."),
        ({"electricity": "300"}, "price of electricity: 300 /kWh is outside 0 to 10 /kWh. State the price of one kWh"),
    ],
)
def test_a_slip_is_one_sentence_with_the_way_out(typed: dict[str, str], sentence: str) -> None:
    with pytest.raises(FliplineError) as raised:
        question_of(CATALOG, WORDS | typed)
    assert str(raised.value).startswith(sentence)


def test_every_setting_of_the_page_can_be_typed() -> None:
    asked = question_of(CATALOG, WORDS | {
        "slots": "64", "chunk": "2k", "utilisation": "80%", "rate": "1.5", "tenants": "20 GB",
        "tenant_bandwidth": "20%", "fraction": "0.8", "draft": "4", "acceptance": "80%", "draft_gb": "2",
    })  # fmt: skip
    s = asked.settings
    assert (s.max_num_seqs, s.max_num_batched_tokens, s.utilisation, s.peak_rate_per_s) == (64, 2048, 0.8, 1.5)
    assert (s.tenant_bandwidth_share, s.gpu_memory_utilization) == (0.2, 0.8)
    assert asked.hardware.other_tenants_gb == 20
    assert s.speculation == Speculation(draft_tokens=4, acceptance=0.8, draft_gb=2)
    # 1.5 requests per second of 50 users are 1.8 a minute each: waiting is simulated at the rate that was asked for.
    assert asked.offered().requests_per_user_per_min == pytest.approx(1.8)
    assert set(TYPED) <= {a.words for a in ASKED}
