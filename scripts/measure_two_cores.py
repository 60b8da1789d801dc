"""Measure the shipped "two cores" case anew: two real engines, one tiny model, this machine; one of them in 4 bits too.

`make two-cores` installs what it needs and calls it. Into the folder given by --out it writes plan.yaml, results/ with
one bundle per start, and bundles.zip; about twelve minutes on two cores that do nothing else. The same command goes on
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

from bench.bundling import LOG  # noqa: E402
from bundle.folder import find_bundles, open_bundle, pack, seal  # noqa: E402
from planner.capacity import size  # noqa: E402
from planner.catalog import load_catalog  # noqa: E402
from planner.condition_line import parse_condition  # noqa: E402
from planner.hypothesis_schema import Hypothesis  # noqa: E402
from planner.plan_file import plan_from_yaml, plan_to_yaml  # noqa: E402
from planner.planning import Roles, load_points, make_plan  # noqa: E402
from planner.poc import Plan, Stage  # noqa: E402
from planner.predictions import bound_tok_s, predict  # noqa: E402
from planner.requirements import Requirements  # noqa: E402
from tests.engine.greedy import differing_texts  # noqa: E402
from tests.engine.plans import llama_candidate, shared_contract, vllm_candidate  # noqa: E402
from tests.engine.server import GGUF, GGUF_Q4, LLAMA_SERVER, MODEL  # noqa: E402

SLOTS = 8
REQUESTS = 160  # per point and start: three starts give 480, in waves of up to 16 that move together
STARTS = 3
PORTS = {"vllm": 18000, "llama-server": 18001, "llama-server-q4": 18002}

OWN = (
    ("H-16", "With 16 in flight on eight slots vllm gives 3 times the tokens of llama-server.",
     "vllm over llama-server: output_tok_s >= 3 x at overload near 10 %",
     "Same prompts and lengths; eight wait while eight are served."),
    ("H-bits", "At 4 in flight vllm in fp32 gives 3 times the tokens of llama-server in 4 bits.",
     "vllm over llama-server-q4: output_tok_s >= 3 x at parallel-4 near 10 %",
     "Same prompts and lengths; the precision differs and is declared."),
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
        candidates=(
            vllm,
            llama_candidate(PORTS["llama-server"], slots=SLOTS),
            llama_candidate(PORTS["llama-server-q4"], slots=SLOTS, four_bits=True),
        ),
        points=points,
        shared_contract=shared_contract(),
        declared_differences=("weight_format", "quantization"),
        expectations=predict(sizing, "vllm", points, now),
        now=now,
    )
    own = tuple(
        Hypothesis(id=id, statement=statement, conditions=(parse_condition(line),), method=method, depends_on=("H1",),
                   if_rejected="Suspect the settings before the engine, and measure again.")
        for id, statement, line, method in OWN
    )  # fmt: skip
    stage = Stage(name="A", points=tuple(p.name for p in points), why="The limit is known beforehand: eight slots.")
    return plan.model_copy(update={"stages": (stage,), "starts": STARTS, "hypotheses": (*plan.hypotheses, *own)})


def without_paths(bundle: Path) -> None:
    """Take this machine's folders out of the server's log: a traceback names them, and what ships does not."""
    manifest, log = open_bundle(bundle), bundle / LOG
    text = log.read_text(encoding="utf-8", errors="surrogateescape")
    log.write_text(text.replace(f"{ROOT}/", ""), encoding="utf-8", errors="surrogateescape")
    seal(bundle, manifest)


def main() -> int:
    """Write the plan unless it is there, run it, pack the bundles."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for plan.yaml, results/ and bundles.zip")
    parser.add_argument("--case", type=Path, default=ROOT / "catalog/cases/two-cores.yaml", help="requirements (YAML)")
    options = parser.parse_args()
    for needed in (LLAMA_SERVER, GGUF, GGUF_Q4, MODEL):
        if not (ROOT / needed).exists():
            print(f"{needed} is missing: 'make two-cores' makes it.", file=sys.stderr)
            return 2
    case = yaml.load(options.case.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    file = out / "plan.yaml"
    if not file.exists():
        file.write_text(plan_to_yaml(plan_of(Requirements.model_validate(case["requirements"]))), encoding="utf-8")
    plan = plan_from_yaml(file.read_text(encoding="utf-8"), where=str(file))
    if differing := differing_texts(plan.candidates[:2]):
        print(f"The two servers do not serve the same model: {differing}", file=sys.stderr)
        return 1
    began = time.monotonic()
    # Python's own warnings would print paths of this machine into the servers' logs, which are kept.
    command = [sys.executable, "-m", "bench", "run", str(file), "--out", str(out / "results"), "--allow-command"]
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONWARNINGS": "ignore"}).returncode
    print(f"{time.monotonic() - began:.0f} s")
    if code == 0:
        bundles = find_bundles(out / "results")
        for bundle in bundles:
            without_paths(bundle)
        pack(bundles, out / "bundles.zip")
    return code


if __name__ == "__main__":
    sys.exit(main())
