"""Our client against vLLM's own on the same server: the same requests, both results, and whether they agree.

Both send the very same prompts with the same fields, all slots at once and nothing after the last request, as vLLM's
client does; ours is then counted under its definitions (vllm/benchmarks/serve.py and lib/endpoint_request_func.py of
vLLM 0.32): TTFT from dispatch to the first chunk, TPOT = (latency - TTFT) / (output tokens - 1), latency to the last
chunk, output tokens over the whole duration, means over the requests that did not fail.

Passes alternate, ours first and last, and each of theirs is held against the two of ours around it, so that a machine
that slowly changes does not count. How far two neighbours of ours differ (A/A) is what a difference is held against.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from bench.asking import LOAD
from bench.commands import BAD_RESULT, OK, read_plan
from bench.consent import check_allowed
from bench.crosscheck_report import (
    METRICS,
    Report,
    as_json,
    compare,
    print_report,
    under_our_definitions,
    under_their_definitions,
)
from bench.dialects import Dialect, dialect
from bench.engines import Server
from bench.preflight import Preflight, preflight
from bench.prompts import PromptMaker
from bench.repeat import Load
from bench.surroundings import Watch
from bench.target import Target
from bench.telemetry import Telemetry
from bench.transport import Pool
from bench.vllm_client import Client, run_client
from bench.warmup import warm_up
from planner.errors import InputError, ServerError, UnknownName
from planner.loads import LoadPoint
from planner.poc import Plan, PlanCandidate


class _Ours(NamedTuple):
    figures: dict[str, float]
    by_our_definition: dict[str, float]
    prompt_tokens: float
    waited_for_core: float | None
    other_load: float | None


async def crosscheck(
    plan: Plan, candidate: PlanCandidate, point: LoadPoint, client: Client, rounds: int, folder: Path
) -> Report:
    """Start or attach to the candidate's server and let both clients measure it in turn; files go to `folder`.

    Raises ServerError when the server or a request fails, InputError when their client cannot be run.
    """
    spoken, launch = dialect(candidate.engine, candidate.facts), candidate.launch
    server = Server(launch, spoken, folder / "server.log" if launch.command else None)
    try:
        await (server.start() if launch.command else server.attach())
        return await _Check(plan, candidate, point, client, folder, server, spoken).run(rounds)
    finally:
        await server.stop()


class _Check:
    """Passes of both clients over one load point of a server that answers."""

    def __init__(
        self, plan: Plan, candidate: PlanCandidate, point: LoadPoint, client: Client, folder: Path, server: Server,
        spoken: Dialect,
    ) -> None:  # fmt: skip
        self._plan, self._candidate, self._point, self._client = plan, candidate, point, client
        self._folder, self._server, self._dialect = folder, server, spoken
        self._servers: tuple[list[float], list[float]] = ([], [])

    async def run(self, rounds: int) -> Report:
        """Ours, then theirs and ours in turn; each warms up first: while their client loads, the server idles."""
        pool = Pool(self._server.origin)
        try:
            checked = await preflight(self._target(pool), self._point.input_tokens)
        finally:
            pool.close()
        ours, theirs = [await self._ours(checked, 0)], []
        for i in range(1, rounds + 1):
            before = await self._counters()
            theirs.append(await self._theirs(checked, i))
            self._servers[1].extend(_servers_ttft_ms(before, await self._counters()))
            ours.append(await self._ours(checked, i))
        own = {m: median(p.by_our_definition[m] for p in ours) for m in METRICS}
        their_figures = [{m: float(found[name]) for m, (name, _, _) in METRICS.items()} for found in theirs]
        their_prompts = median(found["total_input_tokens"] / found["completed"] for found in theirs)
        return Report(
            self._candidate.id, self._point, checked.version, str(theirs[0].get("vllm_version", "not stated")),
            (median(p.prompt_tokens for p in ours), their_prompts),
            tuple(compare([p.figures for p in ours], their_figures, own)),
            (tuple(self._servers[0]), tuple(self._servers[1])),
            max((p.waited_for_core for p in ours if p.waited_for_core is not None), default=None),
            max((p.other_load for p in ours if p.other_load is not None), default=None),
        )  # fmt: skip

    async def _counters(self) -> dict[str, float]:
        """The server's counters now; nothing where it has none."""
        pool = Pool(self._server.origin)
        try:
            return await Telemetry(pool, self._dialect).counters()
        finally:
            pool.close()

    def _target(self, pool: Pool) -> Target:
        return Target(pool, self._dialect, self._server, self._candidate.model_name, dict(self._plan.sampling),
                      self._plan.stop.request_timeout_s)  # fmt: skip

    def _prompts(self, checked: Preflight, salt: str) -> PromptMaker:
        spelled = not self._dialect.cache_salt
        return PromptMaker(checked.vocabulary, seed=self._plan.seed, salt=salt, spell_salt=spelled,
                           shared_prefix=self._point.shared_prefix)  # fmt: skip

    async def _ours(self, checked: Preflight, number: int) -> _Ours:
        _say(f"ours, pass {number + 1}")
        salt = secrets.token_hex(8)
        pool = Pool(self._server.origin)
        try:
            other = secrets.token_hex(8)
            await warm_up(self._target(pool), self._point, self._prompts(checked, other), other)
            before, watch = await self._counters(), Watch(self._target(pool), {})
            result = await Load(
                self._target(pool), self._point, self._prompts(checked, salt), salt=salt, seed=self._plan.seed,
                repeat=number, stop=self._plan.stop, e2e_s=0.0, on_done=lambda: None, tail=False,
            ).run(lambda t0: None)  # fmt: skip
            around = await watch.look()
            self._servers[0].extend(_servers_ttft_ms(before, await self._counters()))
        finally:
            pool.close()
        records = [r for r in result.records if r.cohort == LOAD]
        figures = under_their_definitions(records)
        prompt_tokens = fmean(r.prompt_tokens or 0 for r in records)
        own = under_our_definitions(records, self._point)
        return _Ours(figures, own, prompt_tokens, result.cpu_wait_share, around.other_load_share)

    async def _theirs(self, checked: Preflight, number: int) -> dict[str, Any]:
        """One run of vLLM's client; returns its result file."""
        _say(f"vLLM's client, pass {number}")
        salt = secrets.token_hex(8)
        maker = self._prompts(checked, salt)
        texts = [maker.make(LOAD, i, self._point.input_tokens).text for i in range(self._point.requests)]
        body = self._dialect.chat_body(self._candidate.model_name, "", self._point.output_tokens,
                                       dict(self._plan.sampling), salt=salt)  # fmt: skip
        found = await run_client(self._client, self._server.origin, self._point, texts, body,
                                 self._folder / f"vllm-{number}.json")  # fmt: skip
        if found["completed"] != self._point.requests:
            missing = self._point.requests - found["completed"]
            raise ServerError(f"{missing} of {self._point.requests} requests of vLLM's client failed.")
        return found


def _servers_ttft_ms(before: dict[str, float], after: dict[str, float]) -> list[float]:
    """The server's own mean TTFT over a pass, or nothing where it does not tell."""
    requests = after.get("ttft_count", 0.0) - before.get("ttft_count", 0.0)
    return [1000 * (after["ttft_sum_s"] - before["ttft_sum_s"]) / requests] if requests else []


def run(options: argparse.Namespace) -> int:
    """Print what both clients said; 1 when they do not agree."""
    plan = read_plan(options.plan)
    candidate = _candidate(plan, options.candidate)
    point = _closed_point(plan, options.point)
    check_allowed(candidate.launch, allow=options.allow_command, where=f"candidate {candidate.id}")
    python, tokenizer = options.client_python.absolute(), options.tokenizer.absolute()  # a venv's is not resolved
    client = Client(python, tokenizer, prioritised=not options.normal_priority)
    for needed in (python, tokenizer):
        if not needed.exists():
            raise InputError("is not there.", where=str(needed))
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.out or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(crosscheck(plan, candidate, point, client, options.rounds, folder))
    if options.json:
        print(json.dumps(as_json(report)))
    else:
        print_report(report)
    return OK if report.agrees else BAD_RESULT


def _candidate(plan: Plan, name: str) -> PlanCandidate:
    found = next((c for c in plan.candidates if c.id == name or not name), None)
    if found is None:
        raise UnknownName.from_known("candidate", name, [c.id for c in plan.candidates])
    return found


def _closed_point(plan: Plan, name: str) -> LoadPoint:
    closed = [p for p in plan.load_points if p.shape == "closed" and not p.file and p.json_schema is None]
    if not closed:
        raise InputError("the plan has no plain closed loop.", where="crosscheck", fix="Add a point with in_flight.")
    if not name:
        return max(closed, key=lambda p: p.in_flight or 0)
    point = plan.point(name)
    if point not in closed:
        raise InputError("is no plain closed loop; the clients are held against each other on one.", where=name)
    return point


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
