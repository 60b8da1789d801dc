"""A real vLLM that several tests share, and plans that attach to it: one start instead of one per question."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from bench.exchange import Origin
from bench.transport import Pool, fetch_json
from bundle.folder import find_bundles, open_bundle
from bundle.manifest import Repeat
from bundle.records import Record, read_records, read_telemetry
from planner.loads import LoadPoint
from planner.poc import Plan, PlanCandidate, Stage
from tests.engine.plans import bench_run, shared_contract


class Passed(NamedTuple):
    """One repeat with its records and the telemetry by name."""

    repeat: Repeat
    records: list[Record]
    gauges: dict[str, list[float]]

    def grown(self, counter: str) -> float:
        """Increase of a server counter over the repeat."""
        return self.repeat.counters_after[counter] - self.repeat.counters_before[counter]

    def first_token_ms(self) -> tuple[float, float]:
        """Mean time to first token: ours from dispatch, and the server's delta-sum over delta-count."""
        ours = fmean((r.first_token_s or 0.0) - (r.dispatched_s or 0.0) for r in self.records)
        return 1000 * ours, 1000 * self.grown("ttft_sum_s") / self.grown("ttft_count")


def attached(candidate: PlanCandidate, *points: LoadPoint, repeats: int = 1) -> Plan:
    """A plan that measures the points on the candidate's server, which runs already."""
    launch = candidate.launch.model_copy(update={"command": ()})
    return Plan(
        case="two-cores", title="On a server that runs", shared_contract=shared_contract(),
        candidates=(candidate.model_copy(update={"launch": launch}),), load_points=points,
        stages=(Stage(name="A", points=tuple(p.name for p in points)),), starts=1, repeats=repeats,
    )  # fmt: skip


def passes_of(folder: Path) -> list[Passed]:
    """Every repeat of one bundle."""
    found = []
    for repeat in open_bundle(folder).repeats:
        gauges: dict[str, list[float]] = {}
        for sample in read_telemetry(folder / repeat.telemetry) if repeat.telemetry else ():
            gauges.setdefault(sample.name, []).append(sample.value)
        found.append(Passed(repeat, read_records(folder / repeat.records), gauges))
    return found


def measured(plan: Plan, out: Path) -> tuple[Path, list[Passed]]:
    """Run a plan of one start; gives its bundle and every repeat in it."""
    done = bench_run(plan, out)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    [folder] = find_bundles(out)
    return folder, passes_of(folder)


def tokens_of(candidate: PlanCandidate, text: str) -> int:
    """Tokens of a bare text by the server's own tokenise endpoint: no template, nothing added."""
    body = {"model": candidate.model_name, "prompt": text, "add_special_tokens": False}

    async def ask() -> int:
        pool = Pool(Origin.of(candidate.launch.url))
        found = await fetch_json(pool, "POST", "/tokenize", body)
        pool.close()
        assert found, f"/tokenize did not answer for {text!r}"
        return int(found["count"])

    return asyncio.run(ask())
