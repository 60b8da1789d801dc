"""Records -> Evidence: every metric of a sealed bundle, with n, effective n, counted exceedances and validity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from bundle.folder import bundle_sha256, open_bundle
from bundle.manifest import Figure, Imported, Manifest, Repeat
from bundle.quality import Judged, read_quality
from bundle.records import Record, Sample, read_records, read_telemetry
from bundle.samples import (
    PER_REQUEST,
    Window,
    counted,
    cut_off,
    itl_ms,
    mean_in_flight,
    steady_window,
    tokens_in,
    waves,
)
from bundle.shapes import disturbance, figures
from bundle.validity import Finding, delta, facts, findings
from planner.condition_line import format_test
from planner.conditions import Condition, Evidence, Exceedance, Kind
from planner.frozen import sha256_of
from planner.loads import LoadPoint
from planner.metrics import METRICS, PERCENTILES
from planner.statistics import effective_n, percentile


class RepeatData(NamedTuple):
    """One repeat, read: its records, telemetry, steady window and the rules that fired."""

    repeat: Repeat
    point: LoadPoint
    records: list[Record]
    telemetry: list[Sample]
    window: Window
    findings: tuple[Finding, ...]
    quality: tuple[Judged, ...] = ()


class RunData(NamedTuple):
    """One bundle, read and verified."""

    manifest: Manifest
    sha256: str
    repeats: tuple[RepeatData, ...]


def read_run(folder: Path) -> RunData:
    """Verify and read a bundle; raises BundleError."""
    manifest = open_bundle(folder)
    points = {p.name: p for p in manifest.points}
    repeats = []
    for repeat in manifest.repeats:
        records = read_records(folder / repeat.records)
        telemetry = read_telemetry(folder / repeat.telemetry) if repeat.telemetry else []
        point = points[repeat.load_point]
        window = steady_window(records, point)
        fired = findings(facts(manifest, repeat, point, records, telemetry, window))
        judged = read_quality(folder / repeat.quality) if repeat.quality else ()
        repeats.append(RepeatData(repeat, point, records, telemetry, window, fired, judged))
    return RunData(manifest, bundle_sha256(folder), tuple(repeats))


def summarise(
    folder: Path, conditions: Iterable[Condition] = (), service_levels: Sequence[Condition] = ()
) -> list[Evidence]:
    """Evidence of a bundle; `conditions` name the thresholds whose exceedances are counted.

    Raises BundleError when the bundle does not verify.
    """
    return list(evidence_of(read_run(folder), tuple(conditions), tuple(service_levels)))


def evidence_of(
    run: RunData, conditions: Sequence[Condition] = (), service_levels: Sequence[Condition] = ()
) -> Iterator[Evidence]:
    """Evidence of a run that was read already."""
    maker = _Maker(run)
    if run.manifest.imported is not None:
        yield from _of_an_import(run, run.manifest.imported, maker, conditions, service_levels)
        return
    yield from _of_the_start(run, maker)
    died_at = _died_at(run)
    for data in run.repeats:
        yield from _of_requests(data, maker, conditions)
        yield from _of_the_run(data, maker, run.manifest, service_levels)
        yield from _of_the_shape(data, maker, run, conditions)
        yield from _of_the_server(data, maker, run.manifest, data.point.name == died_at)
    if died_at and all(d.point.name != died_at for d in run.repeats):
        yield from _of_a_death_in_warmup(run.manifest, died_at, maker)


class _Maker:
    """Fills in what all evidence of one bundle shares."""

    def __init__(self, run: RunData) -> None:
        m = run.manifest
        self._id = run.sha256[:12]
        self._common = {
            "kind": Kind(m.kind),
            "source": run.sha256[:12],
            "run": m.plan_sha256[:12] or None,
            "at": datetime.fromisoformat(m.finished_at),
            "candidate": m.candidate,
            "start": m.start,
            "contract": m.contract.full_hash(),
        }

    def make(
        self, metric: str, value: float, statistic: str = "value", data: RepeatData | None = None, **more: object
    ) -> Evidence:
        """One piece of evidence; with `data` it belongs to that repeat and inherits its findings."""
        where: dict[str, object] = {}
        key = f"{self._id}/{metric}/{statistic}"
        if data is not None:
            key = f"{self._id}/{data.point.name}/{data.repeat.repeat}/{metric}/{statistic}"
            where = {
                "load_point": data.point.name,
                "load_hash": data.point.load_hash(),
                "repeat": data.repeat.repeat,
                "spoiled_by": tuple(str(f) for f in data.findings if f.spoils(metric)),
                "note": "; ".join(str(f) for f in data.findings if not f.rule.spoils),
            }
        return Evidence.model_validate(
            {"id": key, "metric": metric, "statistic": statistic, "value": value, "unit": METRICS[metric].unit}
            | self._common | where | more
        )  # fmt: skip

    def figure(self, f: Figure, point: LoadPoint, note: str) -> Evidence:
        """A figure that a foreign tool had computed."""
        return Evidence.model_validate(
            {
                "id": f"{self._id}/{point.name}/{f.repeat}/{f.metric}/{f.statistic}", "metric": f.metric,
                "statistic": f.statistic, "value": f.value, "unit": METRICS[f.metric].unit, "n": f.n,
                "repeat": f.repeat, "load_point": point.name, "load_hash": point.load_hash(),
                "spoiled_by": f.spoiled_by, "note": note,
            } | self._common | {"kind": f.kind}
        )  # fmt: skip


def _of_an_import(
    run: RunData, imported: Imported, maker: _Maker, conditions: Sequence[Condition], levels: Sequence[Condition]
) -> Iterator[Evidence]:
    """Our definitions on what a foreign file holds per request, and the figures that it had computed itself."""
    known = set(imported.from_records)
    if {level.metric for level in levels} <= known:
        known.add("goodput")
    tool = f"{imported.tool} {imported.version}".strip()
    origin = ", ".join(x for x in (tool, imported.file, imported.source, imported.licence) if x)

    def note(point: str, *more: str) -> str:
        return "; ".join(x for x in (origin, imported.loads.get(point, ""), *more) if x)

    for data in run.repeats:
        for e in (*_of_requests(data, maker, conditions), *_of_the_run(data, maker, run.manifest, levels)):
            if e.metric in known:
                remark = imported.remarks.get(e.metric, "")
                yield e.model_copy(update={"note": note(data.point.name, remark, e.note)})
    points = {p.name: p for p in run.manifest.points}
    for f in run.manifest.figures:
        yield maker.figure(f, points[f.load_point], note(f.load_point, f.remark))


def _of_the_start(run: RunData, maker: _Maker) -> Iterator[Evidence]:
    start = run.manifest.engine_start
    yield maker.make("started", float(start.started))
    if start.startup_s is not None:
        yield maker.make("startup_s", start.startup_s)
    if start.kv_capacity_tokens is not None:
        yield maker.make("kv_capacity_tokens", float(start.kv_capacity_tokens))


# What a failed request counts as: it never came. One hour stands for never, since a stored figure is finite.
NEVER_MS = 3_600_000.0
NEVER = dict.fromkeys(("ttft_ms", "ttft_service_ms", "tpot_ms", "e2e_ms"), NEVER_MS) | {"user_tok_s": 0.0}


def _of_requests(data: RepeatData, maker: _Maker, conditions: Sequence[Condition]) -> Iterator[Evidence]:
    load = counted(data.records, data.window)
    crowd = _crowd(data, load)
    block = waves(load, crowd)
    for metric, of in PER_REQUEST.items():
        known = [(v, block[r.request]) for r in load if r.outcome == "ok" and (v := of(r)) is not None]
        never = [(NEVER[metric], block[r.request]) for r in load if r.outcome == "failed"]
        values = [v for v, _ in known + never]
        if not values:
            continue
        worth = effective_n([v for v, _ in known], [b for _, b in known]) * len(values) / len(known) if known else 0.0
        waited = _waited_in_vain(data) if metric in ("ttft_ms", "e2e_ms") else []
        yield from _statistics(data, maker, conditions, metric, values, worth or float(len(values)), waited)
    gaps = [g for r in load if r.outcome == "ok" for g in itl_ms(r)]
    if gaps:
        steps = len(gaps) / max(1.0, crowd)
        yield from _statistics(data, maker, conditions, "itl_ms", gaps, steps, [])
        yield maker.make("itl_ms", max(gaps), "max", data, n=len(gaps))


def _crowd(data: RepeatData, load: Sequence[Record]) -> float:
    """Requests in flight on average; where no record says when it was dispatched, what the load point states."""
    timeless = len(load) > 1 and len({r.dispatched_s for r in load}) == 1
    return float(data.point.in_flight) if timeless and data.point.in_flight else mean_in_flight(load)


def _waited_in_vain(data: RepeatData) -> list[float]:
    """How long, in ms, requests that we cut off had already waited for a first token."""
    cut = [r for r in cut_off(data.records, data.window) if r.first_token_s is None and r.end_s is not None]
    return [((r.end_s or 0.0) - r.scheduled_s) * 1000 for r in cut]


def _statistics(
    data: RepeatData, maker: _Maker, conditions: Sequence[Condition], metric: str, values: Sequence[float],
    effective: float, waited: Sequence[float],
) -> Iterator[Evidence]:  # fmt: skip
    """Percentiles and mean with counted exceedances.

    A request that we cut off after it had waited past every asked threshold counts as one that never came; the others
    that we cut off are not judged.
    """
    for statistic in (*PERCENTILES, "mean"):
        asked = _asked(conditions, metric, statistic)
        limit = max((t for t, op in asked if op == "<="), default=None)
        in_vain = sum(w > limit for w in waited) if limit is not None else 0
        all_values = [*values, *([NEVER.get(metric, NEVER_MS)] * in_vain)]
        n = len(all_values)
        value = sum(all_values) / n if statistic == "mean" else percentile(all_values, float(statistic[1:]))
        beyond = tuple(
            Exceedance(
                threshold=t,
                comparison="<=" if op == "<=" else ">=",
                beyond=sum((v > t) if op == "<=" else (v < t) for v in all_values),
            )
            for t, op in asked
        )
        worth = min(float(n), effective + in_vain)
        yield maker.make(metric, value, statistic, data, n=n, effective_n=worth, exceedances=beyond)


def _asked(conditions: Sequence[Condition], metric: str, statistic: str) -> list[tuple[float, str]]:
    """Thresholds that conditions ask about, with their comparison."""
    return sorted(
        {
            (c.threshold, c.comparison)
            for c in conditions
            if c.metric == metric and c.statistic == statistic and c.comparison in ("<=", ">=") and not c.over
        }
    )


def _of_the_run(
    data: RepeatData, maker: _Maker, manifest: Manifest, service_levels: Sequence[Condition]
) -> Iterator[Evidence]:
    load = counted(data.records, data.window)
    if not load:
        return
    n, length = len(load), data.window.length_s
    if length > 0:
        speed = tokens_in(data.records, data.window.begin_s, data.window.end_s) / length
        yield maker.make("output_tok_s", speed, data=data, n=n)
        ended = [r for r in data.records if r.outcome == "ok" and r.end_s is not None and r.is_load]
        inside = sum(data.window.begin_s < (r.end_s or 0.0) <= data.window.end_s for r in ended)
        yield maker.make("request_rate", inside / length, data=data, n=n)
        bound = manifest.bound_tok_s.get(data.point.name)
        if bound:
            yield maker.make("measured_over_bound", speed / bound, data=data, n=n)
    block = waves(load, _crowd(data, load))

    def share(metric: str, hits: Sequence[bool], cut: int = 0, levels: str | None = None) -> Evidence:
        """A share of requests with its worth in independent samples; `cut` are cut-off ones that count as misses."""
        worth = effective_n([float(h) for h in hits], [block[r.request] for r in load]) + cut
        total = len(hits) + cut
        return maker.make(
            metric, sum(hits) / total, data=data, n=total, effective_n=min(float(total), worth), service_levels=levels
        )

    cut = len(cut_off(data.records, data.window))
    yield share("error_share", [r.outcome != "ok" for r in load])
    yield share("completed_share", [r.outcome == "ok" for r in load], cut)
    if service_levels:
        met = [r.outcome == "ok" and _meets(r, service_levels) for r in load]
        yield share("goodput", met, cut, levels_hash(service_levels))


def _of_the_shape(data: RepeatData, maker: _Maker, run: RunData, conditions: Sequence[Condition]) -> Iterator[Evidence]:
    """What only interference points, points with a JSON schema and quality sets give."""
    pair = (data.point.pair_of, data.repeat.repeat)
    plain = next((d.records for d in run.repeats if (d.point.name, d.repeat.repeat) == pair), [])
    for f in figures(data.records, plain, data.quality):
        yield maker.make(f.metric, f.value, data=data, n=f.n, interval=f.interval)
    if data.point.shape == "interference":
        crowd = max(1.0, _crowd(data, [r for r in data.records if r.is_load]))
        for metric, found in zip(("itl_quiet_ms", "itl_disturbed_ms"), disturbance(data.records), strict=True):
            if found:
                yield from _statistics(data, maker, conditions, metric, found, max(1.0, len(found) / crowd), [])
                yield maker.make(metric, max(found), "max", data, n=len(found))


def levels_hash(service_levels: Sequence[Condition]) -> str:
    """Identity of the service levels that a goodput was counted under."""
    return sha256_of([format_test(c) for c in service_levels])


def _meets(r: Record, service_levels: Sequence[Condition]) -> bool:
    for level in service_levels:
        of = PER_REQUEST.get(level.metric)
        value = of(r) if of else None
        if value is None or not level.holds_for(value):
            return False
    return True


def _died_at(run: RunData) -> str | None:
    """The load point at which the server died: the last one measured if requests failed there, else the next one."""
    start = run.manifest.engine_start
    if not start.started or not (start.oom or start.restarts):
        return None
    done = [d.point.name for d in run.repeats]
    ahead = [p.name for p in run.manifest.points if p.name not in done]
    if done and (run.repeats[-1].repeat.failed or not ahead):
        return done[-1]
    return ahead[0] if ahead else None


def _of_a_death_in_warmup(manifest: Manifest, died_at: str, maker: _Maker) -> Iterator[Evidence]:
    """Outcomes of a load point at which the server died before the first counted request."""
    point = next(p for p in manifest.points if p.name == died_at)
    where = {"load_point": point.name, "load_hash": point.load_hash(), "note": "the server died in warm-up"}
    values = {"oom": manifest.engine_start.oom, "restarts": manifest.engine_start.restarts, "completed_share": 0}
    for metric, value in values.items():
        piece = maker.make(metric, float(value))
        yield piece.model_copy(update=where | {"id": f"{piece.id}@{died_at}"})


def _of_the_server(data: RepeatData, maker: _Maker, manifest: Manifest, died_here: bool) -> Iterator[Evidence]:
    start = manifest.engine_start
    yield maker.make("oom", float(start.oom if died_here else 0), data=data)
    restarts = data.repeat.server_restarts + (start.restarts if died_here else 0)
    yield maker.make("restarts", float(restarts), data=data)
    for name in ("kv_use", "running", "waiting"):
        values = [s.value for s in data.telemetry if s.name == name]
        if values:
            yield maker.make(name, sum(values) / len(values), "mean", data, n=len(values))
            yield maker.make(name, max(values), "max", data, n=len(values))
    preemptions = delta(data.repeat, "preemptions")
    if preemptions is not None:
        yield maker.make("preemptions", preemptions, data=data)
    hits, queries = delta(data.repeat, "prefix_hits"), delta(data.repeat, "prefix_queries")
    if hits is not None and queries:
        yield maker.make("prefix_hit", hits / queries, data=data)
