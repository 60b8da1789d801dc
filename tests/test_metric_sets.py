"""A metric is one row, one summary function and, where a server exports it, its names per engine: one set."""

from __future__ import annotations

from bundle.records import Sample
from bundle.summary import summarise
from planner.catalog import load_catalog
from planner.condition_line import parse_condition
from planner.metrics import METRICS, Level
from tests.bundle.made import bundle
from tests.bundle.shaped import interference, quality, structured

FROM_THE_SERVER = {"kv_use", "running", "waiting", "preemptions", "prefix_hit"}
ROLES = {"kv_use": {"kv_use"}, "running": {"running"}, "waiting": {"waiting"}, "preemptions": {"preemptions"},
         "prefix_hit": {"prefix_hits", "prefix_queries"}}  # fmt: skip


SHAPED = {"fight": interference, "set": quality, "json": structured}  # what only some load shapes give


def test_a_full_bundle_gives_every_metric_that_a_run_can_give(tmp_path):
    telemetry = [Sample(0.5, name, 1.0) for name in ("kv_use", "running", "waiting")]
    before = {"preemptions": 0.0, "prefix_hits": 0.0, "prefix_queries": 0.0}
    after = {"preemptions": 1.0, "prefix_hits": 1.0, "prefix_queries": 9.0}
    folder = bundle(tmp_path, telemetry=telemetry, counters=(before, after), kv_capacity_tokens=5120)
    given = {e.metric for e in summarise(folder, service_levels=[parse_condition("ttft p95 <= 2 s")])}
    given |= {e.metric for name in ("fight", "set", "json") for e in summarise(SHAPED[name](tmp_path / name))}
    of_a_run = {m.id for m in METRICS.values() if m.level in (Level.REQUEST, Level.RUN, Level.SERVER)}
    of_a_run -= {
        m.id for m in METRICS.values() if m.paired or m.spread_of
    }  # worked out from the figures of several runs
    assert given == of_a_run


def test_every_statistic_of_a_request_metric_is_summarised(tmp_path):
    made = [bundle(tmp_path / "plain"), *(make(tmp_path / name) for name, make in SHAPED.items())]
    given = {(e.metric, e.statistic) for folder in made for e in summarise(folder)}
    asked = {(m.id, s) for m in METRICS.values() if m.level is Level.REQUEST for s in m.statistics}
    assert asked <= given


def test_what_a_server_exports_is_named_in_its_catalogue_entry():
    vllm = load_catalog().engine("vllm")
    for metric in FROM_THE_SERVER:
        assert metric in METRICS
        for role in ROLES[metric]:
            assert vllm.metrics.get(role), f"{role} has no name in vllm.yaml"
