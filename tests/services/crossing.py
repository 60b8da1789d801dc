"""Two candidates in different precisions: their plan, their speeds, and a quality set that both answered."""

from __future__ import annotations

from bundle.folder import open_bundle, seal
from bundle.quality import Judged, write_quality
from planner.conditions import Kind
from planner.contract import Contract
from planner.loads import LoadPoint
from planner.poc import Stage
from services.arrivals import bring_in
from tests.bundle.made import POINT, bundle, request
from tests.planner.made import ASKED, SEEN, SHARED
from tests.services.made import CASE, asking, with_plan

SET = LoadPoint(name="set", shape="quality", in_flight=1, quality_file="q.jsonl", file_sha256="a" * 64,
                input_tokens=64, output_tokens=11, requests=40)  # fmt: skip
RATIO = "vllm over ollama: output_tok_s >= 1 x at parallel-2"
LOSS = "vllm over ollama: quality_loss <= 5 % at set"


def crossing_plan(ws):
    """Give the case a plan of two candidates in FP8 and Q8_0, declared."""
    small = asking(RATIO, LOSS)
    vllm = small.candidates[0].model_copy(update={"contract": {}})
    with_plan(ws, small.model_copy(update={
        "candidates": (vllm, vllm.model_copy(update={"id": "ollama", "role": "baseline"})),
        "load_points": (POINT, SET), "stages": (Stage(name="A", points=(POINT.name, SET.name)),),
        "shared_contract": SHARED,
    }))  # fmt: skip


def brought(ws, folder, candidate, quantization, *, passed=None, failing=0, start=1, **more):
    """A start of a candidate: speed at parallel-2, or with `passed` the set, of whose items the first ones fail."""
    declared = ("weight_format", "quantization")
    asked = ASKED | {"engine": candidate, "quantization": quantization, "weight_format": quantization}
    contract = Contract(shared=SHARED, candidate=asked, observed=SEEN, declared_differences=declared)
    fields = {"candidate": candidate, "kind": Kind.MEASURED, "contract": contract, "start": start, **more}
    if passed:
        folder.mkdir(parents=True)
        judged = [Judged(id=f"i{i}", expects="exact", passed=i >= failing, answer=f"{candidate} {i}")
                  for i in range(passed)]  # fmt: skip
        write_quality(folder / "q.json", judged)
        fields |= {"point": SET, "quality": "q.json"}
    bundle(folder, [request(i, i * 0.35) for i in range(40)], **fields)
    ended = open_bundle(folder)
    seal(folder, ended.model_copy(update={"id": f"{ended.id}-{folder.name}"}))
    bring_in(ws, CASE, folder, "Kim")


def both_speeds(ws, tmp_path):
    for start in (1, 2, 3):
        brought(ws, tmp_path / f"v{start}", "vllm", "fp8", start=start)
        brought(ws, tmp_path / f"o{start}", "ollama", "q8_0", start=start)


def both_sets(ws, tmp_path, failing=0, **more):
    brought(ws, tmp_path / "vq", "vllm", "fp8", passed=40, failing=failing, **more)
    brought(ws, tmp_path / "oq", "ollama", "q8_0", passed=40, **more)
