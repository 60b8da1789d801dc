"""What a checkpoint's files say beside config.json: total bytes, tensors, and the format of the weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError
from planner.frozen import Frozen
from planner.quantization import QUANTIZATIONS, ModuleName, Quantization
from planner.units import GIB

TOLERANCE = 0.02  # above it the difference between formula and files is a warning
TOWER = re.compile(r"(^|\.)(vision|visual|audio|multi_modal|mm_|image|speech|vit)[\w]*", re.IGNORECASE)
DRAFT = re.compile(r"(^|\.)mtp\.|(^|\.)layers\.(\d+)\.(eh_proj|enorm|hnorm|shared_head)")
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")

# A quantization's excluded module -> the planner's module. Order counts: shared experts are no routed experts.
_MODULES: tuple[tuple[str, ModuleName], ...] = (
    (r"lm_head", "lm_head"), (r"embed", "embedding"), (r"router|mlp\.gate\b|block_sparse_moe\.gate|^gate$", "router"),
    (r"attn|attention", "attention"), (r"shared_expert", "mlp"), (r"experts", "experts"), (r"\bmlp\b", "mlp"),
)  # fmt: skip
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_METHODS = {"fp8": "fp8", "fbgemm_fp8": "fp8", "awq": "int4", "gptq": "int4", "gptq_marlin": "int4",
            "awq_marlin": "int4", "auto-round": "int4", "mxfp4": "mxfp4"}  # fmt: skip
_BY_WIDTH = {("float", "8"): "fp8", ("float", "4"): "nvfp4", ("int", "8"): "int8", ("int", "4"): "int4"}


class Format(Frozen):
    """How the files' weights are stored, as the planner's format; `quantization` is None where it is not known."""

    said: str
    quantization: Quantization | None
    kv_dtype: str | None = None
    note: str = ""


def read_format(quant: Any, dtype: Any, layers: int) -> Format:
    """The format from quantization_config (or none and torch_dtype); an unknown one is said, not guessed."""
    if not isinstance(quant, Mapping) or not quant:
        id = _DTYPES.get(str(dtype).removeprefix("torch."))
        note = "" if id else "torch_dtype is not stated; the width of the files' weights is unknown."
        return Format(said=str(dtype or "not stated"), quantization=QUANTIZATIONS[id] if id else None, note=note)
    method = str(quant.get("quant_method") or quant.get("quant_algo") or "quantization").lower()
    id = _format_id(method, quant)
    kv = quant.get("kv_cache_scheme") or quant.get("kv_cache_quant_algo")
    kv_dtype = "fp8" if kv and ("8" in str(kv.get("num_bits") if isinstance(kv, Mapping) else kv)) else None
    if id is None:
        note = f"quantization {method!r} is not one that is modelled; state the format of the model plan yourself."
        return Format(said=method, quantization=None, kv_dtype=kv_dtype, note=note)
    base = QUANTIZATIONS[id]
    wide = _kept_wide(quant, layers) & base.narrow
    if wide:
        base = base.model_copy(
            update={"narrow": base.narrow - wide, "basis": f"{base.basis}; kept wide: {', '.join(sorted(wide))}"}
        )
    return Format(said=method, quantization=base, kv_dtype=kv_dtype)


def _format_id(method: str, quant: Mapping[str, Any]) -> str | None:
    bits = quant.get("bits") or quant.get("w_bit")
    if method in ("modelopt", "nvfp4", "fp8") and quant.get("quant_algo"):
        algorithm = str(quant["quant_algo"]).lower()
        return {"nvfp4": "nvfp4", "fp8": "fp8", "w4a16_awq": "int4", "int4_awq": "int4"}.get(algorithm)
    if method == "compressed-tensors":
        groups = quant.get("config_groups")
        widths = {
            (str(w.get("type")), str(w.get("num_bits")))
            for g in (groups.values() if isinstance(groups, Mapping) else ())
            if isinstance(g, Mapping) and isinstance(w := g.get("weights"), Mapping)
        }
        return _BY_WIDTH.get(next(iter(widths))) if len(widths) == 1 else None
    if method == "bitsandbytes":
        return "int8" if quant.get("load_in_8bit") is True else None
    known = _METHODS.get(method)
    if known == "int4" and bits is not None:
        return {4: "int4", 8: "int8"}.get(bits) if isinstance(bits, int) else None
    return known


def _kept_wide(quant: Mapping[str, Any], layers: int) -> frozenset[ModuleName]:
    """Modules that the format leaves out in every layer; one left out in a few layers stays narrow."""
    seen: dict[ModuleName, set[str]] = {}
    for key in ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers"):
        names = quant.get(key)
        for name in names if isinstance(names, list) else ():
            module = next((m for pattern, m in _MODULES if re.search(pattern, str(name)[:300])), None)
            if module and not TOWER.search(str(name)[:300]):
                layer = LAYER.search(str(name).replace("\\", "")[:300])
                seen.setdefault(module, set()).add(layer.group(1) if layer else "all")
    return frozenset(m for m, where in seen.items() if "all" in where or len(where) >= 0.9 * layers)


class Files(Frozen):
    """Bytes of a checkpoint's files: all, towers for images and sound, draft layers; what the names tell.

    `knows_parts` where each tensor's bytes are known; an index gives the total alone.
    """

    said_by: str
    total_bytes: int
    tower_bytes: int = 0
    draft_bytes: int = 0
    knows_parts: bool = False
    has_output_projection: bool | None = None
    has_tower: bool | None = None


def from_headers(tensors: Mapping[str, int], layers: int) -> Files:
    """Files from the headers of safetensors: bytes per tensor by name."""
    rows = tensors
    total = sum(rows.values())
    tower = sum(size for name, size in rows.items() if TOWER.search(name))
    draft = sum(size for name, size in rows.items() if _is_draft(name, layers))
    return Files(
        said_by="safetensors headers", total_bytes=total, tower_bytes=tower, draft_bytes=draft,
        knows_parts=True, has_output_projection=_has_projection(rows), has_tower=tower > 0,
    )  # fmt: skip


def from_index(index: Mapping[str, Any], where: str) -> Files:
    """Files from model.safetensors.index.json: metadata.total_size and the names of the tensors."""
    meta = index.get("metadata")
    size = meta.get("total_size") if isinstance(meta, Mapping) else None
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 10**14:
        raise InputError(
            "metadata.total_size is missing or no number of bytes.",
            where=where,
            fix="Give the model.safetensors.index.json as the maker ships it.",
        )
    names = index.get("weight_map")
    known = isinstance(names, Mapping) and len(names) > 0
    return Files(
        said_by="model.safetensors.index.json",
        total_bytes=size,
        has_output_projection=_has_projection(names) if known and isinstance(names, Mapping) else None,
        has_tower=any(TOWER.search(n) for n in names) if known and isinstance(names, Mapping) else None,
    )


def _has_projection(names: Mapping[str, Any]) -> bool:
    return any(name.split(".")[-2:-1] == ["lm_head"] for name in names)


def _is_draft(name: str, layers: int) -> bool:
    layer = LAYER.search(name)
    beyond = layer is not None and int(layer.group(1)[:9]) >= layers and not TOWER.search(name)
    return beyond or DRAFT.search(name) is not None


class WeightsCheck(Frozen):
    """The formula's weights against the files': bytes of both, and what was made of the difference.

    `extra_gib` is what memory must count on top of the text model's formula.
    """

    computed_bytes: int
    stated_bytes: int
    said_by: str
    extra_gib: float
    sentence: str
    warning: bool

    @property
    def difference(self) -> float:
        """(formula - files) / files."""
        return (self.computed_bytes - self.stated_bytes) / self.stated_bytes


def check_weights(text: int, tower: int, draft: int, files: Files) -> WeightsCheck:
    """Compare bytes by formula (text model, towers, draft layers) with the files', and explain the difference.

    The files' own figures for towers and draft layers go before the formula's.
    """
    tower = files.tower_bytes or tower
    draft = files.draft_bytes if files.knows_parts else draft
    stated = max(1, files.total_bytes - draft)
    off = (text + tower - stated) / stated
    counts_rest = tower > 0 or bool(files.has_tower) or off < -TOLERANCE
    parts = "".join(
        f"; {what} {size / 1e9:,.2f} GB" for what, size in (("tower", tower), ("draft layers set aside", draft)) if size
    )
    verdict = (
        f"within {TOLERANCE:.0%}." if abs(off) <= TOLERANCE
        else "memory counts the formula's, the larger of the two; check the weight format." if off > 0
        else "memory counts the files', which have tensors that the formula does not know."
    )  # fmt: skip
    return WeightsCheck(
        computed_bytes=text + tower,
        stated_bytes=stated,
        said_by=files.said_by,
        extra_gib=max(0, stated - text) / GIB if counts_rest else 0.0,
        sentence=f"{(text + tower) / 1e9:,.2f} GB by formula, {stated / 1e9:,.2f} GB by {files.said_by}{parts}: "
        f"{off:+.1%}, {verdict}",
        warning=abs(off) > TOLERANCE,
    )
