"""A model that the catalogue lacks: read from a text, a folder or the hub, looked at, and kept as an own entry."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from planner.architecture import modules
from planner.catalog import REPOSITORY_CATALOG, Catalog, load_catalog
from planner.catalog_rows import CATALOG_SCHEMA
from planner.errors import ConflictError, InputError
from planner.memory import kv_bytes_per_request, kv_bytes_per_token, weight_bytes
from planner.model_config import ConfigReading, read_config
from planner.model_schema import Model
from services.workspace import Workspace

INDEX = "model.safetensors.index.json"
MODELOPT = "hf_quant_config.json"
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
LARGEST_TEXT = 60_000_000
ATTENTION = {
    "gqa": "grouped-query attention", "swa": "sliding-window attention", "mla": "latent attention (MLA)",
    "hybrid_gdn": "hybrid with linear attention", "hybrid_mamba2": "hybrid with Mamba 2",
}  # fmt: skip
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Proposal(NamedTuple):
    """A model as it was read, not yet kept."""

    reading: ConfigReading
    source: str

    @property
    def model(self) -> Model:
        """The entry that would be kept."""
        return self.reading.model


def from_text(
    text: str, *, id: str, name: str, on: date, index: str | None = None, quantization: str | None = None,
    headers: Mapping[str, int] | None = None,
) -> Proposal:  # fmt: skip
    """Read a pasted or uploaded config.json called `name`; raises InputError with one sentence."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    source = f"{name}, sha256 {digest[:16]}, read {on}"
    reading = read_config(text, id=id, source=source, index=index, headers=headers, quantization=quantization)
    return Proposal(reading, source)


def from_folder(folder: Path, *, on: date, id: str = "") -> Proposal:
    """Read a checkpoint's folder: config.json, and the headers of its safetensors or else their index.

    Raises InputError that names the file.
    """
    if not folder.is_dir():
        raise InputError("no such folder.", where=str(folder), fix="Give the folder that holds config.json.")
    config = folder / "config.json"
    if not config.is_file():
        gguf = next(folder.glob("*.gguf"), None)
        fix = "GGUF files are not read: give the config.json of the model they were made from." if gguf else (
            "Give the folder that holds config.json."
        )  # fmt: skip
        raise InputError("there is no config.json.", where=str(folder), fix=fix)
    headers = {n: size for path in sorted(folder.glob("*.safetensors")) for n, size in tensor_bytes(path).items()}
    return from_text(
        _text(config), id=id or folder.resolve().name, name=f"{folder.resolve().name}/config.json", on=on,
        index=_text_or_none(folder / INDEX), headers=headers, quantization=_text_or_none(folder / MODELOPT),
    )  # fmt: skip


def tensor_bytes(path: Path) -> dict[str, int]:
    """Bytes per tensor from the header of a safetensors file; the tensors themselves are not read.

    8 bytes of length, then JSON (safetensors format). Raises InputError for a file that is cut off or something else.
    """
    fix = "Fetch the file again."
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= LARGEST_HEADER:
            raise InputError("not a safetensors file.", where=path.name, fix=fix)
        raw = file.read(length)
    if len(raw) < length:
        raise InputError("the file is cut off within its header.", where=path.name, fix=fix)
    try:
        header = json.loads(raw)
        found = {n: int(t["data_offsets"][1]) - int(t["data_offsets"][0])
                 for n, t in header.items() if n != "__metadata__"}  # fmt: skip
    except (ValueError, RecursionError, AttributeError, KeyError, IndexError, TypeError):
        raise InputError("the header is not what safetensors writes.", where=path.name, fix=fix) from None
    if any(size < 0 for size in found.values()):
        raise InputError("the header has a tensor of negative size.", where=path.name, fix=fix)
    return found


def from_hub(hub_id: str, *, on: date, id: str = "", revision: str | None = None) -> Proposal:
    """Fetch config.json and the index of a hub repository, nothing else; needs the optional huggingface_hub.

    Raises InputError when it is not installed, the hub is out of reach, or the repository is gated or unknown.
    """
    if not HUB_ID.fullmatch(hub_id.strip()):
        raise InputError(f"{hub_id!r} is no hub id.", where="hub", fix="Write owner/name, for example Qwen/Qwen3-8B.")
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
    except ImportError:
        raise InputError(
            "huggingface_hub is not installed.",
            where="hub",
            fix="Install it (pip install huggingface_hub), or paste the config.json.",
        ) from None

    def fetched(name: str, optional: bool = False) -> Path | None:
        try:
            return Path(hub.hf_hub_download(hub_id.strip(), name, revision=revision))
        except errors.GatedRepoError:
            raise _hub_error(hub_id, "the repository is gated", "Accept its terms on the hub and log in") from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise _hub_error(hub_id, "the hub knows no such repository or revision", "Check the spelling") from None
        except errors.LocalEntryNotFoundError:
            raise _hub_error(hub_id, "the hub is out of reach from here", "Check the network") from None
        except errors.EntryNotFoundError:
            if optional:
                return None
            raise _hub_error(
                hub_id, f"the repository has no {name}", "Choose the repository with the weights"
            ) from None
        except (OSError, errors.HfHubHTTPError) as e:
            raise _hub_error(hub_id, f"the hub did not answer ({type(e).__name__})", "Try again later") from None

    config = fetched("config.json")
    assert config is not None
    index, quant = fetched(INDEX, optional=True), fetched(MODELOPT, optional=True)
    # The hub's cache keeps each file under snapshots/COMMIT/.
    commit = config.parent.name[:12]
    text = _text(config)
    return from_text(
        text, id=id or hub_id.strip(), name=f"{hub_id.strip()}@{commit} config.json", on=on,
        index=_text(index) if index else None, quantization=_text(quant) if quant else None,
    )  # fmt: skip


def _hub_error(hub_id: str, what: str, fix: str) -> InputError:
    return InputError(f"{what}.", where=hub_id, fix=f"{fix}, or paste the config.json.")


def find(given: str, *, on: date, id: str = "", index: Path | None = None) -> Proposal:
    """Read a file, a folder or a hub id, whichever `given` is: what `model add` takes. Raises InputError."""
    path = Path(given).expanduser()
    if path.is_dir():
        return from_folder(path, on=on, id=id)
    if path.is_file():
        beside = _text(index) if index else _text_or_none(path.parent / INDEX)
        return from_text(_text(path), id=id or path.resolve().parent.name, name=path.name, on=on, index=beside)
    if index is not None or path.suffix == ".json" or given.startswith((".", "/", "~")):
        raise InputError("no such file or folder.", where=given, fix="Give a config.json, a folder or a hub id.")
    return from_hub(given, on=on, id=id)


def _text_or_none(path: Path) -> str | None:
    return _text(path) if path.is_file() else None


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise InputError("the file is far larger than such a file is.", where=path.name, fix="Check the path.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            "not readable as text.", where=path.name, fix="Give the config.json, not the weights."
        ) from None
    except OSError as e:
        raise InputError(
            f"cannot be read: {e.strerror}.", where=path.name, fix="Check the path and its rights."
        ) from None


def summary(proposal: Proposal) -> list[tuple[str, str]]:
    """What was read, as names and values in the order in which they are shown."""
    m, form = proposal.model, proposal.reading.format
    rows = [
        ("Architecture", ", ".join(architecture_words(m))),
        ("Parameters", f"{modules(m).total / 1e9:,.2f} B"),
        ("Layers", _layers(m)),
        ("Heads / KV heads / size", f"{m.num_attention_heads} / {m.num_key_value_heads} / {m.head_dim}"),
        ("Longest context", f"{m.max_position_embeddings:,} tokens"),
        ("KV cache per token, 16 bit", _kv(m)),
        ("Weight format", f"{form.said}, planned as {form.quantization.id}" if form.quantization else form.said),
    ]
    if m.moe:
        shared = f", shared {m.moe.shared_intermediate_size} wide" if m.moe.shared_intermediate_size else ""
        rows.insert(3, ("Experts", f"{m.moe.n_routed_experts}, {m.moe.experts_per_token} per token{shared}"))
    if form.quantization:
        rows.append(("Weights in memory", f"{weight_bytes(m, form.quantization).total / 1e9:,.2f} GB"))
    if proposal.reading.weights:
        rows.append(("Checked against the files", proposal.reading.weights.sentence))
    rows.append(("Source", proposal.source))
    return rows


def architecture_words(m: Model) -> tuple[str, str]:
    """Dense or experts, and the kind of attention, as people call them."""
    form, _, kind = m.architecture.partition("_")
    return ("mixture of experts" if form == "moe" else "dense"), ATTENTION[kind]


def _kv(m: Model) -> str:
    inside = f"{kv_bytes_per_token(m, 'fp16'):,} B"
    if not m.sliding_window:
        return inside
    beyond = 2 * m.sliding_window.window
    growth = kv_bytes_per_request(m, beyond + 1, "fp16") - kv_bytes_per_request(m, beyond, "fp16")
    return f"{inside} inside the window, {growth:,} B beyond it"


def _layers(m: Model) -> str:
    parts = []
    if m.sliding_window:
        w = m.sliding_window
        parts.append(
            f"{w.windowed_layers} with a window of {w.window:,}, {w.full_attention_layers} with full attention"
        )
    if m.linear_attention:
        linear = m.linear_attention
        kind = "linear attention" if linear.kind == "gated_delta_net" else "Mamba 2"
        parts.append(f"{linear.layers} with {kind}, {linear.full_attention_layers} with full attention")
    if m.mla:
        parts.append(f"latent attention, {m.mla.kv_lora_rank} + {m.mla.qk_rope_head_dim} wide")
    if m.moe:
        parts.append(f"{m.moe.moe_layers} with experts")
    return f"{m.num_hidden_layers}" + (f": {'; '.join(parts)}" if parts else "")


def add_model(ws: Workspace, proposal: Proposal, *, replace: bool = False) -> Catalog:
    """Keep a model as an own entry and return the catalogue with it; what stands in the file stays as it is.

    Raises ConflictError for an id that is known already unless `replace`, InputError for an own models.yaml that
    cannot be read; then nothing is written.
    """
    folder = ws.home / "catalog"
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        known = load_catalog(overlay=folder).models
        taken = next((id for id in known if id.lower() == proposal.model.id.lower()), None)
        if taken is not None and not replace:
            raise ConflictError(
                f"the catalogue has {taken!r} already.",
                where="own models",
                fix="Choose another name, or replace the entry.",
            )
        path = folder / "models.yaml"
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        text = _written(before, _entry(proposal, taken))
        if not text.startswith(before.rstrip()):  # rewritten: comments would be gone
            path.with_suffix(".yaml.before").write_text(before, encoding="utf-8")
        _swap(path, text, folder)
    return load_catalog(overlay=folder)


def _entry(proposal: Proposal, taken: str | None) -> dict[str, Any]:
    """The entry as YAML's values; one that replaces states every field, since an overlay changes what it states."""
    said = [*proposal.reading.assumed, *proposal.reading.warnings]
    model = proposal.model.model_copy(update={"id": taken or proposal.model.id, "note": " ".join(said)})
    entry = model.model_dump(mode="json", exclude_defaults=taken is None)
    return {"id": entry.pop("id"), **entry}


def _written(before: str, entry: dict[str, Any]) -> str:
    """The file with the entry: appended below comments and all; rewritten only where that does not parse."""
    body = yaml.load(before, Loader=yaml.CSafeLoader) if before.strip() else None
    rows = [row for row in (body or {}).get("models", []) if row.get("id") != entry["id"]]
    wanted = {"schema": CATALOG_SCHEMA, "models": [*rows, entry]}
    block = _dump([entry])
    head = before.rstrip() or f"schema: {CATALOG_SCHEMA}\nmodels:"
    for indent in ("  ", ""):
        lines = "".join(f"{indent}{line}\n" for line in block.splitlines())
        text = f"{head}\n{lines}"
        try:
            if yaml.load(text, Loader=yaml.CSafeLoader) == wanted:
                return text
        except yaml.YAMLError:
            continue
    return _dump(wanted)


def _dump(value: Any) -> str:
    return yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=110)


def _swap(path: Path, text: str, folder: Path) -> None:
    """Read the new file as the catalogue would, then put it in place in one step."""
    with tempfile.TemporaryDirectory(dir=folder) as trial:
        fresh = Path(trial) / "models.yaml"
        fresh.write_text(text, encoding="utf-8")
        load_catalog(REPOSITORY_CATALOG, overlay=Path(trial))
        fresh.replace(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One writer at a time, over processes too."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
