"""A model from a text, a folder or the hub is read, kept in the own catalogue, and never costs what stands there."""

from __future__ import annotations

import json
import struct
import sys
import types
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.architecture import MODELLED
from planner.errors import ConflictError, InputError
from planner.memory import weight_bytes
from services.model_reading import find, from_folder, from_hub, from_text, tensor_bytes
from services.own_models import ATTENTION, add_model, summary
from services.workspace import open_catalog
from tests.planner.test_model_config import CONFIGS, LLAMA

ON = date(2026, 11, 29)
TEXT = json.dumps(LLAMA)
OWN = """# our machines' models
schema: 1
models:
  # the small one, see wiki
  - id: ours/small
    architecture: dense_gqa
    num_hidden_layers: 4
    hidden_size: 256
    num_attention_heads: 4
    num_key_value_heads: 2
    head_dim: 64
    intermediate_size: 688
    vocab_size: 908
    max_position_embeddings: 4096
    tie_word_embeddings: false
    sources: ["made here"]
    confidence: high
"""


def safetensors(path: Path, tensors: dict[str, int]) -> None:
    """A file with a header as the format has it, and no tensors behind it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)


def test_a_pasted_config_becomes_an_entry_with_its_source(ws) -> None:
    proposal = from_text(TEXT, id="ours/new", name="config.json", on=ON)
    catalog = add_model(ws, proposal)
    kept = catalog.model("ours/new")
    assert kept.hidden_size == 4096
    assert kept.confidence == "medium"
    assert kept.source.startswith("config.json, sha256 ") and kept.source.endswith("read 2026-11-29")
    assert open_catalog(ws.home).model("ours/new") == kept
    assert not list((ws.home / "catalog").glob("tmp*"))


@pytest.mark.parametrize("name", ["gemma-4-26b-a4b", "deepseek-v3.2", "nemotron-3-nano-30b-a3b", "qwen3.5-35b-a3b"])
def test_every_kind_of_entry_comes_back_from_the_file_as_it_was(ws, name: str) -> None:
    text = (CONFIGS / f"{name}.json").read_text(encoding="utf-8")
    proposal = from_text(text, id=f"ours/{name}", name="config.json", on=ON)
    kept = add_model(ws, proposal).model(f"ours/{name}")
    assert kept.model_dump(exclude={"note"}) == proposal.model.model_dump(exclude={"note"})


def test_what_was_assumed_is_kept_as_the_note(ws) -> None:
    body = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    catalog = add_model(ws, from_text(json.dumps(body), id="ours/mha", name="x.json", on=ON))
    assert "every head has its own (MHA)" in catalog.model("ours/mha").note


def test_an_own_file_keeps_its_comments_and_entries(ws) -> None:
    own = ws.home / "catalog" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(OWN, encoding="utf-8")
    catalog = add_model(ws, from_text(TEXT, id="ours/new", name="config.json", on=ON))
    assert {"ours/small", "ours/new"} <= set(catalog.models)
    assert own.read_text(encoding="utf-8").startswith(OWN)


def test_a_known_name_is_refused_and_replaced_only_when_asked(ws) -> None:
    proposal = from_text(TEXT, id="ours/new", name="config.json", on=ON)
    add_model(ws, proposal)
    other = from_text(json.dumps(LLAMA | {"num_hidden_layers": 40}), id="OURS/new", name="config.json", on=ON)
    before = (ws.home / "catalog" / "models.yaml").read_bytes()
    with pytest.raises(ConflictError, match="has 'ours/new' already"):
        add_model(ws, other)
    assert (ws.home / "catalog" / "models.yaml").read_bytes() == before
    replaced = add_model(ws, other, replace=True)
    assert replaced.model("ours/new").num_hidden_layers == 40
    assert (ws.home / "catalog" / "models.yaml.before").read_bytes() == before


def test_a_shipped_entry_is_replaced_whole(ws) -> None:
    """An overlay changes the fields that it states: experts of the shipped entry must not stay under a dense model."""
    proposal = from_text(TEXT, id="Qwen/Qwen3-30B-A3B", name="config.json", on=ON)
    with pytest.raises(ConflictError):
        add_model(ws, proposal)
    assert add_model(ws, proposal, replace=True).model("Qwen/Qwen3-30B-A3B").moe is None


def test_an_own_file_that_cannot_be_read_stays_as_it_is(ws) -> None:
    own = ws.home / "catalog" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("models: [", encoding="utf-8")
    with pytest.raises(InputError, match=r"models\.yaml, line 2: is not readable as YAML"):
        add_model(ws, from_text(TEXT, id="ours/new", name="config.json", on=ON))
    assert own.read_text(encoding="utf-8") == "models: ["


def test_a_folder_is_read_with_its_headers(tmp_path: Path) -> None:
    folder = tmp_path / "our-model"
    folder.mkdir()
    (folder / "config.json").write_text("\ufeff" + TEXT, encoding="utf-8")
    safetensors(folder / "a.safetensors", {"model.layers.0.mlp.up_proj.weight": 16_000_000_000, "lm_head.weight": 2})
    safetensors(folder / "b.safetensors", {"vision_tower.patch.weight": 600_000_000})
    proposal = from_folder(folder, on=ON)
    assert proposal.model.id == "our-model"
    check = proposal.reading.weights
    assert check is not None and check.said_by == "safetensors headers"
    assert proposal.reading.format.quantization is not None
    # What memory counts is what the files have: 16.0 + 0.6 GB.
    assert weight_bytes(proposal.model, proposal.reading.format.quantization).total == pytest.approx(16.6e9, rel=1e-3)


def test_a_folder_without_weights_is_read_with_its_index(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(TEXT, encoding="utf-8")
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"lm_head.weight": "a"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    check = from_folder(tmp_path, on=ON).reading.weights
    assert check is not None and check.stated_bytes == 16_060_522_496


def test_modelopts_own_file_gives_the_format(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(TEXT, encoding="utf-8")
    quant = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quant), encoding="utf-8")
    form = from_folder(tmp_path, on=ON).reading.format
    assert form.quantization is not None and (form.quantization.id, form.kv_dtype) == ("nvfp4", "fp8")


def test_wrong_folders_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        from_folder(tmp_path / "nowhere", on=ON)
    with pytest.raises(InputError, match=r"there is no config\.json"):
        from_folder(tmp_path, on=ON)
    (tmp_path / "model-Q4_K_M.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match="GGUF files are not read"):
        from_folder(tmp_path, on=ON)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "not a safetensors file"),
        (b"\x00" * 8, "not a safetensors file"),
        (b"\xff" * 64, "not a safetensors file"),
        (struct.pack("<Q", 100) + b"{}", "cut off within its header"),
        (struct.pack("<Q", 4) + b"nope", "not what safetensors writes"),
        (struct.pack("<Q", 13) + b'{"a": [1, 2]}', "not what safetensors writes"),
        (struct.pack("<Q", 31) + b'{"a":{"data_offsets": [10, 1]}}', "negative size"),
    ],
)
def test_a_broken_safetensors_header_is_one_sentence(tmp_path: Path, raw: bytes, sentence: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=sentence):
        tensor_bytes(path)


class FakeHub:
    """The part of huggingface_hub that is used: files by repository, or the error that the hub would raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, files: dict[str, str], fault: str = "") -> None:
        errors = types.ModuleType("huggingface_hub.errors")
        bases: dict[str, type[Exception]] = {"HfHubHTTPError": OSError}
        for name in ("RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError"):
            bases[name] = OSError
        for name, base in bases.items():
            setattr(errors, name, type(name, (base,), {}))
        errors.GatedRepoError = type("GatedRepoError", (errors.RepositoryNotFoundError,), {})
        errors.LocalEntryNotFoundError = type("LocalEntryNotFoundError", (errors.EntryNotFoundError,), {})
        hub = types.ModuleType("huggingface_hub")
        hub.errors = errors
        self.asked: list[str] = []

        def download(repo: str, name: str, revision: str | None = None) -> str:
            self.asked.append(name)
            if fault:
                raise getattr(errors, fault, OSError)("said by the hub")
            if name not in files:
                raise errors.EntryNotFoundError(name)
            path = folder / "snapshots" / "0e9e39f249a16976918f6564b8830bc894c89659" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[name], encoding="utf-8")
            return str(path)

        hub.hf_hub_download = download
        monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
        monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)


def test_a_hub_id_is_read_from_two_small_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index = json.dumps({"metadata": {"total_size": 16_060_522_496}})
    hub = FakeHub(monkeypatch, tmp_path, {"config.json": TEXT, "model.safetensors.index.json": index})
    proposal = from_hub("org/model", on=ON)
    assert proposal.model.id == "org/model"
    assert proposal.source.startswith("org/model@0e9e39f249a1 config.json, sha256 ")
    assert proposal.reading.weights is not None and not proposal.reading.weights.warning
    assert hub.asked == ["config.json", "model.safetensors.index.json", "hf_quant_config.json"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("GatedRepoError", "the repository is gated"),
        ("RepositoryNotFoundError", "no such repository or revision"),
        ("LocalEntryNotFoundError", "out of reach from here"),
        ("EntryNotFoundError", r"has no config\.json"),
        ("ConnectionError", "did not answer"),
    ],
)
def test_the_hub_says_no_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, sentence: str
) -> None:
    FakeHub(monkeypatch, tmp_path, {}, fault)
    with pytest.raises(InputError, match=sentence) as e:
        from_hub("org/model", on=ON)
    assert "paste the config.json" in str(e.value)


def test_without_huggingface_hub_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"huggingface_hub is not installed\. Install it"):
        from_hub("org/model", on=ON)
    with pytest.raises(InputError, match="is no hub id"):
        from_hub("model", on=ON)


def test_one_command_takes_a_file_a_folder_or_a_hub_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "our-model"
    folder.mkdir()
    (folder / "config.json").write_text(TEXT, encoding="utf-8")
    assert find(str(folder), on=ON).model.id == "our-model"
    assert find(str(folder / "config.json"), on=ON).model.id == "our-model"
    assert find(str(folder / "config.json"), on=ON, id="ours/named").model.id == "ours/named"
    FakeHub(monkeypatch, tmp_path / "cache", {"config.json": TEXT})
    assert find("org/model", on=ON).model.id == "org/model"
    with pytest.raises(InputError, match="no such file or folder"):
        find("./nowhere/config.json", on=ON)


def test_every_modelled_architecture_has_words() -> None:
    assert {architecture.partition("_")[2] for architecture in MODELLED} == set(ATTENTION)


def test_the_summary_reads_as_a_person_would_say_it() -> None:
    text = (CONFIGS / "gpt-oss-20b.json").read_text(encoding="utf-8")
    rows = dict(summary(from_text(text, id="ours/oss", name="config.json", on=ON)))
    assert rows["Architecture"] == "mixture of experts, sliding-window attention"
    # 2 x 8 KV heads x 64 x 2 bytes = 2,048 per layer: 24 layers inside the window, 12 beyond it.
    assert rows["KV cache per token, 16 bit"] == "49,152 B inside the window, 24,576 B beyond it"
    assert rows["Layers"] == "24: 12 with a window of 128, 12 with full attention; 24 with experts"
    assert rows["Experts"] == "32, 4 per token"
    assert rows["Weight format"] == "mxfp4, planned as mxfp4"
    assert rows["Parameters"] == "20.91 B"  # 21B by the maker's name
