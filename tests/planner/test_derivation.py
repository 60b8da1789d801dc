"""Every figure of a sizing prints itself: formula, inputs with sources, assumptions, known error."""

from pathlib import Path

import pytest

from planner.bands import BANDS, band
from planner.capacity import Sizing, SizingSettings, size
from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.derive_scale import amount_or_unknown
from planner.errors import UnknownName
from planner.memory_knobs import KNOBS
from planner.requirements import Budget, Hardware
from planner.stated import Stated
from planner.throughput import KINDS, MeasuredRatio, step_s
from planner.units import format_duration, format_gb
from tests.planner.test_capacity import GX10, PLANS, THOR, nortia, without_bandwidth

CATALOG = load_catalog()
MEMORY = {"weights", "kv_per_token", "kv_per_request", "reserve", "kv_pool", "requests_that_fit", "largest_context"}
SPEED = {"bound", "coverage", "planning", "first_token_floor", "first_token", "interference", "prompt_gap"}
KNOB = {f"knob_{engine}" for engine in KNOBS}
SCALE = {"units", "units_bound", "units_coverage", "units_planning", "request_rate", "completion_sequential",
         "completion_batched", "energy", "cost"}  # fmt: skip


@pytest.fixture(scope="module")
def favourite() -> Sizing:
    return size(nortia(budget=Budget(capital=60_000, years=4, electricity_per_kwh=0.3)), PLANS[1], GX10, CATALOG)


def test_every_figure_is_explained(favourite: Sizing) -> None:
    cells = {f"{kind.value}@{row.batch}" for kind in KINDS for row in favourite.tables[kind]}
    assert set(favourite.derivations) == MEMORY | KNOB | SPEED | SCALE | cells
    for found in favourite.derivations.values():
        assert all((found.title, found.formula, found.value, found.band, found.inputs, found.assumptions or True))
        assert all(i.value and i.source for i in found.inputs)
        assert len(found.lines()) >= 4
    with pytest.raises(UnknownName, match="Did you mean 'planning'"):
        favourite.derivation("planing")


@pytest.mark.parametrize("key", sorted(MEMORY))
def test_memory_is_explained_where_no_speed_is_known(key: str) -> None:
    unknown = size(nortia(), PLANS[1], THOR, without_bandwidth())
    assert set(unknown.derivations) == MEMORY | KNOB
    assert unknown.derivation(key).lines()


def test_the_bound_at_50_users_prints_the_cases_own_arithmetic(favourite: Sizing) -> None:
    # Case text: 23.1 GB read per step = 3.0 + 20.1; 590 tok/s in total, 12 each.
    lines = "\n".join(favourite.derivation("bound@50").lines())
    assert "590 tok/s in total, 12 tok/s each" in lines
    assert "23.1 GB = 3.0 weights + 20.1 KV" in lines
    assert "bandwidth = 273 GB/s a device" in lines
    assert "14 times as long" in lines


def test_a_value_that_is_explained_is_the_value_that_is_shown(favourite: Sizing) -> None:
    shown = {
        "weights": "31.2 GB",  # 30.5 B parameters, 8 bit, embeddings 16 bit
        "kv_per_token": "98,304 B",  # 2 x 48 x 4 x 128 x 2
        "requests_that_fit": f"{favourite.requests_that_fit:,}",
        "largest_context": f"{favourite.largest_context_at_peak:,} tokens",
        "units": "3 (bound), 13 (coverage), 17 (planning)",
        "units_bound": "3 units",
        "units_coverage": "13 units",
        "units_planning": "17 units",
        "completion_sequential": "5 min 12 s",  # case text
        "completion_batched": "42.4 s",
    }
    assert {key: favourite.derivation(key).value for key in shown} == shown


def test_other_users_prompts_take_the_share_that_the_formula_says(favourite: Sizing) -> None:
    assert favourite.inputs is not None and favourite.inputs.prefill_s is not None
    row = favourite.row(Kind.PLANNING, 50)
    assert row is not None
    # 50 x prefill / (0.3 x 500) of a step of 1 / speed.
    share = 50 * favourite.inputs.prefill_s / (0.3 * 500) * row.user_tok_s
    assert favourite.derivation("interference").value == f"{share:.0%}"
    # The step that carries a whole prompt of 3,596 tokens is longer by the prompt's operations at the MFU.
    alone = step_s(favourite.inputs.model_copy(update={"averages_prefill": False}), Kind.PLANNING, 50)
    gap = alone + favourite.inputs.prefill_s / 0.3
    assert favourite.derivation("prompt_gap").value == format_duration(gap)


def test_a_stated_figure_is_named_as_such_and_the_catalogues_is_not() -> None:
    stated = SizingSettings(stated=Stated(bandwidth_gb_s=300, tdp_w=200, matrix_tflops=100, device_total_gib=119))
    mine, theirs = (size(nortia(), PLANS[1], GX10, CATALOG, s) for s in (stated, None))
    for key, name in (("planning@16", "bandwidth"), ("first_token", "matrix rate"), ("energy", "board power"),
                      ("kv_pool", "device total")):  # fmt: skip
        by_name = [{i.name: i.source for i in s.derivation(key).inputs}[name] for s in (mine, theirs)]
        assert by_name[0] == "stated by the user"
        assert by_name[1] != "stated by the user"


def test_bands_are_data_with_rows_and_source() -> None:
    for found in BANDS.values():
        assert found.words and found.source
        if found.mean_error is not None:
            assert f"{found.mean_error:g} %" in found.words
    assert band("weights", "moe") == band("weights")


@pytest.mark.parametrize(
    ("figure", "family", "row"),
    [("planning", "dense", "dense"), ("planning", "moe", "mixture of experts"), ("first_token", "dense", "vLLM dense"),
     ("first_token", "moe", "vLLM mixture")],
)  # fmt: skip
def test_bands_are_the_errors_that_the_document_states(figure: str, family: str, row: str) -> None:
    stated = BANDS[figure, family]
    document = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text()
    line = next(line for line in document.splitlines() if line.startswith(f"| {row} |"))
    n, error, within = (float(cell.strip(" %")) for cell in line.split("|")[2:5])
    assert (stated.n, stated.mean_error, stated.within_30) == (n, round(error), within)


def test_the_teams_own_ratios_are_named_where_the_planning_value_follows_them() -> None:
    own = (MeasuredRatio(batch=8, ratio=0.6, n=3, spread=0.1),)
    found = size(nortia(), PLANS[1], GX10, CATALOG, measured=own).derivation("planning@8")
    named = {i.name: i for i in found.inputs}["measured / coverage at 8"]
    assert (named.value, named.source) == ("0.60 (n = 3)", "the team's own runs: the planning value follows them")
    assert found.band.startswith("own runs differ by up to 17%")  # 0.1 of 0.6


def test_stages_are_explained_and_make_nobody_faster_alone(favourite: Sizing) -> None:
    two = size(nortia(), PLANS[1], GX10, CATALOG, SizingSettings(pipeline_parallel=2))
    alone, apart = two.row(Kind.PLANNING, 1), favourite.row(Kind.PLANNING, 1)
    assert alone is not None and apart is not None and alone.user_tok_s == apart.user_tok_s
    # 50 on two stages are 25 in each part: the speed of 25 on one, twice the total.
    part, whole = favourite.row(Kind.BOUND, 25), two.row(Kind.BOUND, 50)
    assert part is not None and whole is not None
    assert whole.user_tok_s == pytest.approx(part.user_tok_s)
    assert whole.total_tok_s == pytest.approx(2 * part.total_tok_s)
    # At most 19 by the bound keep 25 tok/s on one part: 38 on a unit, ceil(50 / 38) = 2 units of two devices.
    assert [u.units for u in two.units if u.users == 50][0:1] == [2]
    assert "One unit of 2 devices" in two.sentence
    assert "each" in two.derivation("pipeline").value
    assert two.cost.unit_power_w == 2 * 140


@pytest.mark.parametrize(
    ("value", "words"), [(None, "not stated"), (12.345, "12.35 EUR"), (0.1, "0.10 EUR"), (0.01234, "0.0123 EUR")]
)
def test_small_amounts_keep_their_digits(value: float | None, words: str) -> None:
    assert amount_or_unknown(value, "EUR") == words


def test_one_kv_cache_in_every_engine_s_words(favourite: Sizing) -> None:
    # vLLM takes the largest fraction (two decimals) of what GB10 can use: what it was sized with.
    said = {e: favourite.derivation(f"knob_{e}") for e in KNOBS}
    fraction = favourite.memory.device.gpu_memory_utilization
    assert said["vllm"].value == f"--gpu-memory-utilization {fraction:.3f}"
    budget = favourite.memory.budget
    assert said["sglang"].value == f"--mem-fraction-static {(budget.weights + budget.kv) / budget.device_total:.3f}"
    # vLLM's number written into SGLang's knob gives more KV cache, by the reserve that lies outside there.
    more = fraction * budget.device_total - budget.weights
    assert f"{format_gb(more)} of KV cache" in [i.value for i in said["sglang"].inputs]
    # 50 slots of equal length share the cache in llama.cpp: all their tokens, or those of one.
    tokens = budget.kv * 4096 / favourite.memory.kv_bytes_per_request
    assert said["llama-server"].value == f"-c {int(tokens)}"
    assert said["ollama"].value == f"OLLAMA_CONTEXT_LENGTH {int(tokens / 50)}"


def test_others_on_the_device_are_not_free_for_a_knob_of_what_is_free() -> None:
    taken = size(nortia(), PLANS[1], Hardware(gpu="nvidia-gb10-dgx-spark", other_tenants_gb=20), CATALOG)
    # TensorRT-LLM counts what is free: all of it is the KV cache, whoever else is there.
    free = taken.memory.budget
    share = free.kv / (free.device_total - free.tenants - free.weights - free.reserve)
    assert taken.derivation("knob_tensorrt_llm").value.endswith(f" {share - 0.0005:.3f}")
