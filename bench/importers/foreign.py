"""What every importer shares: the table of foreign terms, the load read from a file, and reading without surprises."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from pydantic import ValidationError

from bundle.manifest import Figure
from bundle.records import Outcome, Record
from planner.errors import InputError
from planner.faults import first_fault
from planner.loads import Arrival, LoadPoint
from planner.metrics import METRICS, PERCENTILES

Doc = dict[str, Any]
AT_DISPATCH = "starts at dispatch; ours starts at the scheduled time, so that waiting counts"
NO_SCHEDULE = "the file does not say when each request was due"
NO_DETAIL = "the file holds no value per request"
WHOLE_RUN = "over the whole run, ramp-up and drain included"
ENGINE_ALONE = "engine alone: no server, no HTTP, no queue, no sampling"
EXPECTATION = "the engine alone was timed, so its figures give an expectation and decide nothing"


class Term(NamedTuple):
    """A foreign name: taken as our `metric`, or refused when that is empty. `why` says what differs."""

    theirs: str
    metric: str = ""
    why: str = ""


class Stated(NamedTuple):
    """What the person states because the file does not say it."""

    in_flight: int | None = None
    rate_per_s: float | None = None
    day: date | None = None


class Load(NamedTuple):
    """One load of a foreign file. `unstated` names fields of the point that the file does not say."""

    point: LoadPoint
    at: datetime
    duration_s: float
    records: tuple[Record, ...] = ()
    figures: tuple[Figure, ...] = ()
    unstated: tuple[str, ...] = ("shared_prefix",)
    notes: tuple[str, ...] = ()


class Foreign(NamedTuple):
    """A foreign file, read. `contract` and `settings` are what it says about the server."""

    tool: str
    version: str
    loads: tuple[Load, ...]
    taken: dict[str, str]
    refused: dict[str, str]
    not_measured: dict[str, str]
    from_records: tuple[str, ...] = ()
    remarks: dict[str, str] = {}
    contract: dict[str, str] = {}
    settings: dict[str, str] = {}


class Format(NamedTuple):
    """One format: how it is recognised, read, and which of its terms mean what. `read` raises InputError."""

    name: str
    what: str
    terms: tuple[Term, ...]
    recognises: Callable[[str, Sequence[Doc]], bool]
    read: Callable[[str, Sequence[Doc], Stated], Foreign]

    def refused(self) -> dict[str, str]:
        """Their names that are not taken, with the reason."""
        return {t.theirs: t.why for t in self.terms if not t.metric}


def documents(text: str) -> list[Doc]:
    """JSON objects of a file: one, a list, one a line, or one after another; empty when it is not JSON.

    Infinity and NaN may stand bare, as several tools write them. Raises InputError when the text ends inside one.
    """
    if text[:1] not in ("{", "["):
        return []
    decoder, found, at = json.JSONDecoder(), list[Doc](), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as e:
            line = text.count("\n", 0, e.pos) + 1
            raise InputError(f"is not whole: the JSON breaks off at line {line}.", fix="Copy the file again.") from None
        except (ValueError, RecursionError):  # nested without end, or a number of thousands of digits
            raise InputError("holds JSON that no tool writes.", fix="Choose the file as the tool wrote it.") from None
        found += [d for d in (value if isinstance(value, list) else [value]) if isinstance(d, dict)]
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
    return found


def table_rows(text: str, first: str) -> list[dict[str, str]]:
    """Rows of the Markdown tables in a text whose header begins with the column `first`; cells are stripped."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|"):
            header = []
        elif cells[0] == first:
            header = cells
        elif header and not set("".join(cells)) <= set("-: ") and len(cells) == len(header):
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def text_of(doc: Mapping[str, Any], name: str) -> str:
    """A text field, empty when it is absent."""
    value = doc.get(name)
    return value if isinstance(value, str) else ""


def number(doc: Mapping[str, Any], name: str) -> float | None:
    """A finite number, or None when it is absent, null, not a number or not finite."""
    value = doc.get(name)
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good and value is not None else None


def needed(doc: Mapping[str, Any], name: str) -> float:
    """A number that must be there; raises InputError with the field's name."""
    value = number(doc, name)
    if value is None:
        what = "is missing" if doc.get(name) is None else f"is {doc[name]!r}, not a number"
        raise InputError(f"field {name!r} {what}.", fix="Choose the file as the tool wrote it.")
    return value


def part(doc: Mapping[str, Any], name: str) -> Doc:
    """An object that must be there; raises InputError with the field's name."""
    value = doc.get(name)
    if not isinstance(value, dict):
        raise InputError(f"field {name!r} is missing.", fix="Choose the file as the tool wrote it.")
    return value


def load_point(
    *, in_flight: float | None, rate_per_s: float | None = None, arrival: Arrival = "poisson", burstiness: float = 1.0,
    input_tokens: float, output_tokens: float, requests: float,
) -> LoadPoint:  # fmt: skip
    """The load of a foreign result; mean lengths are rounded to whole tokens.

    Raises InputError when the concurrency or a length is not known: without them a speed means nothing.
    """
    if in_flight is None and rate_per_s is None:
        raise InputError(
            "does not say how many requests were in flight or at which rate, and a speed without load means nothing.",
            fix="State the requests in flight or the rate (--in-flight, --rate).",
        )
    lengths = round(input_tokens), round(output_tokens)
    if min(lengths) < 1:
        raise InputError("holds no prompt or answer length, and a speed without lengths means nothing.",
                         fix="Choose a run that answered.")  # fmt: skip
    amount = f"in-flight-{in_flight:.0f}" if in_flight is not None else f"rate-{rate_per_s:g}"
    try:
        return LoadPoint.model_validate({
            "name": f"{amount}-{lengths[0]}-{lengths[1]}".replace("+", ""),
            "shape": "open" if in_flight is None else "closed",
            "in_flight": None if in_flight is None else round(in_flight),
            "rate_per_s": rate_per_s if in_flight is None else None, "arrival": arrival, "burstiness": burstiness,
            "input_tokens": lengths[0], "output_tokens": lengths[1], "requests": max(1, round(requests)),
            "warmup_requests": 0,
        })  # fmt: skip
    except ValidationError as e:
        raise InputError(f"has a load that cannot be: {first_fault(e)}") from None


def day_of(stated: Stated) -> datetime:
    """The day that the person states; raises InputError when it is needed and absent."""
    if stated.day is None:
        raise InputError("does not say when it was measured.", fix="State the day of the run (--date).")
    return datetime.combine(stated.day, time(), UTC)


STATISTICS = {"mean": "mean", "median": "p50", "avg": "mean"} | {p: p for p in PERCENTILES}


def flat_figures(
    doc: Mapping[str, Any], terms: Sequence[Term], point: str, n: int, failed: int
) -> Iterator[Figure]:  # fmt: skip
    """Figures from fields named like `p95_ttft_ms`, and the speed per user that follows from TPOT.

    Percentiles that leave failures out are spoiled: under our definition a failure is beyond every threshold.
    """
    spoiled = (f"failures-left-out: {failed} of {n + failed} requests failed and this figure leaves them out",)
    for term in terms:
        if not term.metric or METRICS[term.metric].level.value != "request":
            continue
        for theirs, ours in STATISTICS.items():
            name = f"{theirs}_{term.theirs}"
            value = number(doc, name)
            if not value or (theirs == "median" and f"p50_{term.theirs}" in doc):
                continue
            made = Figure(load_point=point, metric=term.metric, statistic=ours, value=value, n=n, theirs=name,
                          remark=term.why, spoiled_by=spoiled if failed else ())  # fmt: skip
            yield made
            if term.metric == "tpot_ms" and ours in MIRRORED:
                yield made.model_copy(update={
                    "metric": "user_tok_s", "statistic": MIRRORED[ours], "value": 1000 / value,
                    "remark": f"1000 / {name}",
                })  # fmt: skip


# The slowest users have the longest time per token: 1000 / p95 of TPOT is the p5 of their speed.
MIRRORED = {"p5": "p95", "p50": "p50", "p95": "p5"}


def run_figures(
    point: str, *, n: int, output_tok_s: float | None = None, request_rate: float | None = None,
    failed: int | None = None, names: tuple[str, str] = ("output_throughput", "request_throughput"),
) -> Iterator[Figure]:  # fmt: skip
    """Throughput, request rate and error share of a run; what is None or zero is not there."""
    for metric, value, theirs in (("output_tok_s", output_tok_s, names[0]), ("request_rate", request_rate, names[1])):
        if value:
            yield Figure(load_point=point, metric=metric, value=value, n=n, theirs=theirs, remark=WHOLE_RUN)
    if failed is not None and n + failed:
        share = failed / (n + failed)
        yield Figure(load_point=point, metric="error_share", value=share, n=n + failed, theirs="failed")
        yield Figure(load_point=point, metric="completed_share", value=1 - share, n=n + failed, theirs="completed")


def record(
    i: int, outcome: Outcome, *, dispatched_s: float, scheduled_s: float | None = None, first_s: float | None = None,
    chunks: Sequence[float] = (), chunk_tokens: Sequence[int] = (), prompt_tokens: int | None = None,
    output_tokens: int | None = None, end_s: float | None = None, error: str = "",
) -> Record:  # fmt: skip
    """A request as far as a foreign file tells it; times in seconds after t0, unknown ones None.

    What was asked for is not in such files, so the answer's own length stands for it.
    """
    last = chunks[-1] if chunks else None
    return Record(
        request=i, cohort="load", outcome=outcome, scheduled_s=dispatched_s if scheduled_s is None else scheduled_s,
        dispatched_s=dispatched_s, sent_s=None, first_byte_s=None, first_token_s=first_s, first_visible_s=None,
        last_token_s=last, end_s=end_s if end_s is not None else last, chunk_s=list(chunks),
        chunk_tokens=list(chunk_tokens), prompt_tokens=prompt_tokens, output_tokens=output_tokens, cached_tokens=None,
        asked_prompt_tokens=prompt_tokens or 0, asked_output_tokens=output_tokens or 0, finish_reason="",
        http_status=None, error_kind="" if outcome == "ok" else "foreign", error=error[:500], reconnected=False,
        server_timings="",
    )  # fmt: skip


def looks_like_model_id(name: str) -> bool:
    """Whether a name is owner/model as on a hub, and so can be held against a plan's; a path or an alias is not."""
    return bool(re.fullmatch(r"[\w.-]+/[\w.-]+", name))
