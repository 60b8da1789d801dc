"""A sixth engine that does not exist: what its YAML file says, for tests that add it from a folder of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from planner.catalog import load_catalog

ADDRESS = "https://example.org/swiftserve/releases/2.1"


def facts(**changed: Any) -> dict[str, Any]:
    """SwiftServe 2.1: rated like vLLM on every criterion, with names of its own; `changed` replaces fields."""
    said = {"versions": "2.0 to 2.1", "read_on": "2026-11-20", "evidence_kind": "reported", "confidence": "low",
            "source": ["release 2.1: what its notes say"]}  # fmt: skip
    axes = {name: {"statement": "As the notes say.", "rating": axis.rating, "reason": "Taken from the notes.", **said}
            for name, axis in load_catalog().engine("vllm").axes.items()}  # fmt: skip
    data: dict[str, Any] = {
        "id": "swiftserve", "name": "SwiftServe", "repository": "https://example.org/swiftserve", "version": "2.1",
        "date": "2026-11-18", "date_basis": "its release page", "read_on": "2026-11-20", "cadence_days": 30,
        "commit": "2.1",
        "sources": {"release 2.1": {"address": ADDRESS, "version": "2.1", "read_on": "2026-11-20",
                                    "read": "release notes, flags and metrics"}},
        "section_sources": {part: ["release 2.1"] for part in (
            "launch", "parameters", "endpoints", "request", "fair_run", "version", "hardware", "formats")},
        "licence": {"spdx": "MIT", "source": "release 2.1"},
        "maintenance": {"status": "active", "since": None, "note": "A release a month.", "sources": ["release 2.1"]},
        "api": ["openai-chat"],
        "air_gap": {"works": None, "how": "", "source": "not read"},
        "hardware": {"os": ["linux"], "min_compute_capability": "8.0", "known_on": ["8.0", "9.0", "12.1"],
                     "known_basis": "its release notes", "documented": ["NVIDIA from 8.0"]},
        "formats": {"weights": [{"weight_format": "safetensors", "quantization": ["bf16", "fp8"],
                                 "min_compute_capability": "8.0", "source": "release 2.1"}],
                    "kv_cache_dtypes": ["auto"]},
        "axes": axes,
        "parameters": {
            "max_context_length": {"flag": "--context", "default": "model"},
            "max_concurrent_sequences": {"flag": "--slots", "default": "64"},
            "host": {"flag": "--bind", "default": "127.0.0.1"}, "port": {"flag": "--listen", "default": "7070"},
            "served_model_name": {"flag": "--call-it", "default": "path"}, "seed": {"flag": "--seed", "default": "0"},
        },
        "launch": {"command": ["swiftserve", "up"], "model": "--weights", "image": "example/swiftserve:2.1",
                   "port": 7070},
        "security": load_catalog().engine("vllm").security.model_dump(mode="json") | {"source": ["release 2.1"]},
        "endpoints": {"health": {"method": "GET", "path": "/health"}, "metrics": {"method": "GET", "path": "/stats"},
                      "version": {"method": "GET", "path": "/version"}},
        "metrics_page": {"source": "release 2.1"},
        "metrics": {"running": ["swift_running"], "waiting": ["swift_waiting"], "kv_use": ["swift_kv_share"],
                    "preemptions": [], "prefix_hits": [], "prefix_queries": [], "prompt_tokens": ["swift_in_total"],
                    "generation_tokens": ["swift_out_total"], "ttft": ["swift_ttft_seconds"],
                    "kv_capacity": ["swift_kv_tokens"]},
        "streaming": {"first_chunk": "role only", "first_chunk_has_token": False, "reasoning_field": "",
                      "usage": "last chunk", "continuous_usage": "no", "cached_tokens": "not reported",
                      "counting": "from usage", "source": "release 2.1"},
        "request": {"max_tokens": "max_tokens", "ignore_eos": True, "min_tokens": False, "cache_salt": False,
                    "unknown_fields": "ignored"},
        "fair_run": [{"topic": "memory", "default": "half of it", "by": "declared", "how": "", "effect": "less KV"}],
    }  # fmt: skip
    return data | changed


def put(own: Path, data: dict[str, Any] | str, name: str = "swiftserve.yaml") -> Path:
    """Write an engine file into a team's own catalogue folder and return that folder."""
    (own / "engines").mkdir(parents=True, exist_ok=True)
    plain = json.loads(json.dumps(data))  # written out: the reader refuses aliases
    text = data if isinstance(data, str) else yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False)
    (own / "engines" / name).write_text(text, encoding="utf-8")
    return own
