"""Frames for the charts, from evidence: what was predicted, imported, entered and measured, on one scale."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from planner.choosing import of_the_newest
from planner.conditions import Evidence, Kind, Verdict
from planner.hypothesis_case import ADDED_POINTS
from planner.knee import amount_of, sweeps
from planner.metrics import METRICS, quantity
from services.foreign import Seen
from services.results import known_points, taken_elsewhere
from services.verdicts import CaseState
from ui.text import t
from ui.words import with_range

SPEEDS = {"user_tok_s": "p5", "output_tok_s": "value"}
COLUMNS = ["metric", "statistic", "candidate", "kind", "series", "point", "amount", "value", "low", "high", "n",
           "valid"]  # fmt: skip


def planned_loads(state: CaseState) -> dict[str | None, tuple[str | None, str]]:
    """What a figure may state as its load, by load point of the plan: nothing, or the hash of the plan's."""
    return {p.name: (None, p.load_hash()) for p in state.plan.load_points} if state.plan else {}


def other_loads(state: CaseState) -> list[str]:
    """Names of load points under which figures exist that were taken at another load than the plan's."""
    planned = planned_loads(state)
    shown = state.evidence.of_metric(*dict.fromkeys((*(m for m, _ in TABLE), *OUTCOMES)))
    return sorted({e.load_point for e in shown if e.load_point in planned and e.load_hash not in planned[e.load_point]})


def figures(state: CaseState, wanted: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """One row per metric, statistic, candidate, kind and closed load point: median over starts, with min and max.

    `wanted` names the statistics per metric. Invalid figures are kept apart by `valid`.
    """
    points = state.plan.load_points if state.plan else ()
    batch = {p.name: amount_of(p) for p in points if p.shape == "closed" and p.name not in ADDED_POINTS}
    return _grouped(state, wanted, batch).rename(columns={"amount": "batch"})


def rate_frame(state: CaseState, metric: str, statistic: str) -> pd.DataFrame:
    """One figure against the rate that was offered, valid and seen: candidate, kind, series, rate, value, range, n.

    A series is one sweep: points of other lengths or arrivals are no continuation of its line.
    """
    found = [s for s in sweeps(known_points(state).values()) if s.way == "open"]
    ordered = sorted(found, key=lambda s: -len(s.points))
    rates = {p.name: amount_of(p) for s in ordered for p in s.points}
    further = {p.name: f", {s.lengths}" for s in ordered[1:] for p in s.points}
    frame = _grouped(state, {metric: (statistic,)}, rates).rename(columns={"amount": "rate"})
    frame = frame[frame.valid & frame.kind.isin([k.value for k in SEEN])]
    return frame.assign(series=frame.series + [further.get(point, "") for point in frame.point])


def _grouped(state: CaseState, wanted: dict[str, tuple[str, ...]], amount: Mapping[str, float]) -> pd.DataFrame:
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    loads = planned_loads(state)
    found = state.evidence.of_metric(*wanted)
    elsewhere = taken_elsewhere(found)
    for e in found:
        asked = e.statistic in wanted[e.metric] and e.load_point in amount and e.candidate and e.id not in elsewhere
        if asked and e.load_hash in loads.get(e.load_point, (e.load_hash,)) and _of_these_levels(state, e):
            key = (e.metric, e.statistic, e.candidate, e.kind.value, e.load_point, str(e.valid))
            groups.setdefault(key, []).append(e)
    rows = []
    for (metric, statistic, candidate, kind, point, valid), every in groups.items():
        pieces = of_the_newest(every, state.context.contracts)
        values = sorted(p.value for p in pieces)
        seen = kind in SEEN
        rows.append(
            {
                "metric": metric, "statistic": statistic, "candidate": candidate, "kind": kind,
                "series": f"{candidate} {kind}" if seen else kind, "point": point, "amount": amount[point],
                "value": statistics.median(values), "low": values[0], "high": values[-1],
                "n": sum(p.n or 0 for p in pieces) or None, "valid": valid == "True",
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(["series", "amount"])


def speed_frame(state: CaseState) -> pd.DataFrame:
    """Speed per user (p5) and total output against requests in flight, valid figures only."""
    frame = figures(state, {m: (s,) for m, s in SPEEDS.items()})
    return frame[frame.valid]


TTFT = ("p50", "p95", "p99")
TABLE = (
    ("user_tok_s", "p5"), ("output_tok_s", "value"), ("ttft_ms", "p50"), ("ttft_ms", "p95"), ("ttft_ms", "p99"),
    ("itl_ms", "p99"), ("error_share", "value"), ("goodput", "value"),
)  # fmt: skip
SEEN = (Kind.MEASURED, Kind.SIMULATED, Kind.IMPORTED, Kind.ENGINE_ALONE, Kind.ENTERED)


def ttft_frame(state: CaseState) -> pd.DataFrame:
    """TTFT percentiles against requests in flight, valid and seen, not predicted; `who` is candidate and kind."""
    frame = figures(state, {"ttft_ms": TTFT})
    frame = frame[frame.valid & frame.kind.isin([k.value for k in SEEN])]
    frame = frame.assign(who=frame.candidate + " " + frame.kind, series=frame.statistic)
    place = {c.id: i for i, c in enumerate(state.plan.candidates)} if state.plan else {}
    return frame.sort_values(
        ["candidate", "series", "batch"], key=lambda c: c.map(place) if c.name == "candidate" else c
    )


def _seen(state: CaseState, metrics: Iterable[str]) -> list[Evidence]:
    loads, found = planned_loads(state), state.evidence.of_metric(*dict.fromkeys(metrics))
    return [
        e for e in found
        if e.kind in SEEN and e.load_hash in loads.get(e.load_point, (e.load_hash,)) and _of_these_levels(state, e)
    ]  # fmt: skip


def _of_these_levels(state: CaseState, e: Evidence) -> bool:
    """Goodput under other service levels than the plan's is another figure; it was counted before the plan changed."""
    asked = state.context.service_levels
    return e.metric != "goodput" or not asked or e.service_levels == asked


def counted(state: CaseState, pieces: list[Evidence]) -> list[Evidence]:
    """Of figures of one sort those that a verdict counts: the valid ones where one is, under the newest contract."""
    return of_the_newest([e for e in pieces if e.valid] or pieces, state.context.contracts)


def of_older_versions(state: CaseState) -> list[str]:
    """Candidates of which older figures are left out, since newer ones of another version or setting stand there."""
    seen = [e for e in _seen(state, (m for m, _ in TABLE)) if e.valid and e.load_point and e.candidate]
    several = Counter(key for key, _ in {((e.candidate, e.kind), e.contract) for e in seen})
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for e in seen:
        if several[e.candidate, e.kind] > 1:
            groups.setdefault((e.candidate or "", e.metric, e.statistic, e.kind, e.load_point or ""), []).append(e)
    contracts = state.context.contracts
    return sorted({key[0] for key, found in groups.items() if len(of_the_newest(found, contracts)) < len(found)})


TITLES = {
    "user_tok_s": "Speed per user", "output_tok_s": "Total output", "ttft_ms": "TTFT", "itl_ms": "Gap between tokens",
    "error_share": "Errors", "goodput": "Goodput", "started": "Started", "startup_s": "Start-up",
    "kv_capacity_tokens": "KV capacity", "preemptions": "Preemptions", "oom": "Out of memory", "restarts": "Restarts",
}  # fmt: skip


def figure_title(metric: str, statistic: str = "value") -> str:
    """How a column is called; the unit stands with each value."""
    return t(TITLES[metric]) + ("" if statistic == "value" else f" {statistic}")


def results_frame(state: CaseState) -> pd.DataFrame:
    """One row per candidate, load point and kind; a figure that was not taken reads "not measured"."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[Evidence]]] = {}
    for e in _seen(state, (m for m, _ in TABLE)):
        if e.load_point and (e.metric, e.statistic) in TABLE:
            row = groups.setdefault((e.candidate or "", e.load_point, e.kind.value), {})
            row.setdefault((e.metric, e.statistic), []).append(e)
    rows = []
    for (candidate, point, kind), every in sorted(groups.items(), key=lambda group: _place(state, group[0])):
        found = {key: counted(state, several) for key, several in every.items()}
        pieces = [e for several in found.values() for e in several]
        rows.append(
            {
                t("Candidate"): candidate, t("Load point"): point, t("Kind"): t(kind),
                t("n"): f"{max(e.n or 0 for e in pieces):,}" if any(e.n for e in pieces) else t("not stated"),
                t("Starts"): len({e.source for e in pieces}),
            }
            | {figure_title(*key): _cell(found.get(key, ())) for key in TABLE}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _place(state: CaseState, key: tuple[str, str, str]) -> tuple[int, int, str]:
    """Where a row stands: candidates and load points in the plan's order, what it does not know last."""
    candidates = [c.id for c in state.plan.candidates] if state.plan else []
    points = [p.name for p in state.plan.load_points] if state.plan else []
    candidate, point, kind = key
    return (
        candidates.index(candidate) if candidate in candidates else len(candidates),
        points.index(point) if point in points else len(points),
        kind,
    )


def _cell(pieces: Iterable[Evidence]) -> str:
    """The median over starts and repeats, with the range where there is one."""
    known = list(pieces)
    valid = [e.value for e in known if e.valid]
    if not known:
        return t("not measured")
    if not valid:
        return t("invalid run")
    return with_range(statistics.median(valid), min(valid), max(valid), known[0].unit)


def bound_frame(state: CaseState) -> pd.DataFrame:
    """measured_over_bound per candidate and load point."""
    groups: dict[tuple[str, str, str], list[Evidence]] = {}
    for e in _seen(state, ("measured_over_bound",)):
        groups.setdefault((e.candidate or "", e.load_point or "", e.kind.value), []).append(e)
    return pd.DataFrame(
        [
            {
                t("Candidate"): c,
                t("Load point"): p,
                t("Kind"): t(kind),
                t("Measured / coverage bound"): _cell(counted(state, pieces)),
            }
            for (c, p, kind), pieces in sorted(groups.items(), key=lambda group: _place(state, group[0]))
        ]
    )


def runs_frame(state: CaseState) -> pd.DataFrame:
    """One row a run: whose, when, of which kind, how it ended, what was found wrong with it."""
    return pd.DataFrame(
        [
            {
                t("Candidate"): r.candidate, t("Stage"): r.stage, t("Start"): r.start, t("Kind"): t(r.kind.value),
                t("Status"): t(r.status), t("When (UTC)"): r.created_at[:16].replace("T", " "),
                t("Bundle"): r.sha256[:12], t("Findings"): "; ".join(r.findings) or t("none"),
            }
            for r in state.runs
        ]
    )  # fmt: skip


OUTCOMES = ("started", "startup_s", "kv_capacity_tokens", "preemptions", "oom", "restarts", "error_share")


def outcomes_frame(state: CaseState) -> pd.DataFrame:
    """One row an engine start: what came up, how much fits, what went wrong; the worst load point of the start."""
    found: dict[str, dict[str, list[float]]] = {}
    for e in _seen(state, OUTCOMES):
        found.setdefault(e.source, {}).setdefault(e.metric, []).append(e.value)
    rows = []
    for r in state.runs:
        of_run = found.get(r.sha256[:12], {})
        rows.append(
            {t("Candidate"): r.candidate, t("Stage"): r.stage, t("Start"): r.start, t("Kind"): t(r.kind.value)}
            | {
                figure_title(m): quantity(max(of_run[m]), METRICS[m].unit) if m in of_run
                else t("not measured")
                for m in OUTCOMES
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def kv_spread(state: CaseState) -> list[str]:
    """KV capacity over the starts of each candidate, in words: it differs between starts of the same engine."""
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for e in _seen(state, ("kv_capacity_tokens",)):
        groups.setdefault((e.candidate or "", e.kind.value), []).append(e)
    found = {key: [e.value for e in counted(state, pieces)] for key, pieces in groups.items()}
    same, apart = (
        t("{who} ({kind}): {low:,.0f} tokens at every start ({n})"),
        t("{who} ({kind}): {low:,.0f} to {high:,.0f} tokens over {n} starts"),
    )
    return [
        (same if min(values) == max(values) else apart).format(
            who=who, kind=t(kind), low=min(values), high=max(values), n=len(values)
        )
        for (who, kind), values in sorted(found.items())
    ]


def foreign_frame(seen: Seen) -> pd.DataFrame:
    """One row a term of a foreign file: what it becomes here, or why it is left out."""
    left_out, gap = t("left out: {why}"), t("not measured: {why}")
    rows = [(theirs, ours) for theirs, ours in seen.taken.items()]
    rows += [(theirs, left_out.format(why=why)) for theirs, why in seen.refused.items()]
    rows += [("–", f"{ours} {gap.format(why=why)}") for ours, why in seen.not_measured.items()]
    return pd.DataFrame(rows, columns=[t("In the file"), t("Here")])


def leaves(verdict: Verdict) -> list[Verdict]:
    """The verdicts at single load points that a combined one consists of."""
    return [leaf for part in verdict.parts for leaf in leaves(part)] if verdict.parts else [verdict]


def figure_in_words(e: Evidence) -> str:
    """A piece of evidence as a line: whose, what, where, how known, from where."""
    at = f" at {e.load_point}" if e.load_point else ""
    statistic = "" if e.statistic == "value" else f" {e.statistic}"
    who = f"{e.candidate}: " if e.candidate else ""
    n = f", n = {e.n:,}" if e.n else ""
    origin = e.note or (f"bundle {e.source}" if e.start else e.source)
    return f"{who}{METRICS[e.metric].name}{statistic}{at} = {quantity(e.value, e.unit)}{n} ({origin})"
