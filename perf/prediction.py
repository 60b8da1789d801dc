"""What the planner predicts of public measurements, and how far off it is: a table per quantity, class and engine.

python -m perf.prediction                     the measurements that ship in perf/truth
python -m perf.prediction --truth FILE        another CSV with the columns of one of them
python -m perf.prediction --json              "rows" with quantity, class, engine, n, mape, within_30, worst
python -m perf.prediction --check             exit status 1 where a target is missed
python -m perf.prediction --speed             milliseconds of one full sizing

mape and within_30 are fractions (0.18 is 18 %); class is dense or moe for speeds, the architecture for memory.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from perf import memory_truth, throughput_truth
from perf.predicted import Predicted
from planner.capacity import size
from planner.catalog import Catalog, load_catalog
from planner.errors import InputError
from planner.requirements import Hardware, ModelPlan, Requirements

SHIPPED = Path(__file__).resolve().parent / "truth"
# Who predicts a file is told by the figures that its columns name.
READERS = (throughput_truth, memory_truth)
ALL = "all"
# Mean absolute error allowed, and the share that must lie within 30 %, by quantity, class and engine.
MAPE_TARGETS = {("tpot_ms", "dense", ALL): 0.20, ("tpot_ms", "moe", ALL): 0.25}
ENGINE_TARGET = 0.35
FEWEST_OF_AN_ENGINE = 5
WITHIN_TARGETS = {("tpot_ms", ALL, ALL): 0.80}


class Group(NamedTuple):
    """Errors of one quantity, class and engine."""

    quantity: str
    klass: str
    engine: str
    n: int
    mape: float
    within_30: float
    median_ratio: float
    worst: Predicted

    def as_json(self) -> dict[str, Any]:
        """The row as --json prints it."""
        own = self._asdict() | {"class": self.klass, "worst": self.worst.as_json() | {"error": self.worst.error}}
        del own["klass"]
        return own


def read_truth(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV of measurements, in any order of columns; cells of columns that it lacks are empty.

    Raises InputError where the file cannot be read or has none of the figures.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as f:
            reader = csv.DictReader(f)
            named = [(c or "").strip().lower() for c in reader.fieldnames or []]
            told = [[(row[c] or "").strip() for c in reader.fieldnames or []] for row in reader]
    except FileNotFoundError:
        raise InputError("file not found.", where=str(path), fix="Give a CSV with the columns of perf/truth.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"cannot be read as CSV: {e}.", where=path.name, fix="Save it as CSV in UTF-8.") from None
    kind = max(READERS, key=lambda r: sum(c in r.FIGURES for c in named))
    if not any(c in kind.FIGURES for c in named):
        figures = ", ".join(f for r in READERS for f in r.FIGURES)
        raise InputError("neither a file of speeds nor of memory.", where=path.name,
                         fix=f"It needs at least one of the columns {figures}.")  # fmt: skip
    empty = dict.fromkeys(kind.COLUMNS, "")
    return [empty | dict(zip(named, cells, strict=True)) for cells in told]


def predict(rows: list[dict[str, str]], catalog: Catalog) -> list[Predicted]:
    """Every figure of a file with its prediction or the reason why there is none."""
    reader = next((r for r in READERS if rows and r.FIGURES[0] in rows[0]), None)
    return reader.predict(rows, catalog) if reader else []


def groups(found: Iterable[Predicted]) -> list[Group]:
    """Errors per quantity, class and engine, with "all" over the engines of a class and over the classes."""
    pooled: dict[tuple[str, str, str], list[Predicted]] = defaultdict(list)
    for p in found:
        if p.predicted is not None and p.measured:
            for klass, engine in dict.fromkeys(((p.klass, p.engine), (p.klass, ALL), (ALL, p.engine), (ALL, ALL))):
                pooled[p.quantity, klass, engine].append(p)
    return [_group(key, members) for key, members in sorted(pooled.items())]


def _group(key: tuple[str, str, str], members: list[Predicted]) -> Group:
    errors = [e for p in members if (e := p.error) is not None]
    return Group(
        *key, n=len(errors), mape=statistics.mean(map(abs, errors)),
        within_30=sum(abs(e) <= 0.3 for e in errors) / len(errors), median_ratio=1 + statistics.median(errors),
        worst=max(members, key=lambda p: abs(p.error or 0.0)),
    )  # fmt: skip


def missed(table: Iterable[Group]) -> list[str]:
    """Targets that the table misses, as sentences; an engine with fewer than five rows of a class is only shown."""
    said = []
    for g in table:
        key = (g.quantity, g.klass, g.engine)
        each = g.quantity == "tpot_ms" and g.engine != ALL and g.n >= FEWEST_OF_AN_ENGINE
        limit = MAPE_TARGETS.get(key, ENGINE_TARGET if each else None)
        if limit is not None and g.mape > limit:
            said.append(f"{' '.join(key)}: mean error {g.mape:.1%}, allowed {limit:.0%}")
        share = WITHIN_TARGETS.get(key)
        if share is not None and g.within_30 < share:
            said.append(f"{' '.join(key)}: {g.within_30:.1%} within 30 %, asked {share:.0%}")
    return said


def sizing_ms(repeats: int = 50) -> float:
    """Median milliseconds of processor for one full sizing: three kinds of speed, batch table, both constraints."""
    catalog = load_catalog()
    plan = ModelPlan(id="B", label="30B, 3B active", model="Qwen/Qwen3-30B-A3B", quantization="fp8")
    hardware = Hardware(gpu="nvidia-gb10-dgx-spark")
    case = Requirements(
        peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2,
        input_tokens=3596, output_tokens=500, context_tokens=4096, model_plans=(plan,), hardware=(hardware,),
    )  # fmt: skip
    took = []
    for _ in range(repeats):
        began = time.process_time()  # other programs on the machine are not the planner's time
        size(case, plan, hardware, catalog)
        took.append(1000 * (time.process_time() - began))
    return statistics.median(took)


def _table(table: list[Group]) -> str:
    lines = [f"{'quantity':16}{'class':20}{'engine':14}{'n':>5}{'MAPE':>8}{'±30 %':>8}{'pred/meas':>11}  worst"]
    for g in table:
        worst = f"{g.worst.model} on {g.worst.gpu}: {g.worst.predicted:.3g}, measured {g.worst.measured:.3g}"
        shares = f"{g.mape:8.1%}{g.within_30:8.0%}{g.median_ratio:11.2f}"
        lines.append(f"{g.quantity:16}{g.klass:20}{g.engine:14}{g.n:5}{shares}  {worst}")
    return "\n".join(lines)


def _unpredicted(found: list[Predicted]) -> list[Predicted]:
    return [p for p in found if p.predicted is None]


def main(argv: list[str] | None = None) -> int:
    """Print the table; 0 when it could be made, 1 with --check where a target is missed, 2 for a bad file."""
    parser = argparse.ArgumentParser(prog="python -m perf.prediction", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--truth", type=Path, action="append", help="a CSV of measurements; may be given twice")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--check", action="store_true", help="exit status 1 where a target is missed")
    parser.add_argument("--speed", action="store_true", help="also time one full sizing")
    asked = parser.parse_args(argv)
    catalog = load_catalog()
    try:
        files = [read_truth(p) for p in asked.truth or sorted(SHIPPED.glob("*.csv"))]
    except InputError as e:
        print(f"BROKEN {e}")
        return 2
    found = [p for rows in files for p in predict(rows, catalog)]
    table, left_out = groups(found), _unpredicted(found)
    faults = missed(table)
    took = sizing_ms() if asked.speed else None
    if asked.json:
        print(json.dumps({"rows": [g.as_json() for g in table], "not_predicted": [p.as_json() for p in left_out],
                          "missed": faults, "sizing_ms": took}))  # fmt: skip
    else:
        print(_table(table))
        print(f"\n{len(left_out)} figures without a prediction:")
        for p in left_out:
            print(f"  {p.quantity:16}{p.model} on {p.gpu or 'no named device'}, {p.engine}: {p.reason}")
        print(f"\nTargets: {'; '.join(faults) or 'all met'}")
        if took is not None:
            print(f"One full sizing: {took:.1f} ms")
    return 1 if asked.check and faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
