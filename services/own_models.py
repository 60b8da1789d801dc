"""A model that was read: what it is, in words, and how it is kept as an own entry of the catalogue."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from planner.architecture import modules
from planner.catalog import REPOSITORY_CATALOG, Catalog, load_catalog
from planner.catalog_rows import CATALOG_SCHEMA
from planner.errors import ConflictError
from planner.memory import kv_bytes_per_request, kv_bytes_per_token, weight_bytes
from planner.model_schema import Model
from services.model_reading import Proposal
from services.workspace import Workspace

ATTENTION = {
    "gqa": "grouped-query attention", "swa": "sliding-window attention", "mla": "latent attention (MLA)",
    "hybrid_gdn": "hybrid with linear attention", "hybrid_mamba2": "hybrid with Mamba 2",
}  # fmt: skip


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
