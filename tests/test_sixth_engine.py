"""A sixth engine is one YAML file and one dialect class: from a team's folder to gates, score, launch and bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from bench import dialects
from bench.__main__ import main
from bench.dialects import Dialect, speaks
from bundle.folder import find_bundles, open_bundle
from planner.catalog import facts_to_carry
from planner.gates import gates
from planner.launch import launch
from planner.launch_settings import LaunchSettings
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.scoring import score
from planner.server_schema import Server
from services.cases import requirements_from
from services.shipped import CASES
from services.workspace import Workspace, open_workspace
from tests.bench.helpers import candidate, free_port, plan
from tests.planner.fictitious import facts, put

NORTIA = requirements_from(yaml.safe_load((CASES / "nortia.yaml").read_text(encoding="utf-8"))["requirements"])


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    put(tmp_path / "catalog", facts())
    return open_workspace(tmp_path)


class Swift(Dialect):
    """SwiftServe wants to be told that a request comes from a benchmark."""

    told: ClassVar[list[str]] = []

    def chat_body(self, *args: Any, **more: Any) -> dict[str, Any]:
        body = super().chat_body(*args, **more) | {"origin": "benchmark"}
        self.told.append(body["origin"])
        return body


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> type[Swift]:
    monkeypatch.setattr(dialects, "_CLASSES", dict(dialects._CLASSES))
    return speaks("swiftserve")(Swift)


def test_it_passes_the_gates_that_its_file_answers_and_stands_in_the_score(ws: Workspace) -> None:
    r = NORTIA
    engine, gpu = ws.catalog.engine("swiftserve"), ws.catalog.gpu(r.hardware[0].gpu)
    states = {g.gate: g.state for g in gates(engine, r, r.favourite_plan, r.hardware[0], gpu.compute_capability)}
    assert states["gpu and precision"] == states["licence"] == "pass"
    scored = score(r, ws.catalog.engines, compute_capability=gpu.compute_capability)
    assert scored.of("swiftserve").score == pytest.approx(scored.of("vllm").score)  # rated like it throughout
    ours = {id: e for id, e in ws.catalog.engines.items() if id != "swiftserve"}
    without = score(r, ours, compute_capability=gpu.compute_capability)
    assert [c.engine for c in scored.ranking if c.engine != "swiftserve"] == [c.engine for c in without.ranking]


def test_its_launch_command_speaks_its_own_flags(ws: Workspace) -> None:
    settings = LaunchSettings(model="Qwen/Qwen3-8B", served_name="q", max_model_len=4096, max_num_seqs=32)
    made = launch(ws.catalog.engine("swiftserve"), settings)
    assert made.argv[:4] == ("swiftserve", "up", "--weights", "Qwen/Qwen3-8B")
    words = " ".join(made.argv)
    assert "--listen 7070" in words and "--slots 32" in words and "--context 4096" in words
    assert made.stage_settings == {"max_num_seqs": "--slots"}


def test_a_plan_carries_the_facts_that_the_shipped_catalogue_lacks(ws: Workspace) -> None:
    carried = facts_to_carry(ws.catalog.engines, "swiftserve")
    assert carried is not None and carried.parameters["port"].flag == "--listen"
    assert facts_to_carry(ws.catalog.engines, "vllm") is None
    assert facts_to_carry(ws.catalog.engines, "llama-server") is None
    put(ws.home / "catalog", "port: &p 1\n", "tgi.yaml")  # refused: ours stays, and nothing is carried
    assert facts_to_carry(open_workspace(ws.home).catalog.engines, "tgi") is None
    put(ws.home / "catalog", "version: 3.3.7-ours\n", "tgi.yaml")
    changed = facts_to_carry(open_workspace(ws.home).catalog.engines, "tgi")
    assert changed is not None and changed.version == "3.3.7-ours"


def test_bench_measures_it_from_the_plan_file_alone(ws: Workspace, spoken: type[Swift], tmp_path: Path) -> None:
    emulated = str(ws.home / "catalog" / "engines" / "swiftserve.yaml")
    started = candidate(free_port(), "--engine", emulated, name="swift", engine="swiftserve")
    started["launch"]["command"][0] = sys.executable
    made = plan(started | {"facts": facts_to_carry(ws.catalog.engines, "swiftserve")})
    file = tmp_path / "plan.yaml"
    file.write_text(plan_to_yaml(made), encoding="utf-8")
    assert plan_from_yaml(file.read_text(encoding="utf-8")).sha256() == made.sha256()
    assert main(["run", str(file), "--out", str(tmp_path / "out"), "--allow-command"]) == 0
    (folder,) = find_bundles(tmp_path / "out")
    assert open_bundle(folder).engine_start.kv_capacity_tokens == 1_000_000  # swift_kv_tokens on its page /stats
    assert "benchmark" in spoken.told


def test_without_its_facts_bench_does_not_know_it() -> None:
    with pytest.raises(ValueError, match="unknown engine 'swiftserve'"):
        plan(candidate(8000, engine="swiftserve"))
    other = {k: v for k, v in facts().items() if k in Server.model_fields}
    with pytest.raises(ValueError, match="they are those of 'swiftserve', the engine is 'vllm'"):
        plan(candidate(8000) | {"facts": other})
