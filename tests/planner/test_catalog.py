"""The catalogue reads its own files, says where a file is wrong, and knows what is near."""

import os
from pathlib import Path

import pytest

from planner.architecture import MODELLED, modules
from planner.catalog import Catalog, load_catalog
from planner.errors import InputError, SchemaTooNew, UnknownName
from planner.quantization import quantization

CATALOG = load_catalog()

GPU = """\
schema: 1
gpus:
  - id: bench-card
    name: Bench card
    memory_gb: 24
    device_total_gib: {total}
    unified_memory: false
    bandwidth_gb_s: {bandwidth}
    architecture: test
    sources: ["data sheet"]
    confidence: high
"""


def _root(
    tmp_path: Path, gpus: str = GPU.format(total=23.5, bandwidth=900), models: str = "schema: 1\nmodels: []\n"
) -> Path:
    (tmp_path / "gpus.yaml").write_text(gpus)
    (tmp_path / "models.yaml").write_text(models)
    return tmp_path


def test_every_shipped_model_is_modelled_and_every_entry_has_a_source() -> None:
    assert len(CATALOG.models) >= 45
    assert len(CATALOG.gpus) >= 29
    assert set(CATALOG.engines) >= {"vllm", "ollama", "sglang", "tensorrt_llm", "tgi"}
    for model in CATALOG.models.values():
        assert model.architecture in MODELLED
        assert modules(model).total > 0
        assert all(model.sources)


@pytest.mark.parametrize("alias", ["GX-10", "gx-10", "DGX Spark", "GB10", "nvidia-gb10-dgx-spark"])
def test_a_gpu_is_found_by_any_of_its_names(alias: str) -> None:
    gpu = CATALOG.gpu(alias)
    # The case: 273 GB/s and 121 GB usable; the driver reports 121.69 GiB.
    assert (gpu.bandwidth_gb_s, gpu.usable_gb, gpu.device_total_gib) == (273, 121, 121.69)


def test_aliases_are_unique() -> None:
    names = [n.lower() for g in CATALOG.gpus.values() for n in {g.id, g.name, *g.aliases}]
    assert len(names) == len(set(names))


def test_unknown_names_say_what_is_near() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'Qwen/Qwen3-32B'"):
        CATALOG.model("Qwen/Qwen3-33B")
    with pytest.raises(UnknownName, match="Did you mean 'H100'"):
        CATALOG.gpu("H10O")
    with pytest.raises(UnknownName, match="Did you mean 'vllm'"):
        CATALOG.engine("vlm")
    with pytest.raises(UnknownName, match="Did you mean 'int4'"):
        quantization("int44")


def test_gaps_stay_gaps() -> None:
    assert CATALOG.gpu("Jetson Thor").device_total_gib is None
    assert CATALOG.gpu("M5 Max").memory_gb is None
    assert CATALOG.gpu("GB10").tflops("bf16") == (102, "measured GEMM")
    assert CATALOG.gpu("H100").tflops("fp8") == (1978, "data sheet")
    assert CATALOG.gpu("RTX 3090").tflops("fp8") is None


def test_own_entries_change_the_fields_that_they_state_and_add_new_ones(tmp_path: Path) -> None:
    (tmp_path / "gpus.yaml").write_text(
        "schema: 1\ngpus:\n  - {id: nvidia-jetson-agx-thor-t5000, device_total_gib: 119, confidence: medium}\n"
        + GPU.format(total=23.5, bandwidth=900).split("gpus:\n")[1]
    )
    own = load_catalog(overlay=tmp_path)
    assert own.gpu("Jetson Thor").device_total_gib == 119
    assert own.gpu("Jetson Thor").memory_gb == 128
    assert own.gpu("bench-card").bandwidth_gb_s == 900
    assert load_catalog().gpu("Jetson Thor").device_total_gib is None


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    root = _root(tmp_path)
    first = load_catalog(root)
    assert load_catalog(root) is first
    changed = root / "gpus.yaml"
    changed.write_text(GPU.format(total=23.5, bandwidth=1000))
    # A file system may keep times coarsely; state the newer time instead of waiting for it.
    os.utime(changed, ns=(0, changed.stat().st_mtime_ns + 10**9))
    assert load_catalog(root).gpu("bench-card").bandwidth_gb_s == 1000


@pytest.mark.parametrize(
    ("total", "bandwidth", "says"),
    [
        # 24 GB are 22.35 GiB; a driver never reports more GiB than the box says.
        (25.8, 900, r"device_total_gib 25\.8 is above memory_gb 24: GB stated as GiB\? \(25\.8 GB are 24\.0 GiB\)"),
        (23.5, 3.35, r"bandwidth_gb_s 3\.35 is too low: TB/s stated as GB/s\?"),
        (23.5, 10**9, "less than or equal to 1000000"),
        (1e6, 900, "less than or equal to 10000"),
    ],
)
def test_mixed_up_units_are_named(tmp_path: Path, total: float, bandwidth: float, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_catalog(_root(tmp_path, GPU.format(total=total, bandwidth=bandwidth)))


@pytest.mark.parametrize(
    ("gpus", "says"),
    [
        (
            GPU.format(total=-1, bandwidth=900),
            r"gpus\.yaml, line 6, gpus 'bench-card': device_total_gib: .*greater than 0",
        ),
        (GPU.format(total=23.5, bandwidth="fast"), r"gpus\.yaml, line 8, gpus 'bench-card': bandwidth_gb_s: .*number"),
        (GPU.format(total=23.5, bandwidth=900) + "    bandwith: 3\n", r"bandwith: Extra inputs are not permitted"),
        ("schema: 1\ngpus:\n  - name: nameless\n", r"gpus\.yaml, line 3, gpus number 1: every entry needs an id"),
        ("schema: 1\ngpus:\n  - id: a\n  - id: a\n", r"line 4, gpus number 2: id 'a' stands twice"),
        ("schema: 1\n", "a list 'gpus'"),
        ("schema: 1\ngpus: [", "not readable as YAML"),
    ],
)
def test_a_faulty_file_names_file_entry_and_field(tmp_path: Path, gpus: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_catalog(_root(tmp_path, gpus))


def test_a_newer_schema_and_a_missing_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="file not found"):
        load_catalog(tmp_path)
    with pytest.raises(SchemaTooNew, match="schema 2; this Flipline reads 1"):
        load_catalog(_root(tmp_path, GPU.format(total=23.5, bandwidth=900).replace("schema: 1", "schema: 2")))


def test_heads_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    body = {**CATALOG.model("Qwen/Qwen3-8B").model_dump(exclude_none=True), "num_key_value_heads": 7}
    with pytest.raises(ValueError, match="32 heads do not share 7 KV heads evenly"):
        Catalog(models={"x": body}, gpus={})
