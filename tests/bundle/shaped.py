"""Bundles of the load shapes that have metrics of their own, made by hand."""

from __future__ import annotations

from pathlib import Path

from bundle.folder import open_bundle, seal
from bundle.quality import Judged, write_quality
from bundle.records import write_records
from planner.loads import LoadPoint
from tests.bundle.made import bundle, request

FIGHT = LoadPoint(name="fight", shape="interference", in_flight=2, aggressors=1, aggressor_at_s=1.0,
                  aggressor_input_tokens=900, input_tokens=64, output_tokens=11, requests=2)  # fmt: skip
SET = LoadPoint(name="set", shape="quality", in_flight=1, quality_file="q.jsonl", file_sha256="a" * 64,
                input_tokens=64, output_tokens=11, requests=4)  # fmt: skip
PLAIN = LoadPoint(name="plain", in_flight=1, input_tokens=64, output_tokens=11, requests=4)
JSON = PLAIN.model_copy(update={"name": "json", "json_schema": {"type": "object"}, "pair_of": "plain"})


def interference(folder: Path) -> Path:
    """Two victims with a token each 0.05 s from 0.2 s on, and a long prompt from 0.5 s to 0.6 s."""
    records = [request(i, 0.0, cohort="victim") for i in range(2)]
    records.append(request(0, 0.5, ttft_s=0.1, tokens=1, cohort="aggressor"))
    return bundle(folder, records, point=FIGHT)


def quality(folder: Path, passed: tuple[bool, ...] = (True, True, True, False)) -> Path:
    """A quality set of which three in four passed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_quality(folder / "q.json", [Judged(id=str(i), expects="exact", passed=p, answer="") for i, p in
                                      enumerate(passed)])  # fmt: skip
    return bundle(folder, [request(i, i * 0.7) for i in range(4)], point=SET, quality="q.json")


def structured(folder: Path, valid: tuple[bool, ...] = (True, True, False, True)) -> Path:
    """The same four prompts with a token each 0.05 s, and with a schema each 0.06 s."""
    bundle(folder, [request(i, i * 0.7) for i in range(4)], point=PLAIN)
    manifest = open_bundle(folder)
    records = [request(i, i * 0.8, itl_s=0.06, json_valid=v) for i, v in enumerate(valid)]
    write_records(folder / "records" / "r2.parquet", records)
    second = manifest.repeats[0].model_copy(update={"load_point": "json", "records": "records/r2.parquet"})
    seal(folder, manifest.model_copy(update={"points": (PLAIN, JSON), "repeats": (*manifest.repeats, second)}))
    return folder
