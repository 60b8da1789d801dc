"""The files that a plan names beside itself: traces, own prompts, quality sets, a tokenizer. Read before anything runs.

Paths are relative to the plan's folder. The plan states the checksum of each load point's file, so that the same plan
always means the same load.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench.json_schema import check_schema
from bench.quality import Item, item_of
from bench.schedule import TraceRow, seeded
from bench.sse import storable
from planner.errors import InputError
from planner.loads import MOST_INPUT_TOKENS, MOST_OUTPUT_TOKENS, LoadPoint
from planner.poc import Plan

LocalCounter = Callable[[str], int]


class Inputs(NamedTuple):
    """What the file of one load point holds; own prompts are in the order in which they are used."""

    trace: tuple[TraceRow, ...] = ()
    prompts: tuple[str, ...] = ()
    quality: tuple[Item, ...] = ()


NO_INPUTS = Inputs()


class PlanInputs(NamedTuple):
    """All files of a plan, read; `tokenizer` counts the tokens of a text."""

    points: dict[str, Inputs] = {}
    tokenizer: LocalCounter | None = None

    def of(self, point: LoadPoint) -> Inputs:
        """The inputs of one load point."""
        return self.points.get(point.name, Inputs())


NO_FILES = PlanInputs()


def read_inputs(plan: Plan, folder: Path) -> PlanInputs:
    """Read every file that the plan names; raises InputError in one sentence for the first that does not do."""
    points = {}
    for point in plan.load_points:
        if point.json_schema is not None:
            check_schema(point.json_schema, where=f"load point {point.name}")
        if point.file:
            points[point.name] = _of_point(point, folder, plan.seed)
    return PlanInputs(points, local_counter(folder / plan.tokenizer_dir) if plan.tokenizer_dir else None)


def _of_point(point: LoadPoint, folder: Path, seed: int) -> Inputs:
    name = str(point.file)
    where = f"load point {point.name}: {name}"
    data = _bytes(folder / name, where)
    digest = hashlib.sha256(data).hexdigest()
    if point.file_sha256 is None:
        raise InputError("the plan states no checksum of it.", where=where, fix=f"Write file_sha256: {digest}.")
    if point.file_sha256 != digest:
        raise InputError(f"is not the file that the plan means: its SHA-256 is {digest}.", where=where,
                         fix="Bring the right file, or write the new checksum.")  # fmt: skip
    text = _text(data, where)
    if point.trace_file:
        rows = read_trace(text, where=where)
        return Inputs(trace=tuple(_enough(rows, point.requests, "requests", where)))
    if point.quality_file:
        items = [item_of(row, at) for row, at in _json_lines(text, where)]
        if len(items) != point.requests:
            raise InputError(f"holds {len(items)} items, and the plan says requests: {point.requests}.", where=where,
                             fix=f"Write requests: {len(items)}.")  # fmt: skip
        if len({item.id for item in items}) != len(items):
            raise InputError("two items carry the same id.", where=where)
        return Inputs(quality=tuple(items))
    prompts = [_prompt(row, at) for row, at in _json_lines(text, where)]
    _enough(prompts, point.requests, "prompts", where)
    seeded("own prompts", seed).shuffle(prompts)
    return Inputs(prompts=tuple(prompts))


def _enough(rows: list[Any], needed: int, what: str, where: str) -> list[Any]:
    if len(rows) < needed:
        found = what.removesuffix("s") if len(rows) == 1 else what
        raise InputError(f"holds {len(rows)} {found}, and the point needs {needed}.", where=where,
                         fix="Lower requests, or bring a longer file.")  # fmt: skip
    return rows


def _prompt(row: dict[str, Any], where: str) -> str:
    prompt = row.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError("the line has no prompt.", where=where, fix='Write {"prompt": "..."} on each line.')
    return prompt


def _bytes(path: Path, where: str) -> bytes:
    fix = "Its path is relative to the plan's folder."
    try:
        if path.exists() and not path.is_file():  # a device never ends
            raise InputError("is not a plain file.", where=where, fix=fix)
        return path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=where, fix=fix) from None


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=where) from None


def _json_lines(text: str, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Each object of a JSONL text, with its place for an error."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        at = f"{where} line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # no JSON, or nested without end, or thousands of digits
            row = None
        if "\\ud" in line.lower() and storable(told := json.dumps(row, ensure_ascii=False)) != told:
            raise InputError("holds half a surrogate pair, which is no text.", where=at)
        if not isinstance(row, dict):
            raise InputError("is not a JSON object.", where=at, fix="Write one object a line.")
        yield row, at


def _seconds(text: Any) -> float:
    return float(text)


def _milliseconds(text: Any) -> float:
    return float(text) / 1000


def _moment(text: Any) -> float:
    at = datetime.fromisoformat(str(text).strip())
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _count(value: Any) -> int:
    """A whole number, as JSON or a column has it; raises ValueError."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(value)
    return int(value)


# Time, prompt and answer column of the trace files that are known: ours, Mooncake's, BurstGPT's, Azure's.
_COLUMNS: tuple[tuple[tuple[str, str, str], Callable[[Any], float]], ...] = (
    (("t_s", "input_tokens", "output_tokens"), _seconds),
    (("timestamp", "input_length", "output_length"), _milliseconds),
    (("Timestamp", "Request tokens", "Response tokens"), _seconds),
    (("TIMESTAMP", "ContextTokens", "GeneratedTokens"), _moment),
)


def read_trace(text: str, *, where: str) -> list[TraceRow]:
    """A trace from JSONL or CSV; times count from its first row. A row without an answer is left out.

    Raises InputError with the line when a column is missing, a value is no number, or time runs backwards.
    """
    rows = list(_json_lines(text, where) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text, where))
    if not rows:
        raise InputError("holds no requests.", where=where)
    columns = next(((names, read) for names, read in _COLUMNS if set(names) <= rows[0][0].keys()), None)
    if columns is None:
        known = "; ".join(", ".join(names) for names, _ in _COLUMNS)
        raise InputError("has no columns for time, prompt and answer.", where=where, fix=f"One of: {known}.")
    found: list[TraceRow] = []
    for row, at in rows:
        (when, prompt, answer), read = columns
        try:
            read_row = TraceRow(read(row[when]), _count(row[prompt]), _count(row[answer]))
        except (KeyError, TypeError, ValueError, OverflowError):
            form = "a moment and two whole numbers" if read is _moment else "a number and two whole numbers"
            raise InputError(f"{when}, {prompt} and {answer} must be {form}.", where=at) from None
        if not math.isfinite(read_row.at_s) or min(read_row[1:]) < 0:
            raise InputError(f"{when}, {prompt} and {answer} must be numbers from 0 on.", where=at)
        if read_row.input_tokens > MOST_INPUT_TOKENS or read_row.output_tokens > MOST_OUTPUT_TOKENS:
            raise InputError(f"a request has at most {MOST_INPUT_TOKENS:,} tokens, an answer {MOST_OUTPUT_TOKENS:,}.",
                             where=at)  # fmt: skip
        if found and read_row.at_s < found[-1].at_s:
            raise InputError("its time is before that of the row above.", where=at, fix="Sort the trace by time.")
        found.append(read_row)
    begin = found[0].at_s
    return [row._replace(at_s=row.at_s - begin) for row in found if min(row[1:]) > 0]


def _csv_rows(text: str, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Each row of a CSV text, with its place for an error."""
    table = csv.DictReader(io.StringIO(text))
    try:
        for row in table:
            yield row, f"{where} line {table.line_num}"
    except csv.Error as e:
        raise InputError(f"is not CSV: {e}.", where=f"{where} line {table.line_num + 1}") from None


def local_counter(folder: Path) -> LocalCounter:
    """Count tokens with a tokenizer.json; raises InputError when it, or the package that reads it, is not there."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError("holds no tokenizer.json.", where=f"tokenizer_dir {folder}",
                         fix="Name the folder of the model, relative to the plan's.")  # fmt: skip
    try:
        library: Any = importlib.import_module("tokenizers")
    except ImportError:
        raise InputError("needs the Python package tokenizers, which is not installed.", where="tokenizer_dir",
                         fix="pip install tokenizers, or leave the field out.") from None  # fmt: skip
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as e:  # the library raises Exception itself
        raise InputError(f"is not a tokenizer: {str(e).splitlines()[0]}.", where=str(path)) from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
