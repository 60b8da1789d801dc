"""What is wrong, or odd, about the rows of a pasted table taken together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.errors import InputError
from planner.metrics import METRICS
from services.filled import Filled
from services.pasted_numbers import moment
from services.pasted_sheet import Sheet
from services.pasted_words import Heading

# Beyond these a latency is hardly one: milliseconds under a heading of seconds, or the other way round.
PLAUSIBLE_MS = {"ttft_ms": (1.0, 600_000.0), "ttft_service_ms": (1.0, 600_000.0), "e2e_ms": (1.0, 86_400_000.0),
                "itl_ms": (0.05, 60_000.0), "tpot_ms": (0.05, 60_000.0)}  # fmt: skip
APART = 300.0  # a column of one unit hardly spans more
RISING = ("p5", "p50", "p90", "p95", "p99", "max")


def must_be_in_order(made: Sequence[Filled]) -> None:
    """Percentiles of a row rise, and a first token never comes after the last; raises InputError when not."""
    value = {(f.metric, f.statistic): f for f in made if not f.spread}
    for metric in {f.metric for f in made}:
        ranked = [f for q in RISING if (f := value.get((metric, q)))]
        for low, high in pairwise(ranked):
            if low.value > high.value:
                what = f"{METRICS[metric].name} {low.statistic} is above {high.statistic}"
                _mixed_up(f"{what}: {low.value:g} > {high.value:g}.", low)
    for (metric, statistic), first in value.items():
        whole = value.get(("e2e_ms", statistic))
        if metric == "ttft_ms" and whole and first.value > whole.value:
            what = f"ttft {statistic} is longer than e2e {statistic}"
            _mixed_up(f"{what}: {first.value:g} > {whole.value:g} ms.", first)


def _mixed_up(what: str, figure: Filled) -> None:
    raise InputError(what, where=f"row {figure.row}", fix="Look at columns and units.")


def must_be_one_clock(sheet: Sheet, columns: Sequence[Heading]) -> None:
    """Times state their zone in all rows or in none; raises InputError naming one of each and counting both."""
    place = next((i for i, c in enumerate(columns) if c.holds == "at"), None)
    if place is None:
        return
    read = {r.number: m[1] for r in sheet.rows if (m := moment(r.cells[place]))}
    zoned, bare = ([n for n, zone in read.items() if zone is z] for z in (True, False))
    if zoned and bare:
        raise InputError(
            f"rows that state their time zone: {len(zoned)} (first: row {zoned[0]}); that do not: {len(bare)} (first: "
            f"row {bare[0]}).", where=f"{sheet.name}, {sheet.headings[place]}", fix="State it in every row.",
        )  # fmt: skip


def as_repeats(rows: Sequence[Filled]) -> tuple[list[Filled], list[str]]:
    """Rows for the same thing are repeats in their order, where no column numbers them; told in a sentence.

    Raises InputError when two rows carry the same number.
    """
    groups: dict[Filled, list[int]] = {}
    for i, f in enumerate(rows):
        groups.setdefault(f._replace(value=0.0, row=None, n=None, at=None), []).append(i)
    found = list(rows)
    taken: set[tuple[int | None, ...]] = set()
    for about, same in groups.items():
        if len(same) == 1:
            continue
        numbers = tuple(rows[i].row for i in same)
        if about.repeat is not None:
            raise InputError(f"rows {numbers[0]} and {numbers[1]} are both repeat {about.repeat} of the same load.",
                             where="table", fix="Number the repeats.")  # fmt: skip
        for repeat, i in enumerate(same, 1):
            found[i] = rows[i]._replace(repeat=repeat)
        taken.add(numbers)
    return found, [f"rows {', '.join(map(str, t))} are read as repeats of the same load" for t in sorted(taken)]


def odd_latencies(rows: Sequence[Filled]) -> list[str]:
    """Values that look as if seconds and milliseconds were mixed up."""
    found = []
    for metric, (low, high) in PLAUSIBLE_MS.items():
        of = [f for f in rows if f.metric == metric]
        beyond = [f for f in of if not low <= f.value <= high]
        name = METRICS[metric].name
        if beyond:
            found.append(f"values of {name} that are hardly possible: {len(beyond)} (first: row {beyond[0].row}, "
                         f"{beyond[0].value:g} ms). Seconds against milliseconds?")  # fmt: skip
        elif of and max(f.value for f in of) > APART * min(f.value for f in of):
            least, most = min(of, key=lambda f: f.value), max(of, key=lambda f: f.value)
            found.append(f"{name} runs from {least.value:g} ms (row {least.row}) to {most.value:g} ms (row "
                         f"{most.row}). Seconds and milliseconds in one column?")  # fmt: skip
    return found
