"""`catalog check` finds what leads nowhere between the files, and our own catalogue has nothing of the kind."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from planner.catalog import REPOSITORY_CATALOG
from services.catalog_check import CatalogCheck, check_catalog
from tests.planner.fictitious import facts, put

READ = date(2026, 11, 29)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of our catalogue, to break."""
    return Path(shutil.copytree(REPOSITORY_CATALOG, tmp_path / "catalog-copy"))


def checked(root: Path, tmp_path: Path, today: date = READ) -> CatalogCheck:
    return check_catalog(tmp_path / "home", today, root, root / "cases")


def replaced(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text(encoding="utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_our_own_catalogue_is_whole(tmp_path: Path) -> None:
    found = check_catalog(tmp_path, READ)
    assert found.broken == ()
    assert found.counts == "76 models, 32 GPUs, 5 engines can be read."


def test_stale_engines_and_ratings_of_other_versions_are_named(tmp_path: Path) -> None:
    found = check_catalog(tmp_path, READ)
    assert [line.split()[0] for line in found.stale] == ["Ollama"]
    assert "TensorRT-LLM: metrics was read of 1.3.0 to 1.4.0rc4; the file describes 1.2.1." in found.aside
    later = check_catalog(tmp_path, date(2027, 6, 1))
    assert {line.split()[0] for line in later.stale} == {"Ollama", "vLLM", "SGLang", "TensorRT-LLM"}


def test_sources_that_cannot_be_found_again_are_named(tmp_path: Path, root: Path) -> None:
    def thin() -> list[str]:
        return [line for line in checked(root, tmp_path).aside if "entries name" in line or "not noted" in line]

    assert thin() == []  # of ours, each can be looked up
    own = tmp_path / "home" / "catalog"
    own.mkdir(parents=True)
    (own / "models.yaml").write_text(
        "schema: 1\nmodels:\n  - {id: Qwen/Qwen3-32B, sources: [its config.json]}\n"
        "  - {id: tiny-llama-4x256, sources: [tests/engine/tiny_model.py]}\n"
    )
    (own / "gpus.yaml").write_text("schema: 1\ngpus:\n  - {id: amd-mi325x, sources: [data sheet]}\n")
    replaced(root, "engines/vllm.yaml", "version: 0.28.0, read_on", "version: version not noted, read_on")
    assert thin() == [
        "models.yaml: 1 of 76 entries name no address or repository: Qwen/Qwen3-32B.",
        "models.yaml: 1 of 76 entries name an address, and no version or day: tiny-llama-4x256.",
        "gpus.yaml: 1 of 32 entries name no address or repository: amd-mi325x.",
        "vLLM: the version of 1 of 19 sources was not noted, only the day they were read: "
        "https://github.com/vllm-project/vllm/issues/54383.",
    ]


DEAD = [
    ("cases/nortia.yaml", "model: Qwen/Qwen3-32B", "model: Qwen/Qwen3-33B", "unknown model 'Qwen/Qwen3-33B'"),
    ("cases/nortia.yaml", "gpu: nvidia-gb10", "gpu: nvidia-gb11", "unknown GPU"),
    ("cases/nortia.yaml", "current_engine: ollama", "current_engine: olama", "unknown engine 'olama'"),
    ("cases/nortia.yaml", "quantization: int4", "quantization: int44", "'int44'"),
    ("cases/nortia.yaml", "candidate: vllm", "candidate: vlm", "imported: unknown candidate 'vlm'"),
    ("cases/two-cores/plan.yaml", "engine: vllm", "engine: vlm", "unknown engine 'vlm'"),
    ("engines/vllm.yaml", "  seed:\n", "  sead:\n", "parameters.seed: its launch recipe needs a flag"),
    ("engines/vllm.yaml", "  waiting: [", "  wating: [", "metrics.waiting: no names"),
    ("engines/vllm.yaml", "    kv_capacity: {label", "    kv_capasity: {label", "read.kv_capasity: reads a role"),
    ("engines/vllm.yaml", "expect: 22048", "expect: 22049", "log_patterns.kv_capacity: does not read its own example"),
    ("engines/vllm.yaml", "issues/57475'}", "issues/57476'}", "is none of the file's sources"),
    ("engines/ollama.yaml", "becomes: q8_0", "becomes: q8_9", "q8_9 in gguf is no format that it reads"),
    ("engines/tgi.yaml", "name: Hugging Face TGI", "name: x\nname: y", "'name' stands twice"),
    ("engines/tgi.yaml", "only_documented: true", "only_documented: false", "rests on documentation alone"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "says"), DEAD, ids=[d[2].strip() for d in DEAD])
def test_what_leads_nowhere_is_broken(root: Path, tmp_path: Path, file: str, old: str, new: str, says: str) -> None:
    replaced(root, file, old, new)
    assert any(says in line for line in checked(root, tmp_path).broken)


def test_a_criterion_that_no_engine_rates_is_broken(root: Path, tmp_path: Path) -> None:
    for path in (root / "engines").glob("*.yaml"):
        replaced(root, f"engines/{path.name}", "  batching:\n", "  batch:\n")
    assert "planner/weighting.py: weighs 'batching', which no engine rates." in checked(root, tmp_path).broken


def test_own_entries_that_are_wrong_are_broken_and_an_own_engine_is_checked_too(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "home" / "catalog"
    put(own, facts(axes={"openai_api": facts()["axes"]["openai_api"]}))
    put(own, "colour: red\n", "tgi.yaml")
    found = checked(root, tmp_path)
    assert [line for line in found.broken if "tgi" in line] == [
        "engines/tgi.yaml, line 1: colour: is no field here. docs/catalog.md lists the fields."
    ]
    assert "SwiftServe: batching is not rated, so it counts as unknown." in found.aside
    assert "6 engines can be read" in found.counts
