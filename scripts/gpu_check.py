"""Prove the whole on a machine with PyTorch and transformers, with a GPU and without a network.

    python scripts/gpu_check.py --geometry 8b --out /tmp/gpu-check [--python /path/to/python] [--gpu nvidia-h200-sxm]

A model of the stated geometry is made on the spot with random weights, `transformers serve` serves it, our plan is
measured against it (dialect openai), and what was measured stands beside the bound from memory bandwidth. The bundle
holds the GPU's memory, power and use where nvidia-ml-py is installed. `--python` names the Python that has torch and
transformers with what its server needs (fastapi, uvicorn, openai, accelerate); by default this one.

`--geometry tiny` proves the same in minutes on a CPU. Exit codes: 0 measured, 1 not all of it, 2 something is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bundle.folder import find_bundles, open_bundle  # noqa: E402
from bundle.manifest import Manifest  # noqa: E402
from bundle.records import read_telemetry  # noqa: E402
from bundle.summary import summarise  # noqa: E402
from planner.capacity import size  # noqa: E402
from planner.catalog import Catalog, load_catalog  # noqa: E402
from planner.conditions import Evidence  # noqa: E402
from planner.errors import FliplineError, InputError  # noqa: E402
from planner.loads import LoadPoint  # noqa: E402
from planner.plan_file import plan_to_yaml  # noqa: E402
from planner.poc import Launch, Plan, PlanCandidate, Stage  # noqa: E402
from planner.predictions import bound_tok_s  # noqa: E402
from planner.requirements import Hardware, ModelPlan, Requirements  # noqa: E402

NEEDED = ("torch", "transformers", "tokenizers", "fastapi", "uvicorn", "openai", "pydantic", "accelerate")
LOOK = f"""
import importlib.util as u, json
missing = [m for m in {NEEDED!r} if u.find_spec(m) is None]
told = {{"missing": missing}}
if not missing:
    import torch, transformers
    told |= {{"torch": torch.__version__, "transformers": transformers.__version__, "gpu": ""}}
    if torch.cuda.is_available():
        told["gpu"] = torch.cuda.get_device_name(0)
print(json.dumps(told))
"""
DEVICE = ("gpu_memory_used_bytes", "gpu_power_w", "gpu_utilisation")
SHOWN = (("output_tok_s", "value"), ("measured_over_bound", "value"), ("ttft_ms", "p50"), ("tpot_ms", "p50"))
CPU = "two-cpu-cores"


class Geometry(NamedTuple):
    """A model of the catalogue, the precision it is made in, and the load that shows its speed."""

    model: str
    quantization: str
    dtype: str
    input_tokens: int
    output_tokens: int
    in_flight: tuple[int, ...]
    rounds: int


GEOMETRIES = {
    "8b": Geometry("meta-llama/Llama-3.1-8B-Instruct", "bf16", "bfloat16", 512, 128, (1, 8, 32), 4),
    "tiny": Geometry("tiny-llama-4x256", "fp32", "float32", 64, 16, (1, 2), 8),
}


def look(python: Path) -> dict[str, Any]:
    """What that Python has; raises InputError with the packages it lacks."""
    try:
        done = subprocess.run([str(python), "-W", "ignore", "-c", LOOK], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        raise InputError(f"cannot be run: {e}.", where=str(python)) from None
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if told["missing"]:
        raise InputError(f"lacks {', '.join(told['missing'])}.", where=str(python),
                         fix="pip install 'transformers[serving]' accelerate, or name another one with --python.",
                         )  # fmt: skip
    return told


def gpu_of(catalog: Catalog, name: str) -> str:
    """The catalogue's id for a device as its driver names it; raises InputError when none fits."""
    if not name:
        return CPU
    words = name.lower()
    fitting = [(len(a), g.id) for g in catalog.gpus.values() for a in (g.name, *g.aliases) if a.lower() in words]
    if not fitting:
        raise InputError(f"the catalogue does not know the device {name!r}.", where="gpu",
                         fix="Name one of catalog/gpus.yaml with --gpu.")  # fmt: skip
    return max(fitting)[1]


def plan_of(options: argparse.Namespace, told: dict[str, Any], model: Path) -> Plan:
    """One candidate on `transformers serve`, closed loops, and the bound of each."""
    geometry, catalog = GEOMETRIES[options.geometry], load_catalog()
    gpu = options.gpu or gpu_of(catalog, told["gpu"])
    batching = options.batching if options.batching is not None else bool(told["gpu"])
    points = tuple(
        LoadPoint(name=f"parallel-{n}" if n > 1 else "single", in_flight=n, input_tokens=geometry.input_tokens,
                  output_tokens=geometry.output_tokens, requests=max(8, geometry.rounds * n), warmup_requests=n)
        for n in geometry.in_flight
    )  # fmt: skip
    requirements = Requirements(
        peak_users_min=1, peak_users_max=max(geometry.in_flight), user_tok_s_promise=1, user_tok_s_target=2, ttft_s=60,
        input_tokens=geometry.input_tokens, output_tokens=geometry.output_tokens,
        context_tokens=geometry.input_tokens + geometry.output_tokens,
        model_plans=(ModelPlan(id="M", label=options.geometry, model=geometry.model, favourite=True,
                               quantization=geometry.quantization,
                               kv_cache_dtype="fp32" if geometry.quantization == "fp32" else "bf16"),),
        hardware=(Hardware(gpu=gpu, in_house=True),),
    )  # fmt: skip
    sizing = size(requirements, requirements.favourite_plan, requirements.hardware[0], catalog)
    command = (
        str(options.python), "-W", "ignore", "-m", "transformers.cli.transformers", "serve", str(model),
        "--host", "127.0.0.1", "--port", str(options.port), "--dtype", geometry.dtype,
        "--device", "cuda:0" if told["gpu"] else "cpu", *(("--continuous-batching",) if batching else ()),
    )  # fmt: skip
    hub = (options.out / "hub").absolute()
    hub.mkdir(parents=True, exist_ok=True)  # the server's list of models is read from it, and it may not be missing
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_CACHE": str(hub)}
    return Plan(
        case="gpu-check", title=f"transformers serve, {options.geometry} with random weights",
        shared_contract={
            "model": geometry.model, "model_revision": "random weights", "tokenizer": "tests/engine/tiny_model.py",
            "sampling": "temperature 0", "load_generator": "same machine, loopback",
        },
        candidates=(
            PlanCandidate(
                id="transformers", role="favourite", engine="openai", model_name=str(model),
                launch=Launch(url=f"http://127.0.0.1:{options.port}", command=command, environment=offline,
                              ready_timeout_s=900),
                contract={
                    "engine": "transformers", "engine_version": str(told["transformers"]),
                    "weight_format": "safetensors", "quantization": geometry.quantization, "output_length": "fixed",
                    "kv_cache_dtype": requirements.favourite_plan.kv_cache_dtype,
                    "prefix_caching": "off", "tensor_parallel": "1", "gpu": gpu,
                },
                bound_tok_s=bound_tok_s(sizing, points),
            ),
        ),
        load_points=points, stages=(Stage(name="A", points=tuple(p.name for p in points)),), starts=1,
    )  # fmt: skip


def report(folder: Path, told: dict[str, Any]) -> tuple[str, bool]:
    """The summary as Markdown, and whether every point was measured, with the GPU's figures if there is one."""
    manifest, evidence = open_bundle(folder), summarise(folder)
    gpu = told["gpu"] or f"no GPU; bound of {CPU}"
    lines = [
        f"{manifest.contract.shared['model']} with random weights, transformers {told['transformers']}, "
        f"torch {told['torch']}, {gpu}. Kind: {manifest.kind}.", "",
        "| load point | output tok/s | coverage bound tok/s | measured/coverage bound | TTFT p50 ms | TPOT p50 ms "
        "| GPU memory GB | power W | use | spoiled by |", "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    whole = manifest.status == "complete" and {r.load_point for r in manifest.repeats} == {
        p.name for p in manifest.points
    }
    for point in manifest.points:
        found = {(e.metric, e.statistic): e for e in evidence if e.load_point == point.name}
        devices = _devices(folder, manifest, point.name)
        whole &= not told["gpu"] or set(devices) == set(DEVICE)
        speed, ratio, ttft, tpot = (found.get(key) for key in SHOWN)
        cells = [point.in_words(), _cell(speed), f"{manifest.bound_tok_s.get(point.name, 0):.4g}", _cell(ratio),
                 _cell(ttft), _cell(tpot)]  # fmt: skip
        cells += [f"{devices[n] / s:.3g}" if n in devices else "–" for n, s in zip(DEVICE, (1e9, 1, 1), strict=True)]
        cells.append("; ".join(speed.spoiled_by) if speed else "not measured")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {f}" for f in manifest.findings)]
    return "\n".join(lines) + "\n", whole


def _cell(e: Evidence | None) -> str:
    return "–" if e is None else f"{e.value:.4g}"


def _devices(folder: Path, manifest: Manifest, point: str) -> dict[str, float]:
    """Largest memory, and means of power and use, over the samples of a point."""
    values: dict[str, list[float]] = {}
    for repeat in manifest.repeats:
        if repeat.load_point == point and repeat.telemetry:
            for sample in read_telemetry(folder / repeat.telemetry):
                values.setdefault(sample.name, []).append(sample.value)
    return {n: (max if n == DEVICE[0] else fmean)(values[n]) for n in DEVICE if n in values}


def main() -> int:
    """Make the model unless it is there, measure, print and keep the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--geometry", choices=sorted(GEOMETRIES), default="8b")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model, the plan and the bundle")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="Python with torch and transformers")
    parser.add_argument("--gpu", default="", help="id in catalog/gpus.yaml; by default the one its driver names")
    parser.add_argument("--port", type=int, default=18010)
    parser.add_argument("--batching", action=argparse.BooleanOptionalAction, default=None,
                        help="continuous batching of the server; by default on a GPU only")  # fmt: skip
    options = parser.parse_args()
    options.python, options.out = options.python.absolute(), options.out.absolute()
    try:
        told = look(options.python)
        model = options.out / f"random-{options.geometry}"
        if not (model / "config.json").exists():
            options.out.mkdir(parents=True, exist_ok=True)
            maker = [str(options.python), "-W", "ignore", str(ROOT / "scripts/random_model.py")]
            subprocess.run([*maker, options.geometry, str(model)], check=True)
        plan = options.out / "plan.yaml"
        plan.write_text(plan_to_yaml(plan_of(options, told, model)), encoding="utf-8")
    except FliplineError as e:
        print(f"gpu_check: {e}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as e:
        print(f"gpu_check: the model was not made: exit code {e.returncode}.", file=sys.stderr)
        return 2
    # Our own plan, made above, names a command that is not in bench's table of engines.
    run = [sys.executable, "-m", "bench", "run", str(plan), "--out", str(options.out / "results"), "--allow-command"]
    code = subprocess.run(run, cwd=ROOT).returncode
    folders = find_bundles(options.out / "results")
    if not folders:
        return code or 1
    text, whole = report(folders[0], told)
    (options.out / "summary.md").write_text(text, encoding="utf-8")
    print(text)
    return 0 if whole and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
