"""Records -> Evidence: every metric of a sealed bundle, with n, effective n, counted exceedances and validity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bundle.distributions import crowd, of_requests, statistics
from bundle.evidence_maker import EvidenceMaker
from bundle.manifest import Imported, Manifest
from bundle.records import Record
from bundle.run_data import RepeatData, RunData, read_run
from bundle.samples import PER_REQUEST, WAITS, counted, missed, so_far, tokens_in, waves
from bundle.shapes import disturbance, figures
from bundle.validity import delta
from planner.condition_line import format_test
from planner.conditions import Condition, Evidence
from planner.frozen import sha256_of
from planner.statistics import effective_n


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
    maker = EvidenceMaker(run)
    if run.manifest.imported is not None:
        yield from _of_an_import(run, run.manifest.imported, maker, conditions, service_levels)
        return
    yield from _of_the_start(run, maker)
    died_at = _died_at(run)
    for data in run.repeats:
        yield from of_requests(data, maker, conditions)
        yield from _of_the_run(data, maker, run.manifest, service_levels)
        yield from _of_the_shape(data, maker, run, conditions)
        yield from _of_the_server(data, maker, run.manifest, data.point.name == died_at)
    if died_at and all(d.point.name != died_at for d in run.repeats):
        yield from _of_a_death_in_warmup(run.manifest, died_at, maker)


def _of_an_import(
    run: RunData, imported: Imported, maker: EvidenceMaker, conditions: Sequence[Condition], levels: Sequence[Condition]
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
        for e in (*of_requests(data, maker, conditions), *_of_the_run(data, maker, run.manifest, levels)):
            if e.metric in known:
                remark = imported.remarks.get(e.metric, "")
                yield e.model_copy(update={"note": note(data.point.name, remark, e.note)})
    points = {p.name: p for p in run.manifest.points}
    for f in run.manifest.figures:
        yield maker.figure(f, points[f.load_point], note(f.load_point, f.remark))


def _of_the_start(run: RunData, maker: EvidenceMaker) -> Iterator[Evidence]:
    start = run.manifest.engine_start
    yield maker.make("started", float(start.started))
    if start.startup_s is not None:
        yield maker.make("startup_s", start.startup_s)
    if start.kv_capacity_tokens is not None:
        yield maker.make("kv_capacity_tokens", float(start.kv_capacity_tokens))


def _of_the_run(
    data: RepeatData, maker: EvidenceMaker, manifest: Manifest, service_levels: Sequence[Condition]
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
    block = waves(load, crowd(data, load))

    def share(metric: str, hits: Sequence[bool], cut: int = 0, levels: str | None = None) -> Evidence:
        """A share of requests with its worth in independent samples; `cut` are those cut off that count as misses."""
        worth = effective_n([float(h) for h in hits], [block[r.request] for r in load]) + cut
        total = len(hits) + cut
        return maker.make(
            metric, sum(hits) / total, data=data, n=total, effective_n=min(float(total), worth), service_levels=levels
        )

    by_a_rule = data.repeat.stopped_by_a_rule
    cut = missed(data.records, data.window, by_a_rule=by_a_rule)
    yield share("error_share", [r.outcome != "ok" for r in load])
    yield share("completed_share", [r.outcome == "ok" for r in load], cut)
    if service_levels:
        met = [r.outcome == "ok" and _meets(r, service_levels) for r in load]
        cut = missed(data.records, data.window, by_a_rule=by_a_rule, lost=lambda r: _broke(r, service_levels))
        yield share("goodput", met, cut, levels_hash(service_levels))


def _of_the_shape(
    data: RepeatData, maker: EvidenceMaker, run: RunData, conditions: Sequence[Condition]
) -> Iterator[Evidence]:
    """What only interference points, points with a JSON schema and quality sets give."""
    pair = (data.point.pair_of, data.repeat.repeat)
    plain = next((d.records for d in run.repeats if (d.point.name, d.repeat.repeat) == pair), [])
    for f in figures(data.records, plain, data.quality):
        yield maker.make(f.metric, f.value, data=data, n=f.n, interval=f.interval, items=f.items)
    if data.point.shape == "interference":
        at_once = max(1.0, crowd(data, [r for r in data.records if r.is_load]))
        for metric, found in zip(("itl_quiet_ms", "itl_disturbed_ms"), disturbance(data.records), strict=True):
            if found:
                yield from statistics(data, maker, conditions, metric, found, max(1.0, len(found) / at_once), [])
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


def _broke(r: Record, service_levels: Sequence[Condition]) -> bool:
    """A request that was cut off had waited beyond a level by then, so that it could not meet it any more."""
    least = so_far(r)
    limits = [level for level in service_levels if level.metric in WAITS and level.comparison == "<="]
    return any((v := PER_REQUEST[limit.metric](least)) is not None and not limit.holds_for(v) for limit in limits)


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


def _of_a_death_in_warmup(manifest: Manifest, died_at: str, maker: EvidenceMaker) -> Iterator[Evidence]:
    """Outcomes of a load point at which the server died before the first counted request."""
    point = next(p for p in manifest.points if p.name == died_at)
    where = {"load_point": point.name, "load_hash": point.load_hash(), "note": "the server died in warm-up"}
    values = {"oom": manifest.engine_start.oom, "restarts": manifest.engine_start.restarts, "completed_share": 0}
    for metric, value in values.items():
        piece = maker.make(metric, float(value))
        yield piece.model_copy(update=where | {"id": f"{piece.id}@{died_at}"})


def _of_the_server(data: RepeatData, maker: EvidenceMaker, manifest: Manifest, died_here: bool) -> Iterator[Evidence]:
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
