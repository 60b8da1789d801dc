"""From a foreign file to a sealed bundle of kind imported: whole, or nothing at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pydantic_core import PydanticSerializationError

from bench.importers import aiperf, guidellm, llama_batched_bench, llama_bench, llama_benchy, sglang_bench, vllm_bench
from bench.importers.foreign import Foreign, Format, Load, Stated, documents
from bench.machine import TOOL_VERSION
from bundle.folder import LONGEST_NAME, seal
from bundle.manifest import EngineStart, Imported, Manifest, Repeat
from bundle.records import read_records, write_records
from planner.conditions import Kind
from planner.contract import FIELD, Contract
from planner.errors import BundleError, InputError, UnknownName
from planner.frozen import sha256_of
from planner.loads import LoadPoint
from planner.poc import Plan

FORMATS: dict[str, Format] = {
    f.FORMAT.name: f.FORMAT
    for f in (vllm_bench, sglang_bench, guidellm, aiperf, llama_benchy, llama_batched_bench, llama_bench)
}
PRINTED = "= Serving Benchmark Result ="
AS_WRITTEN, HALF = "Choose the file as the tool wrote it.", "holds half a character, which no text can."
SLACK_S = 0.001  # between clocks of one machine
NEAR = 0.05  # lengths in files are means of what was drawn or answered


class Choices(NamedTuple):
    """What the person says about a file: whose result it is, from where, and which planned loads it stands for.

    `stands_for` maps a load of the file (by its name, or "" for the only one) to a load point of the plan.
    """

    candidate: str
    plan: Plan | None = None
    stands_for: Mapping[str, str] = {}
    source: str = ""
    licence: str = ""
    contract: Mapping[str, str] = {}
    stated: Stated = Stated()


def read_foreign(name: str, content: bytes, stated: Stated, format: str = "") -> Foreign:
    """Recognise and read a file.

    Raises InputError in one sentence: empty, not text, cut off, of no known format, or a field missing.
    """
    if not content.strip():
        raise InputError("is empty.", where=name, fix=AS_WRITTEN)
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix=AS_WRITTEN) from None
    if format and format not in FORMATS:
        raise UnknownName.from_known("format", format, FORMATS, where=name)
    chosen: Format | None = None
    try:
        docs = documents(text)
        chosen = FORMATS[format] if format else next((f for f in FORMATS.values() if f.recognises(text, docs)), None)
        if chosen is None or not chosen.recognises(text, docs):
            if chosen:
                raise InputError(f"is not the output of {chosen.what}.", fix=AS_WRITTEN)
            if PRINTED in text:
                raise InputError("is what vllm bench serve or SGLang prints, not the file it saves.",
                                 fix="Choose that file (--save-result, or --output-file of SGLang).")  # fmt: skip
            raise InputError(f"is no result that can be read here ({', '.join(FORMATS)}).",
                             fix=AS_WRITTEN)  # fmt: skip
        return _agreeing(chosen.read(text, docs, stated), stated, chosen)
    except InputError as e:
        raise type(e)(e.what, where=name, fix=e.fix) from None
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as e:
        raise InputError(f"a field holds another kind of value than {chosen.what if chosen else 'known'} writes: {e}.",
                         where=name, fix=AS_WRITTEN) from None  # fmt: skip


def _agreeing(foreign: Foreign, stated: Stated, format: Format) -> Foreign:
    """What the person states may fill a gap of the file, never overrule it."""
    if format is not aiperf.FORMAT and (stated.in_flight is not None or stated.rate_per_s is not None):
        raise InputError(f"says its load itself: {foreign.loads[0].point.in_words()}.",
                         fix="Leave in flight and rate empty.")  # fmt: skip
    other = [load.at.date() for load in foreign.loads if stated.day and load.at.date() != stated.day]
    if other:
        raise InputError(f"says itself that it was measured on {other[0]}.", fix="Leave the day empty.")
    return foreign


def import_file(path: Path, out: Path, choices: Choices, format: str = "") -> tuple[Path, Manifest, Foreign]:
    """Write the bundle of a foreign file under `out` and return its folder.

    The same file with the same choices gives the same bundle. Raises InputError and leaves nothing behind.
    """
    try:
        content = path.read_bytes()
    except OSError as e:
        raise InputError(f"cannot be read: {e.strerror}.", where=str(path)) from None
    if not (0 < len(choices.candidate) <= LONGEST_NAME and choices.candidate.isprintable()) or "/" in choices.candidate:
        raise InputError(f"{choices.candidate[:80]!r} cannot be the name of a candidate.", where=path.name,
                         fix="Use letters, digits, points and dashes.")  # fmt: skip
    foreign = read_foreign(path.name, content, choices.stated, format)
    loads, findings = _named(foreign, choices, path.name)
    sha256 = hashlib.sha256(content).hexdigest()
    identity = sha256_of([sha256, choices.candidate, dict(choices.stands_for), choices.source, choices.licence,
                          dict(choices.contract), str(choices.stated)])[:32]  # fmt: skip
    folder = out / f"{choices.candidate}-imported-{identity[:8]}"
    if folder.exists():
        raise InputError("was imported there already.", where=str(folder), fix="Choose another --out.")
    out.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=out))
    try:
        repeats, points, figures, words = [], dict[str, LoadPoint](), [], dict[str, str]()
        for (load, number), own in zip(_numbered(loads), foreign.loads, strict=True):
            words[load.point.name] = own.point.in_words()
            points[load.point.name] = load.point
            _must_be_possible(load, path.name)
            figures += [f.model_copy(update={"load_point": load.point.name, "repeat": number}) for f in load.figures]
            if load.records:
                repeats.append(_repeat(part, load, number, path.name))
        at = max(load.at for load in loads).isoformat(timespec="seconds")
        planned = {c.id: c for c in choices.plan.candidates} if choices.plan else {}
        manifest = Manifest(
            id=identity, kind=Kind.IMPORTED, tool_version=TOOL_VERSION,
            case=choices.plan.case if choices.plan else "", plan_sha256="", candidate=choices.candidate,
            role=planned[choices.candidate].role if planned else "",
            engine=planned[choices.candidate].engine if planned else choices.contract.get("engine", "not stated"),
            stage="imported", start=1, created_at=at, finished_at=at, status="complete",
            contract=_contract(foreign, choices, path.name), settings_resolved=foreign.settings,
            engine_start=EngineStart(url="", attached=True, started=True), points=tuple(points.values()),
            repeats=tuple(repeats), findings=findings, figures=tuple(figures),
            imported=Imported(
                tool=foreign.tool, version=foreign.version, file=path.name, file_sha256=sha256,
                source=choices.source, licence=choices.licence, from_records=foreign.from_records,
                loads=words, not_measured=_not_measured(foreign), refused=foreign.refused, remarks=foreign.remarks,
            ),
        )  # fmt: skip
        sealed = seal(part, manifest)
        part.rename(folder)
    except PydanticSerializationError:
        raise InputError(HALF, where=path.name, fix=AS_WRITTEN) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder, sealed, foreign


# What a reader looks for; a file that neither gives nor explains one is said to lack it.
LOOKED_FOR = ("ttft_service_ms", "ttft_ms", "itl_ms", "tpot_ms", "user_tok_s", "e2e_ms", "output_tok_s", "error_share")


def _not_measured(foreign: Foreign) -> dict[str, str]:
    given = {f.metric for load in foreign.loads for f in load.figures} | set(foreign.from_records)
    absent = dict.fromkeys(LOOKED_FOR, "not in the file") | foreign.not_measured
    return {m: why for m, why in absent.items() if m not in given}


def _named(foreign: Foreign, choices: Choices, name: str) -> tuple[list[Load], tuple[str, ...]]:
    """Loads under the names they stand for, and what has to be said about that."""
    plan = choices.plan
    if plan and choices.candidate not in {c.id for c in plan.candidates}:
        raise UnknownName.from_known("candidate", choices.candidate, (c.id for c in plan.candidates), where=name)
    own = list(dict.fromkeys(load.point.name for load in foreign.loads))
    wanted = {k or own[0]: v for k, v in choices.stands_for.items()}
    if "" in choices.stands_for and len(own) > 1:
        raise InputError(f"holds {len(own)} loads: {', '.join(own)}.", where=name,
                         fix="Say which one stands for the point (--point LOAD=POINT).")  # fmt: skip
    for theirs, point in wanted.items():
        if theirs not in own:
            raise UnknownName.from_known("load", theirs, own, where=name)
        if plan:
            plan.point(point)
    if len(set(wanted.values())) < len(wanted):
        raise InputError("two of its loads cannot stand for one point.", where=name, fix="Name another point.")
    made = list[Load]()
    several = len(own) > 1
    common = {n for n in foreign.loads[0].notes if several and all(n in load.notes for load in foreign.loads)}
    findings = [n if n in common else f"{load.point.name}: {n}" for load in foreign.loads for n in load.notes]
    for load in foreign.loads:
        target = wanted.get(load.point.name)
        if target is None:
            made.append(load)
            continue
        stands, said = _stand_for(load, plan.point(target) if plan else None, target)
        made.append(stands)
        findings.append(said)
    return made, tuple(dict.fromkeys(f for f in findings if f))


def _stand_for(load: Load, planned: LoadPoint | None, name: str) -> tuple[Load, str]:
    """The load as the plan's point when it is that load within 5 %; else it keeps its own load, which is said."""
    named = load._replace(point=load.point.model_copy(update={"name": name}))
    if planned is None:
        return named, ""
    mine = load.point
    exact = ("shape", "in_flight", "arrival", "burstiness", "shared_prefix")
    same = all(getattr(mine, f) == getattr(planned, f) for f in exact if f not in load.unstated)
    pairs: list[tuple[float, float]] = [
        (mine.input_tokens, planned.input_tokens),
        (mine.output_tokens, planned.output_tokens),
    ]
    pairs += [(mine.rate_per_s, planned.rate_per_s)] if mine.rate_per_s and planned.rate_per_s else []
    if not same or any(abs(a - b) > NEAR * b for a, b in pairs if a and b):
        return named, (f"other-load: {mine.in_words()} is not {name!r} of the plan ({planned.in_words()}), so it is "
                       "shown but decides nothing there")  # fmt: skip
    differ = "" if mine.in_words() == planned.in_words() else f"{mine.in_words()} stands for {planned.in_words()}"
    left = [f.replace("_", " ") for f in load.unstated if getattr(planned, f)]
    said = "; ".join(x for x in (differ, f"{', '.join(left)} not stated by the file" if left else "") if x)
    point = planned.model_copy(update={"requests": mine.requests, "warmup_requests": 0})
    return load._replace(point=point), f"stands-for: {name}: {said}" if said else ""


def _numbered(loads: Sequence[Load]) -> Iterator[tuple[Load, int]]:
    """Loads with a repeat number: the same load again is a repeat, another load of the same name gets a new name."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for load in loads:
        name, base, i = load.point.name, load.point.name, 2
        while names.setdefault(name, load.point.load_hash()) != load.point.load_hash():
            name, i = f"{base[:55]}-{i}", i + 1
        counts[name] = counts.get(name, 0) + 1
        yield load._replace(point=load.point.model_copy(update={"name": name})), counts[name]


def _must_be_possible(load: Load, name: str) -> None:
    """Raise InputError for a figure below 0, and for a request whose times run backwards."""
    below = next((f for f in load.figures if f.value < 0), None)
    if below:
        raise InputError(f"{below.theirs} is {below.value:g}, which cannot be.", where=name, fix=AS_WRITTEN)
    for r in load.records:
        times = [t for t in (r.scheduled_s, r.dispatched_s, *r.chunk_s) if t is not None]
        if any(b < a - SLACK_S for a, b in pairwise(times)):
            raise InputError(f"the times of request {r.request + 1} run backwards.", where=name, fix=AS_WRITTEN)


def _repeat(folder: Path, load: Load, number: int, name: str) -> Repeat:
    file = f"{load.point.name}-{number}.records.parquet"
    try:
        write_records(folder / file, list(load.records))
        read_records(folder / file)  # refuses what no client can have seen
    except UnicodeEncodeError:
        raise InputError(HALF, where=name, fix=AS_WRITTEN) from None
    except (ValueError, TypeError, OverflowError):  # what Arrow raises for a value of another kind or size
        raise InputError("holds a count that no request can have.", where=name, fix=AS_WRITTEN) from None
    except BundleError as e:
        raise InputError(e.what, where=name, fix=AS_WRITTEN) from None
    count = {o: sum(r.outcome == o for r in load.records) for o in ("ok", "failed", "undetermined")}
    return Repeat(load_point=load.point.name, repeat=number, t0_unix_s=load.at.timestamp() - load.duration_s,
                  duration_s=load.duration_s, scheduled=len(load.records), records=file, **count)  # fmt: skip


def _contract(foreign: Foreign, choices: Choices, name: str) -> Contract:
    """What the file says about the server, and what the person states instead or beside it."""
    parts: dict[str, dict[str, str]] = {"shared": {}, "candidate": {}, "observed": {}}
    for field, value in {**foreign.contract, **choices.contract}.items():
        if field not in FIELD:
            raise UnknownName.from_known("contract field", field, FIELD, where=name)
        parts[FIELD[field].part][field] = value
    declared = choices.plan.declared_differences if choices.plan else ()
    return Contract(**parts, declared_differences=declared)
