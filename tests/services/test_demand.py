"""What users did, from a real Prometheus over four weeks that were written beforehand, and from request logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from decisions.record import Deployment
from planner.catalog import load_catalog
from planner.conditions import Evidence
from planner.errors import InputError, UnknownName
from services.arrivals import bring_in_usage
from services.decisions import flips
from services.demand import Demand, changes, demand_of_log, seen_days
from services.demand_queries import demand_of_prometheus
from services.prometheus import Prometheus
from services.traffic_log import read_log
from services.usage import Usage, newest
from tests.real_prometheus import prometheus, write_days
from tests.services.made import accepted

ENGINES = load_catalog().engines
DAYS, EVERY_S, DAY_S = 28, 240, 86_400
A_DAY = DAY_S // EVERY_S  # 360 scrapes
HOLE, RESTART = 5, 9  # on these days of the 28


@pytest.fixture(scope="module")
def today() -> date:
    return datetime.now(UTC).date()


@pytest.fixture(scope="module")
def monitored(today: date, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Two vLLM servers scraped for four weeks, and next to them series that no sound answer comes from."""
    folder = tmp_path_factory.mktemp("prometheus")
    end_s = round(datetime(today.year, today.month, today.day, tzinfo=UTC).timestamp())
    write_days(folder, samples(end_s - DAYS * DAY_S))
    with prometheus(folder) as url:
        yield Prometheus(url)


def samples(begin_s: int) -> Iterator[str]:
    """Server a: two running, at noon four and one waits; b: none. Each ends a request every scrape.

    A request has 1,000 prompt tokens, 300 of them from the cache, and 200 of its answer. On one day nothing is scraped
    for eight hours, on another server a restarts at noon.
    """
    times = [begin_s + EVERY_S * i for i in range(DAYS * A_DAY + 1)]
    hole = range(begin_s + HOLE * DAY_S + 3600, begin_s + HOLE * DAY_S + 9 * 3600)
    restart = begin_s + RESTART * DAY_S + DAY_S // 2
    seen = [t for t in times if t not in hole]
    noon = {t for t in times if t % DAY_S == DAY_S // 2}
    yield from family("vllm:num_requests_running", "gauge", {
        'instance="a",job="chat"': ((t, 4 if t in noon else 2) for t in seen),
        'instance="b",job="chat"': ((t, 0) for t in seen),
        'instance="c",job="broken"': ((t, "NaN") for t in times[:A_DAY]),
        'instance="d",job="seldom"': ((t, 1) for t in times[: A_DAY : 3]),
    })  # fmt: skip
    yield from family(
        "vllm:num_requests_waiting", "gauge", {'instance="a",job="chat"': ((t, int(t in noon)) for t in seen)}
    )
    yield from family("sglang:num_running_reqs", "gauge", {'instance="e",job="other"': ((t, 1) for t in times[:A_DAY])})
    for name, each in (("request_success", 1), ("prompt_tokens", 1000), ("generation_tokens", 200),
                       ("prefix_cache_hits", 300), ("prefix_cache_queries", 1000)):  # fmt: skip
        begun = {'instance="a",job="chat"': restart, 'instance="b",job="chat"': begin_s}
        yield from family(f"vllm:{name}", "counter", {
            labels: [(t, each * ((t - since if t >= since else t - begin_s) // EVERY_S)) for t in seen]
            for labels, since in begun.items()
        })  # fmt: skip


def family(name: str, sort: str, series: dict[str, Any]) -> Iterator[str]:
    yield f"# TYPE {name} {sort}"
    for labels, values in series.items():
        yield from (f"{name}{'_total' if sort == 'counter' else ''}{{{labels}}} {v} {t}" for t, v in values)


def asked(p: Prometheus, today: date, days: int = DAYS, **more: Any) -> Demand:
    return demand_of_prometheus(p, ENGINES, today - timedelta(days=1), days, **more)


def test_four_weeks_are_read_day_by_day_with_their_coverage(monitored: Prometheus, today: date) -> None:
    found = asked(monitored, today, selector='{job="chat"}')
    first = today - timedelta(days=DAYS)
    usual = Usage(first, peak_in_flight=5, requests=2 * A_DAY, shared_prefix_share=0.3, input_tokens=1000,
                  output_tokens=200, coverage=1.0)  # fmt: skip
    assert found.days[0] == pytest.approx(usual)
    assert [d.day for d in found.days] == [first + timedelta(days=i) for i in range(DAYS) if i != HOLE]
    [gap] = found.gaps
    assert gap.day == first + timedelta(days=HOLE)
    assert gap.coverage == pytest.approx(16 / 24, abs=0.01)
    assert found.gap_sentences() == (f"{gap.day}: 67% covered, not counted.",)
    restarted = next(d for d in found.days if d.day == first + timedelta(days=RESTART))
    # The scrape at noon shows the new process at 0: what it replaced had ended one request since the scrape before.
    assert restarted.requests == 2 * A_DAY - 1
    assert found.source == f'Prometheus {monitored.name}: vllm {{job="chat"}}'
    assert found.findings == (
        "Read every 240 s: a peak between two readings is not seen.", "2 servers, added up: a, b.",
    )  # fmt: skip


def test_a_day_counts_from_the_stated_share_on(monitored: Prometheus, today: date) -> None:
    found = asked(monitored, today, selector='job="chat"', least_coverage=0.6)
    assert (len(found.days), found.gaps) == (DAYS, ())
    # Eight hours lie in the hole; a counter's growth over more than an hour of it is not guessed.
    assert 2 * A_DAY * 0.65 < found.days[HOLE].requests < 2 * A_DAY * 0.72


def test_few_users_over_28_days_fire_and_a_second_import_changes_nothing(
    shipped: Any, monitored: Prometheus, today: date
) -> None:
    adr = accepted(shipped)
    for fires in (["few-users"], []):
        found = asked(monitored, today, selector='job="chat"')
        arrived = bring_in_usage(shipped, adr.case, found.counted(), by="Kim", source=found.source)
        assert [v.condition for v in arrived.fired] == fires
    assert arrived.evidence == ()
    verdict = next(v for v in flips(shipped, adr) if v.condition == "few-users").verdict
    assert verdict.value == 5
    assert "observed over 28 days" in verdict.sentence
    assert "96% covered" in verdict.sentence  # 27 of 28 days


def test_a_corrected_day_replaces_what_was_brought_in(shipped: Any, today: date) -> None:
    case = accepted(shipped).case
    day = today - timedelta(days=2)
    for peak, requests in ((4.0, 100.0), (9.0, 100.0), (6.0, None)):
        bring_in_usage(shipped, case, [Usage(day, peak, requests)], by="Kim", source="log")
    known = newest(shipped.store.evidence.of_case(case))
    figures = {(e.metric, e.statistic): e.value for e in known if e.id.startswith("observed/")}
    assert figures["peak_in_flight", "max"] == 6
    assert figures["requests_per_day", "mean"] == 100  # the last import did not speak of it


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"selector": 'job="none"'}, InputError, 'has no series that match job="none"'),
        ({"selector": "job=vllm"}, InputError, "is no selector. Write label matchers"),
        ({"selector": 'job="x"} or vector(1) or up{job="x"'}, InputError, "is no selector"),
        ({}, InputError, "scrapes sglang and vllm. Name the engine"),
        ({"engine": "sglang", "selector": 'job="chat"'}, UnknownName,
         r"unknown metric 'sglang:num_running_reqs'. Did you mean 'vllm:num_requests_running'\?"),
        ({"engine": "vlm"}, UnknownName, r"unknown engine 'vlm'. Did you mean 'vllm'\?"),
        ({"selector": 'job="seldom"'}, InputError, "scrapes every 720 s: too seldom to see peaks"),
        ({"days": 0}, InputError, "0 days are asked for"),
    ],
    ids=["no series", "no matchers", "more than matchers", "two engines", "no such metric", "no such engine",
         "too seldom", "no days"],
)  # fmt: skip
def test_what_cannot_be_asked_is_named(
    monitored: Prometheus, today: date, more: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        asked(monitored, today, **more)


def test_a_gauge_that_is_no_number_makes_a_gap(monitored: Prometheus, today: date) -> None:
    found = asked(monitored, today, selector='job="broken"')
    with pytest.raises(InputError, match="no day is covered enough"):
        found.counted()
    assert found.gap_sentences()[0] == f"{today - timedelta(days=DAYS)}: no readable number, not counted."
    assert found.findings[1:] == (
        "No series for requests that wait (only those that run are counted).", "No series for requests that ended.",
        "No series for the prefix cache.",
    )  # fmt: skip


LOG = """timestamp,input_tokens,output_tokens,latency_s,cached_tokens
2026-09-01T00:00:30Z,1000,100,60,0
2026-09-01T00:01:00Z,3000,300,60,3000
2026-09-01T23:59:50Z,2000,200,20,0
2026-09-03T23:59:00Z,500,50,1,500
"""


def test_a_log_is_cut_into_days_of_utc() -> None:
    """The first two overlap; the third is still in flight at midnight, so the second day had one although none came."""
    found = demand_of_log(read_log("gateway.csv", LOG.encode()))
    coverage = [(DAY_S - 30) / DAY_S, 1.0, (DAY_S - 60) / DAY_S]
    assert list(found.days) == [
        Usage(date(2026, 9, 1), 2, 3, 0.5, 2000, 200, pytest.approx(coverage[0])),
        Usage(date(2026, 9, 2), 1, 0, None, None, None, pytest.approx(coverage[1])),
        Usage(date(2026, 9, 3), 1, 1, 1.0, 500, 50, pytest.approx(coverage[2])),
    ]
    assert "days on which nobody asked: 1." in found.findings[-1]


def test_the_first_and_last_day_of_a_log_count_whole_only_on_somebodys_word() -> None:
    rows = "".join(f"2026-09-0{d}T{h:02}:00:00Z,10,10,5\n" for d in (1, 2, 3) for h in range(8, 18))
    log = read_log("office.csv", f"timestamp,input_tokens,output_tokens,latency_s\n{rows}".encode())
    found = demand_of_log(log)
    assert [d.day.day for d in found.days] == [2]
    assert found.gap_sentences() == (
        "2026-09-01: 67% covered, not counted.", "2026-09-03: 71% covered, not counted.",
    )  # fmt: skip
    assert [d.requests for d in demand_of_log(log, whole_days=True).days] == [10, 10, 10]


def test_a_log_without_times_taken_speaks_of_everything_but_the_peak() -> None:
    """An assumed latency would be no observation."""
    azure = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.0,100,10\n2024-05-10 23:00:00.0,300,30\n"
    found = demand_of_log(read_log("azure.csv", azure))
    assert [(d.peak_in_flight, d.requests, d.input_tokens) for d in found.days] == [(None, 2, 200)]
    assert "no peak in flight is taken from it" in found.findings[-1]


def test_a_log_that_counts_from_its_own_zero_has_no_days() -> None:
    text = b"Timestamp,Request tokens,Response tokens\n5,10,10\n9,10,10\n"
    with pytest.raises(InputError, match="tells no dates"):
        demand_of_log(read_log("burst.csv", text))


def test_each_day_knows_what_ran_then(shipped: Any) -> None:
    """Deployed on the 3rd, upgraded on the 5th; days before say so by None."""
    case = accepted(shipped).case
    usage = [Usage(date(2026, 9, d), float(d)) for d in range(1, 7)]
    bring_in_usage(shipped, case, usage, by="Kim", source="gateway log")
    ran = [
        Deployment(
            candidate="vllm", since=datetime(2026, 9, d, tzinfo=UTC), engine="vllm", engine_version=v, by="Kim"
        )
        for d, v in ((3, "0.32"), (5, "0.33"))
    ]  # fmt: skip
    evidence: tuple[Evidence, ...] = shipped.store.evidence.of_case(case)
    days = seen_days(evidence, ran)
    assert [d.ran and d.ran.engine_version for d in days] == [None, None, "0.32", "0.32", "0.33", "0.33"]
    assert [d.usage.peak_in_flight for d in days] == [1, 2, 3, 4, 5, 6]
    assert [d.usage.day.day for d in changes(days)] == [3, 5]
    assert {d.source for d in days} == {"gateway log, brought in by Kim"}
