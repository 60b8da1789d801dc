"""The shipped "two cores" runs as ratios that were worked out by hand, points taken out, and devices by their names."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from planner.conditions import Kind
from planner.errors import InputError, UnknownName
from planner.throughput import step_s
from services.calibrations import calibration, exclude, include, machine
from services.cases import favourite_sizing, sizings
from tests.services.conftest import opened

# Tiny Llama in fp32. A step reads 4 x (196,608 of attention + 528,384 of MLP) + 908 x 256 of output projection =
# 3,132,416 weights, 12.53 MB; one request of 64 + 32/2 = 80 tokens adds 80 x 4 layers x 2 x 2 heads x 64 x 4 B =
# 0.328 MB. At 13.5 GB/s: 0.952 ms for one, 1.122 ms for eight.
# The times below are worked out of the records with pandas, over all requests; the steady window leaves a few out.
WINDOW = 0.003
STEP_MS = {1: (12.529664 + 0.32768) / 13.5, 8: (12.529664 + 8 * 0.32768) / 13.5}


@pytest.fixture(scope="module")
def two(with_two_cores, tmp_path_factory):
    """The workspace with the case "two cores" alone, and its requirements."""
    folder = shutil.copytree(with_two_cores, tmp_path_factory.mktemp("two") / "copy")
    ws = opened(folder)
    case = ws.store.cases.get("two-cores")
    version = ws.store.cases.current_requirements(case.id)
    yield SimpleNamespace(ws=ws, requirements=version.requirements())
    ws.store.close()


def group(ws, engine, batches, quantization="fp32"):
    [found] = [
        g for g in calibration(ws).groups
        if (g.setting.engine, g.setting.quantization, g.batches) == (engine, quantization, batches)
    ]  # fmt: skip
    return found


def test_one_request_on_vllm(two):
    found = group(two.ws, "vllm", "1")
    # median times per token of the three starts' 162 requests: 3.628, 3.231 and 3.674 ms
    assert [p.measured_tok_s for p in sorted(found.points, key=lambda p: p.measured_tok_s)] == pytest.approx(
        [1000 / 3.674, 1000 / 3.628, 1000 / 3.231], rel=WINDOW
    )
    assert found.ratio == pytest.approx(STEP_MS[1] / 3.628, rel=WINDOW)  # 0.263
    assert found.spread == pytest.approx((STEP_MS[1] / 3.674, STEP_MS[1] / 3.231), rel=WINDOW)
    assert (found.setting.gpu, found.setting.family, found.kind) == ("two-cpu-cores", "dense", Kind.MEASURED)
    assert (found.setting.context, found.setting.mix, found.few) == ("up to 1k", "decode-bound", True)
    # the default constants know neither Python nor one compute thread: they expect far more
    assert found.ratio * 2 < found.default_ratio < 1


def test_llama_server_is_another_engine(two):
    assert group(two.ws, "llama-server", "1").ratio == pytest.approx(STEP_MS[1] / 1.060, rel=WINDOW)  # 0.90


def test_the_same_engine_in_four_bits_is_another_setting(two):
    """Its weights are 4.5 bits of 32, and its kernels are further from their bound: one ratio would fit neither."""
    four_bits = group(two.ws, "llama-server", "1", "q4_0")
    assert four_bits.n == 3
    assert [1000 / p.measured_tok_s for p in sorted(four_bits.points, key=lambda p: p.measured_tok_s)] == pytest.approx(
        [0.865, 0.821, 0.807], rel=WINDOW
    )
    assert four_bits.ratio * 2 < group(two.ws, "llama-server", "1").ratio


def test_sixteen_requests_on_eight_slots_are_a_batch_of_eight(two):
    found = group(two.ws, "vllm", "8 to 31")
    # eight in flight 5.302, 5.770, 5.594 ms; sixteen 6.410, 6.128, 5.751 ms
    assert ({p.batch for p in found.points}, found.n, found.outliers) == ({8}, 6, ())
    assert found.ratio == pytest.approx((STEP_MS[8] / 5.770 + STEP_MS[8] / 5.751) / 2, rel=WINDOW)  # 0.195


def test_what_cannot_calibrate_is_listed_with_the_reason(two):
    reasons = [p.reason for p in calibration(two.ws).passed_over]
    assert reasons == ["peak: open load: how many ran at once is not stated."] * 9


def test_a_sizing_at_other_lengths_than_measured_keeps_the_defaults(two):
    # the case counts on 2,048 tokens of context, the runs read 80
    assert favourite_sizing(two.ws, two.requirements).inputs.measured == ()


def test_a_sizing_in_the_measured_regime_follows_the_runs(two):
    near = two.requirements.model_copy(update={"context_tokens": 96})
    sizing = favourite_sizing(two.ws, near)
    assert sizings(two.ws, near)[0].sizing == sizing
    assert [(m.batch, m.n) for m in sizing.inputs.measured] == [(1, 3), (3, 6), (8, 6)]
    # at one request the plan says what was measured, but for the 16 tokens more that this sizing counts
    step = (12.529664 + 96 * 0.004096) / 13.5 / (STEP_MS[1] / 3.628)
    assert step_s(sizing.inputs, Kind.PLANNING, 1) * 1000 == pytest.approx(step, rel=WINDOW)


def test_a_point_is_taken_out_with_a_reason_and_put_back(two):
    before = calibration(two.ws)
    worst = min(group(two.ws, "vllm", "1").points, key=lambda p: p.ratio)
    with pytest.raises(InputError, match="counted already"):
        include(two.ws, worst.id, "it was fine", "Lee")
    exclude(two.ws, worst.id, " a backup ran beside it ", "Lee")
    after = calibration(two.ws)
    (left_out,) = after.excluded
    assert (left_out.evidence, left_out.reason[:4]) == (worst.id, "Lee,")
    assert left_out.reason.endswith(": a backup ran beside it")
    # 3.628 and 3.231 ms are left
    assert group(two.ws, "vllm", "1").ratio == pytest.approx((STEP_MS[1] / 3.628 + STEP_MS[1] / 3.231) / 2, rel=WINDOW)
    with pytest.raises(InputError, match="taken out already"):
        exclude(two.ws, worst.id, "twice", "Kim")
    include(two.ws, worst.id, "it had ended before", "Kim")
    assert calibration(two.ws) == before
    assert [(c.used, c.author) for c in two.ws.store.calibrations.all()] == [(False, "Lee"), (True, "Kim")]


def test_runs_are_read_again_only_when_something_is_another(two):
    def points(ws):
        return [p for g in calibration(ws).groups for p in g.points]

    before, case = points(two.ws), two.ws.store.cases.get("two-cores")
    assert all(a is b for a, b in zip(before, points(two.ws), strict=True))
    with pytest.raises(RuntimeError), two.ws.store.transaction():
        figure = next(e for e in two.ws.store.evidence.of_case(case.id, metric="tpot_ms") if e.statistic == "p50")
        two.ws.store.evidence.add(case.id, [figure.model_copy(update={"id": "another"})])
        assert len(calibration(two.ws).passed_over) == 10  # it came without a bundle; nine were passed over before
        raise RuntimeError
    assert len(calibration(two.ws).passed_over) == 9
    other = two.ws._replace(catalog=two.ws.catalog.model_copy())
    assert points(other) == before and points(other)[0] is not before[0]


def test_nobody_and_no_reason_change_nothing(two):
    chosen = group(two.ws, "vllm", "1").points[0].id
    with pytest.raises(InputError, match="nobody is named"):
        exclude(two.ws, chosen, "reason", " ")
    with pytest.raises(InputError, match="no reason is given"):
        exclude(two.ws, chosen, " ", "Lee")
    with pytest.raises(InputError, match="not stored"):
        exclude(two.ws, "nothing", "reason", "Lee")
    assert calibration(two.ws).excluded == ()


@pytest.mark.parametrize(
    ("driver", "gpu"),
    [
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-sxm"),
        ("NVIDIA H100 PCIe", "nvidia-h100-80gb-pcie"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb-sxm"),
        ("NVIDIA A100 80GB PCIe", "nvidia-a100-80gb-pcie"),
        ("NVIDIA GB10", "nvidia-gb10-dgx-spark"),
        ("NVIDIA GeForce RTX 4090", "nvidia-rtx-4090"),
        ("NVIDIA L40S", "nvidia-l40s"),
        ("cpu: Some Processor", "two-cpu-cores"),
    ],
)
def test_a_device_by_the_name_that_its_driver_gives(two, driver, gpu):
    assert machine(two.ws.catalog, driver, two.requirements).id == gpu


@pytest.mark.parametrize("driver", ["NVIDIA H100 NVL", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA"])
def test_a_device_that_may_be_another_is_unknown(two, driver):
    with pytest.raises(UnknownName):
        machine(two.ws.catalog, driver, two.requirements)


def test_a_case_without_runs_knows_no_ratio(shipped):
    known = calibration(shipped)
    assert (known.groups, known.excluded, known.passed_over) == ((), (), ())
