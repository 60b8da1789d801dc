"""What users did, asked of a Prometheus that scrapes the engine: one PromQL expression a figure, days in UTC.

A gauge is read as often as it was scraped. A counter's growth is the sum of its steps from scrape to scrape, after a
restart from 0; `increase()` would stretch it to the edges of the day and give no whole number of requests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import NamedTuple

from planner.engine_facts import server
from planner.engine_schema import Engine
from planner.errors import InputError, UnknownName
from planner.observed_days import MIN_COVERAGE
from planner.server_schema import Server
from services.demand import Demand, Gap, day_or_gap
from services.prometheus import Prometheus
from services.usage import Usage

DAY_S = 86_400
DAYS_AT_ONCE = 7  # as many samples as a query may load are more than a week of many servers has
MOST_DAYS = 400
EARLIEST = date(1972, 1, 1)  # so that 400 days before it have a number, too
SELDOM_S = 300.0  # Prometheus' own look-back: a gauge that is read less often has holes, and says nothing about peaks
BRIDGED = "1h"  # a counter goes on counting while nobody scrapes it; after a longer hole its growth is left out
SERVERS_NAMED = 5
_MATCHER = r'\s*[a-zA-Z_]\w*\s*(?:=|!=|=~|!~)\s*"(?:[^"\\]|\\.)*"\s*'
SELECTOR = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")


class Carriers(NamedTuple):
    """The series of one engine that carry each figure, by the names of its catalogue entry."""

    running: tuple[str, ...]
    waiting: tuple[str, ...]
    requests: tuple[str, ...]
    prompt: tuple[str, ...]
    answer: tuple[str, ...]
    hits: tuple[str, ...]
    queries: tuple[str, ...]

    @classmethod
    def of(cls, engine: Server) -> Carriers:
        """What the catalogue names; requests are those that ended, by their counter or that of their durations."""

        def named(role: str) -> tuple[str, ...]:
            return engine.metrics.get(role, ())

        reading = engine.metrics_page.read.get("prefix_queries")
        more = (reading.plus,) if reading and reading.plus else ()
        return cls(
            named("running"), named("waiting"), named("success") or tuple(f"{n}_count" for n in named("e2e")),
            named("prompt_tokens"), named("generation_tokens"), named("prefix_hits"), (*named("prefix_queries"), *more),
        )  # fmt: skip

    def among(self, names: Sequence[str]) -> Carriers:
        """Those that are there."""
        there = set(names)
        return Carriers(*(tuple(n for n in role if n in there) for role in self))


class Period(NamedTuple):
    """What was read of one period; `coverage` is the share of its slots of two scrapes with one in them."""

    coverage: float
    peak: float | None = None
    requests: float | None = None
    prompt: float | None = None
    answer: float | None = None
    hits: float | None = None
    queries: float | None = None

    def usage(self, day: date) -> Usage:
        """The same as figures of a day."""

        def mean(tokens: float | None) -> float | None:
            return tokens / self.requests if tokens is not None and self.requests else None

        share = min(1.0, self.hits / self.queries) if self.hits is not None and self.queries else None
        return Usage(day, self.peak, self.requests, share, mean(self.prompt), mean(self.answer), self.coverage)


class Watched(NamedTuple):
    """An engine as one Prometheus sees it, narrowed by label matchers."""

    prometheus: Prometheus
    engine: str
    carriers: Carriers
    selector: str

    def periods(self, begin_s: int, width_s: int, n: int) -> tuple[float | None, tuple[str, ...], list[Period]]:
        """The scrape interval in seconds (None: nothing was scraped), the servers, and `n` periods in a row."""
        interval, servers = self._interval(begin_s + n * width_s, n * width_s)
        if interval is None:
            return None, (), [Period(0.0)] * n
        width, step, slot = width_s * 1000 - 1, round(interval * 1000), round(interval * 2000)
        span = f"[{width}ms:{step}ms]"
        in_flight = self._any(self.carriers.running + self.carriers.waiting)
        seen = f"count(last_over_time({self._any(self.carriers.running)}[{slot}ms]))"
        gauges = (
            f"count_over_time({seen}[{width}ms:{slot}ms]) * {slot / 1000 / width_s:.12g}",
            f"max_over_time(sum({in_flight})[{width}ms:{max(1, step // 2)}ms])",  # no scrape falls between two steps
        )
        ends = [begin_s + width_s * i for i in range(1, n + 1)]
        coverage, peak = (self._at(ends, expression) for expression in gauges)
        grown = [self._sum([self._at(ends, self._grown(name, span, step)) for name in role], n)
                 for role in self.carriers[2:]]  # fmt: skip
        return interval, servers, [
            Period(min(1.0, covered or 0.0), *more) for covered, *more in zip(coverage, peak, *grown, strict=True)
        ]  # fmt: skip

    def _interval(self, end_s: int, span_s: int) -> tuple[float | None, tuple[str, ...]]:
        """The usual time between two scrapes in the last hour that has some, and the servers scraped in it."""
        step = min(SELDOM_S, max(1, span_s // 100))
        for name in reversed(self.carriers.running):
            newest = f"max(max_over_time(timestamp({self._one(name)})[{span_s}s:{step:.0f}s]))"
            for found in self.prometheus.at(newest, end_s):
                raw = self.prometheus.at(f"{self._one(name)}[1h]", found.samples[-1][1])
                gaps = [b - a for s in raw for (a, _), (b, _) in zip(s.samples, s.samples[1:], strict=False)]
                if gaps:
                    servers = {s.labels.get("instance", "") or str(dict(s.labels)) for s in raw}
                    return max(0.1, round(median(gaps), 1)), tuple(sorted(servers))
        return None, ()

    def _one(self, name: str) -> str:
        return f"{name}{{{self.selector}}}"

    def _any(self, names: Sequence[str]) -> str:
        matchers = f'__name__=~"{"|".join(names)}"'
        return f"{{{matchers}{f',{self.selector}' if self.selector else ''}}}"

    def _grown(self, name: str, span: str, step_ms: int) -> str:
        now, before = (f"last_over_time({self._one(name)}[{BRIDGED}]{o})" for o in ("", f" offset {step_ms}ms"))
        restarted = f"({now} < {before}) + 0"  # + 0 takes the series' name off, as the subtraction does
        return f"sum(sum_over_time(({now} - {before} >= 0 or {restarted}){span}))"

    def _at(self, ends: Sequence[int], expression: str) -> list[float | None]:
        """The value at each of these moments, which lie equally far apart; None where there is none, or no number."""
        step = ends[1] - ends[0] if len(ends) > 1 else 1
        series = self.prometheus.between(expression, ends[0], ends[-1], step)
        found = {round(at): v for s in series for at, v in s.samples if math.isfinite(v)}
        return [found.get(at) for at in ends]

    @staticmethod
    def _sum(parts: Sequence[Sequence[float | None]], n: int) -> list[float | None]:
        """Period by period over the series of a role; None where none of them was there."""
        known = [[v for part in parts if (v := part[i]) is not None] for i in range(n)]
        return [sum(values) if values else None for values in known]


def engines_that_export(engines: Mapping[str, Engine]) -> tuple[str, ...]:
    """Servers of the catalogue that say how many requests run, by id."""
    servers: list[Server] = [s for e in engines.values() for s in (e, e.llama_server) if s]
    return tuple(sorted(s.id for s in servers if s.metrics.get("running")))


def watched(p: Prometheus, engines: Mapping[str, Engine], *, begin_s: int, end_s: int, engine: str = "",
            selector: str = "") -> Watched:  # fmt: skip
    """The engine that Prometheus scrapes: the named one, else the one whose series are there.

    Raises InputError for a bad selector, for none and for several engines, UnknownName with what is near.
    """
    selector = selector.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
    if selector and not SELECTOR.fullmatch(selector):
        raise InputError(f"{selector!r} is no selector.", where=p.name,
                         fix="""Write label matchers, as in job="vllm",namespace="prod".""")  # fmt: skip
    names = p.names(selector, begin_s, end_s)
    if not names:
        raise InputError(f"has no series{f' that match {selector}' if selector else ''} in this window.", where=p.name,
                         fix="Check selector and days: Prometheus keeps 15 days unless told otherwise.")  # fmt: skip
    asked = {id: server(engines, id) for id in ((engine,) if engine else engines_that_export(engines))}
    there = {id: c for id, s in asked.items() if (c := Carriers.of(s).among(names)).running}
    if len(there) == 1:
        return Watched(p, *next(iter(there.items())), selector)
    if there:
        raise InputError(f"scrapes {' and '.join(sorted(there))}.", where=p.name, fix="Name the engine.")
    wanted = [n for s in asked.values() for n in s.metrics.get("running", ())]
    if engine and wanted:
        raise UnknownName.from_known("metric", wanted[0], names, where=p.name)
    raise InputError(
        f"has none of the series that say what runs: {', '.join(wanted) or f'{engine} exports none'}.", where=p.name,
        fix="Let it scrape the engine's metrics page.",
    )  # fmt: skip


def demand_of_prometheus(
    p: Prometheus, engines: Mapping[str, Engine], last: date, days: int, *, engine: str = "", selector: str = "",
    least_coverage: float = MIN_COVERAGE,
) -> Demand:  # fmt: skip
    """Demand of `days` days up to `last`, each from midnight to midnight UTC.

    Raises InputError and ServerError as `watched` and Prometheus do, and when it is scraped too seldom.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InputError(f"{days} days are asked for.", where=p.name, fix=f"Ask for 1 to {MOST_DAYS}.")
    if last < EARLIEST:
        raise InputError(f"{last} lies before there was a Prometheus.", where=p.name, fix="Ask for a later day.")
    first = last - timedelta(days=days - 1)
    begin_s = round(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp())
    w = watched(p, engines, begin_s=begin_s, end_s=begin_s + days * DAY_S, engine=engine, selector=selector)
    found: list[Usage | Gap] = []
    intervals, servers = set(), set()
    for done in range(0, days, DAYS_AT_ONCE):
        interval, who, periods = w.periods(begin_s + done * DAY_S, DAY_S, min(DAYS_AT_ONCE, days - done))
        if interval is not None and interval > SELDOM_S:
            raise InputError(f"scrapes every {interval:g} s: too seldom to see peaks.", where=p.name,
                             fix=f"Scrape every {SELDOM_S:g} s or more often.")  # fmt: skip
        intervals |= {interval} - {None}
        servers |= set(who)
        found += [day_or_gap(period.usage(first + timedelta(days=done + i)), least_coverage, peak_needed=True)
                  for i, period in enumerate(periods)]  # fmt: skip
    narrowed = f" {{{w.selector}}}" if w.selector else ""
    return Demand.of(found, f"Prometheus {p.name}: {w.engine}{narrowed}", _findings(w, intervals, sorted(servers)))


def _findings(w: Watched, intervals: set[float], servers: Sequence[str]) -> tuple[str, ...]:
    found = []
    if intervals:
        often = " to ".join(dict.fromkeys(f"{i:g}" for i in (min(intervals), max(intervals))))
        found.append(f"Read every {often} s: a peak between two readings is not seen.")
    if len(servers) > 1:
        more = f" and {len(servers) - SERVERS_NAMED} more" if len(servers) > SERVERS_NAMED else ""
        found.append(f"{len(servers)} servers, added up: {', '.join(servers[:SERVERS_NAMED])}{more}.")
    absent = {
        "requests that wait (only those that run are counted)": w.carriers.waiting,
        "requests that ended": w.carriers.requests, "the prefix cache": w.carriers.hits and w.carriers.queries,
    }  # fmt: skip
    return (*found, *(f"No series for {what}." for what, names in absent.items() if not names))
