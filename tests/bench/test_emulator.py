"""The emulated server: known times, real batches, any engine's names, and every fault as a client sees it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bench.__main__ import main
from bench.dialects import dialect
from bench.emulator import Emulator, Settings, count_tokens
from bench.emulator.command import add_arguments, settings_of
from bench.emulator.fixed import times_ms
from bench.emulator.metrics import capacity_line
from bench.emulator.settings import FAULTS
from bench.exchange import Exchange, Origin
from bench.sse import Answer, read_answer
from bench.transport import Pool, fetch_json, request_bytes
from bundle.folder import open_bundle
from planner.capacity import size
from planner.catalog import load_catalog
from planner.conditions import Kind
from planner.errors import InputError, UnknownName
from planner.requirements import Hardware, ModelPlan, Requirements
from planner.step_time import StepTime
from tests.bench.helpers import point, run_attached, with_emulator
from tests.bench.sockets import run_out

T = TypeVar("T")
QUICK = {"ttft_ms": 5.0, "itl_ms": 1.0}
GET_MODELS = b"GET /v1/models HTTP/1.1\r\nHost: emulator\r\n\r\n"
STEP_S = 0.004
MEASURABLE = ("vllm", "sglang", "tensorrt_llm", "tgi", "llama-server")


def batch(policy: str = "continuous", **more: Any) -> Settings:
    """A server that runs steps of 4 ms."""
    return Settings(timing=policy, step=StepTime(base_s=STEP_S), **more)


def talk(settings: Settings, use: Callable[[Pool], Awaitable[T]]) -> T:
    """Use a pool of connections to an emulator in the same loop."""

    async def go(emulator: Emulator) -> T:
        pool = Pool(Origin("http", "127.0.0.1", emulator.port))
        try:
            return await use(pool)
        finally:
            pool.close()

    return with_emulator(settings, go)


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"messages": 5}', b'{"messages": [5]}', b'{"messages": [{"content": [5]}]}',
     b'{"messages": [], "max_tokens": "many"}', b'{"messages": [], "max_tokens": 1e999}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_chat_request_is_refused_as_engines_do_and_the_connection_is_kept(body: bytes) -> None:
    async def use(pool: Pool) -> list[Exchange]:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: emulator\r\nContent-Length: %d\r\n\r\n" % len(body)
        return [await pool.exchange(head + body, timeout_s=5) for _ in range(2)]

    told = talk(Settings(**QUICK), use)
    assert [(e.status, e.error_kind, e.reconnected) for e in told] == [(400, "", False)] * 2


def test_what_is_no_http_ends_its_connection_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def use(pool: Pool) -> list[Exchange]:
        return [await pool.exchange(told, timeout_s=60) for told in (b"nonsense\r\n\r\n", GET_MODELS)]

    assert [(e.status, e.error_kind) for e in talk(Settings(**QUICK), use)] == [(None, "closed"), (200, "")]
    assert not caplog.records  # asyncio tells there what a connection's task did not catch


async def chat(pool: Pool, *, words: int = 6, tokens: int = 6, timeout_s: float = 60.0, **more: Any) -> Exchange:
    body: dict[str, Any] = {
        "model": "emulated", "messages": [{"role": "user", "content": "w " * words}], "max_tokens": tokens,
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    request = request_bytes(pool.origin, "POST", "/v1/chat/completions", body | more)
    return await pool.exchange(request, timeout_s=timeout_s)


def answered(settings: Settings, **asked: Any) -> Answer:
    return read_answer(talk(settings, lambda pool: chat(pool, **asked)).reads)


async def page(pool: Pool, engine: str = "vllm") -> str:
    path = dialect(engine).metrics_path or "/metrics"
    return (await pool.exchange(request_bytes(pool.origin, "GET", path), timeout_s=60)).body.decode()


# Known times


def test_no_token_is_written_before_its_time() -> None:
    async def use(pool: Pool) -> dict[str, Any]:
        await chat(pool, tokens=5)
        found = await fetch_json(pool, "GET", "/truth")
        assert found
        return dict(found["requests"][0])

    truth = talk(Settings(ttft_ms=40, itl_ms=10, truth=True), use)
    since = [(t - truth["received_ns"]) / 1e6 for t in truth["written_ns"]]
    # Lateness is the machine's, and with absolute deadlines it does not add up: only earliness would be a fault.
    assert all(ms >= due for ms, due in zip(since, (40, 50, 60, 70, 80), strict=True))


def test_the_spread_is_drawn_around_what_is_stated_and_repeats_with_the_seed() -> None:
    def drawn(seed: int, request: int) -> list[float]:
        return list(islice(times_ms(Settings(ttft_ms=100, itl_ms=20, spread=0.5, seed=seed), request), 2001))

    ttft, *gaps = drawn(1, 1)
    assert 50 <= ttft <= 150
    assert all(10 <= g <= 30 for g in gaps)
    # Evenly from 20 +- 10: mean 20, standard deviation 20 / sqrt(12) = 5.8, of the mean of 2,000 thus 0.13.
    assert sum(gaps) / len(gaps) == pytest.approx(20, abs=0.5)
    assert drawn(1, 1) == [ttft, *gaps]
    assert drawn(1, 2) != drawn(1, 1) != drawn(2, 1)


def test_the_truth_about_each_write_is_told_once() -> None:
    async def use(pool: Pool) -> tuple[Exchange, dict[str, Any] | None, dict[str, Any] | None]:
        exchange = await chat(pool, words=3, tokens=7)
        return exchange, await fetch_json(pool, "GET", "/truth"), await fetch_json(pool, "GET", "/truth")

    exchange, told, again = talk(Settings(**QUICK, truth=True, tokens_per_chunk=3), use)
    assert told
    (truth,) = told["requests"]
    arrived = [c.t for c in read_answer(exchange.reads).chunks]
    assert truth["tokens"] == [3, 3, 1]
    assert truth["prompt_tokens"] == count_tokens("w w w") == 7
    assert truth["received_ns"] / 1e9 > exchange.dispatched
    # A chunk cannot arrive before it was written; 1 ms for bringing the kernel's clock to the monotonic one.
    assert all(a > w / 1e9 - 0.001 for a, w in zip(arrived, truth["written_ns"], strict=True))
    assert again == {"requests": []}


def test_without_truth_there_is_none() -> None:
    assert talk(Settings(**QUICK), lambda pool: fetch_json(pool, "GET", "/truth")) is None


# Batch policies


async def burst(pool: Pool, n: int, **asked: Any) -> list[Exchange]:
    await pool.open(n)
    return list(await asyncio.gather(*(chat(pool, **asked) for _ in range(n))))


def test_cache_that_runs_out_preempts_for_real_and_everybody_still_gets_every_token() -> None:
    # Four requests of 10 + 40 - 1 = 49 tokens are 13 blocks of 4 each; the server has 30.
    async def use(pool: Pool) -> tuple[list[Exchange], list[dict[str, float]]]:
        seen: list[dict[str, float]] = []

        async def watch() -> None:
            while True:
                seen.append(dialect("vllm").read_metrics(await page(pool)))
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        exchanges = await burst(pool, 4, tokens=40)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return exchanges, [*seen, dialect("vllm").read_metrics(await page(pool))]

    exchanges, seen = talk(batch(slots=4, kv_tokens=120, block_size=4), use)
    answers = [read_answer(e.reads) for e in exchanges]
    assert [len(a.chunks) for a in answers] == [40] * 4
    last = seen[-1]
    assert last["preemptions"] >= 1
    assert (last["generation_tokens"], last["prompt_tokens"], last["ttft_count"]) == (160, 40, 4)
    assert (last["running"], last["waiting"], last["kv_use"]) == (0, 0, 0)
    assert 0.5 < max(s["kv_use"] for s in seen) <= 1
    assert max(s["waiting"] for s in seen) >= 1


@pytest.mark.alone  # what runs beside it takes the core between two writes
def test_everybody_in_a_step_gets_the_token_in_the_same_tick() -> None:
    slow = Settings(timing="continuous", step=StepTime(base_s=0.02), slots=8)
    exchanges = talk(slow, lambda pool: burst(pool, 4, tokens=12))
    columns = zip(*([c.t for c in read_answer(e.reads).chunks] for e in exchanges), strict=True)
    within = sorted(max(c) - min(c) for c in columns)
    assert within[len(within) // 2] < 0.01


@pytest.mark.parametrize(("policy", "waits"), [("static", True), ("slots", False), ("continuous", False)])
def test_a_static_batch_lets_nobody_in_before_its_slowest_has_ended(policy: str, waits: bool) -> None:
    async def use(pool: Pool) -> list[Exchange]:
        await pool.open(3)
        # side by side in the two places; what nobody waits for goes on until the late one has ended, however late
        short, slowest = (asyncio.create_task(chat(pool, tokens=n)) for n in (1, 30 if waits else 5000))
        await short
        late = await chat(pool, tokens=2)
        if not waits:
            pool.cancel_all()
        return [late, await slowest]

    late, slowest = talk(batch(policy, slots=2), use)
    assert (late.error_kind, slowest.error_kind) == ("", "" if waits else "cancelled")
    if waits:
        assert read_answer(late.reads).chunks[0].t > read_answer(slowest.reads).chunks[-1].t


def test_what_could_never_be_served_is_refused() -> None:
    exchange = talk(batch("slots", slots=4, kv_tokens=64), lambda pool: chat(pool, tokens=20))
    assert exchange.status == 400
    assert b"10 + 20 tokens do not fit the 16 that one request may hold" in exchange.body
    exchange = talk(Settings(**QUICK, max_model_len=20), lambda pool: chat(pool, tokens=20))
    assert exchange.status == 400
    assert b"maximum context length is 20 tokens, and 30 were asked for" in exchange.body


def test_a_client_that_goes_away_leaves_its_place() -> None:
    async def use(pool: Pool) -> Exchange:
        lost = asyncio.create_task(chat(pool, tokens=5000))
        await asyncio.sleep(5 * STEP_S)
        pool.cancel_all()
        await lost
        return await chat(pool, tokens=2)

    assert len(read_answer(talk(batch(slots=1), use).reads).chunks) == 2


def test_a_bundle_of_a_batch_policy_is_simulated_and_counts_its_preemptions(tmp_path: Path) -> None:
    # 40 + 24 - 1 = 63 tokens are 16 blocks of 4 each; four at once in 40 blocks do not go together.
    load = point("tight", in_flight=4, requests=8, output_tokens=24)
    result = run_attached(batch(slots=4, kv_tokens=160, block_size=4), tmp_path, points=[load])
    manifest = open_bundle(result.bundles[0])
    (repeat,) = manifest.repeats
    assert manifest.kind == Kind.SIMULATED
    assert (repeat.ok, repeat.failed) == (8, 0)
    assert repeat.counters_after["preemptions"] > repeat.counters_before["preemptions"]


# Engines


@pytest.mark.parametrize("engine", MEASURABLE)
def test_bench_reads_the_page_in_every_engines_names(engine: str) -> None:
    async def use(pool: Pool) -> str:
        await burst(pool, 2, tokens=6)
        return await page(pool, engine)

    settings = Settings(**QUICK, engine=engine, slots=4, kv_tokens=4096)
    spoken = dialect(engine)
    text = talk(settings, use)
    found = spoken.read_metrics(text)
    assert (found["running"], found["waiting"]) == (0, 0)
    assert (found["prompt_tokens"], found["generation_tokens"]) == (20, 12)
    assert found.get("prefix_hits", 0) == 0
    assert found.get("kv_use", 0) == 0
    assert found.get("ttft_count", 2) == 2
    assert spoken.facts
    log = capacity_line(spoken.facts.log_patterns["kv_capacity"], settings)
    assert spoken.kv_capacity(log, "") == 4096
    assert spoken.kv_capacity("", text) == (None if engine == "llama-server" else 4096)


def test_an_engine_without_a_page_has_none() -> None:
    assert talk(Settings(**QUICK, engine="ollama"), page) == '{"error": {"message": "Not Found", "code": 404}}'


def test_it_is_an_emulator_whatever_it_calls_its_metrics() -> None:
    for engine in MEASURABLE:
        told = talk(Settings(engine=engine), lambda pool: fetch_json(pool, "GET", "/version"))
        assert told is not None and told["version"] == "emulator/1"
    assert talk(Settings(**QUICK), chat).headers["server"] == "emulator/1"


# The stream


def test_reasoning_comes_first_and_is_not_visible() -> None:
    answer = answered(Settings(**QUICK, reasoning_tokens=2), tokens=6)
    assert [c.visible for c in answer.chunks] == [False, False, True, True, True, True]
    answer = answered(Settings(**QUICK, engine="llama-server", reasoning_tokens=3, tokens_per_chunk=2), tokens=6)
    assert [c.visible for c in answer.chunks] == [False, False, True, True]  # 2 + 1, then 2 + 1


def test_lines_may_end_in_cr_lf() -> None:
    exchange = talk(Settings(**QUICK, crlf=True), chat)
    assert exchange.body.endswith(b"data: [DONE]\r\n\r\n")
    assert len(read_answer(exchange.reads).chunks) == 6


def test_several_tokens_in_a_chunk_are_counted_by_continuous_usage() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = answered(Settings(**QUICK, tokens_per_chunk=4), tokens=10, stream_options=options)
    assert [c.tokens for c in answer.chunks] == [4, 4, 2]
    assert (answer.output_tokens, answer.prompt_tokens) == (10, 10)


def test_some_engines_send_the_role_with_the_first_token() -> None:
    body = talk(Settings(**QUICK, engine="tgi"), chat).body
    assert body.startswith(b'data: {"id":"emulated-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":'
                           b'{"role":"assistant","content":" w0"}')  # fmt: skip


# Faults


@pytest.mark.parametrize("fault", ["429", "503"])
def test_a_refusal_says_when_to_come_back_and_may_pass(fault: str) -> None:
    async def use(pool: Pool) -> list[Exchange]:
        return [await chat(pool) for _ in range(3)]

    good, refused, after = talk(Settings(**QUICK, fault=fault, fault_after=1, fault_times=1), use)
    assert [e.status for e in (good, refused, after)] == [200, int(fault), 200]
    assert refused.headers["retry-after"] == "1"
    assert b"overloaded" in refused.body


@pytest.mark.parametrize(
    ("fault", "kind", "chunks", "error"),
    [
        ("error-object", "", 0, "the engine failed before the first token"),
        ("error-mid-stream", "", 3, "the engine failed in mid-stream"),
        ("close-mid-stream", "closed", 3, ""),
        ("reset", "reset", 3, ""),
    ],
)
def test_a_stream_breaks_off_after_a_third(fault: str, kind: str, chunks: int, error: str) -> None:
    exchange = talk(Settings(**QUICK, fault=fault), lambda pool: chat(pool, tokens=9))
    answer = read_answer(exchange.reads)
    assert (exchange.error_kind, len(answer.chunks), answer.error) == (kind, chunks, error)


def test_a_stream_that_stalls_after_a_third_ends_with_the_time_out() -> None:
    async def use(pool: Pool) -> Exchange:
        def a_third() -> bool:
            return [len(read_answer(e.reads).chunks) for e in pool.in_flight()] == [3]

        return await run_out(asyncio.create_task(chat(pool, tokens=9)), a_third)

    exchange = talk(Settings(**QUICK, fault="stall"), use)
    assert (exchange.error_kind, len(read_answer(exchange.reads).chunks)) == ("timeout", 3)


def test_usage_lies_is_missing_or_shows_the_prompt_cut() -> None:
    def told(fault: str) -> tuple[int | None, int | None]:
        answer = answered(Settings(**QUICK, fault=fault), words=16, tokens=5)
        return answer.prompt_tokens, answer.output_tokens

    assert told("none") == (20, 5)
    assert told("lying-usage") == (20, 6)
    assert told("no-usage") == (None, None)
    assert told("truncate") == (10, 5)


def test_a_connection_closed_while_it_was_idle_is_opened_again() -> None:
    async def use(pool: Pool) -> list[Exchange]:
        return [await chat(pool) for _ in range(2)]

    first, second = talk(Settings(**QUICK, fault="close-idle"), use)
    assert (first.error_kind, second.error_kind) == ("", "")
    assert (first.reconnected, second.reconnected) == (False, True)


@pytest.mark.parametrize("settings", [Settings(**QUICK, fault="restart", fault_after=1),
                                      batch(fault="restart", fault_after=1)])  # fmt: skip
def test_a_restart_loses_connections_and_counters_and_is_over_in_a_moment(settings: Settings) -> None:
    async def use(pool: Pool) -> tuple[list[str], dict[str, float]]:
        kinds = [(await chat(pool)).error_kind for _ in range(3)]
        while (exchange := await chat(pool)).error_kind:
            await asyncio.sleep(0.05)
        return [*kinds, exchange.error_kind], dialect("vllm").read_metrics(await page(pool))

    kinds, counters = talk(settings, use)
    assert kinds[0] == "" and kinds[1] in ("closed", "reset") and kinds[2] == "connect"
    assert counters["generation_tokens"] == 6  # only the request after the restart


def test_every_fault_is_told_in_the_help_and_tried_somewhere() -> None:
    here = Path(__file__)
    text = here.read_text() + here.with_name("test_runner.py").read_text()
    assert [f for f in FAULTS if f'"{f}' not in text] == []


# The command


def options(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_of(parser.parse_args(words))


def test_options_become_settings() -> None:
    asked = options("--policy", "continuous", "--itl-ms", "8", "--per-request-ms", "0.5", "--prefill-tok-s", "2000",
                    "--fault", "429:10:3")  # fmt: skip
    assert asked.step == StepTime(base_s=0.008, per_request_s=0.0005, prefill_s_per_token=0.0005)
    assert [asked.fault_at(n) for n in (10, 11, 13, 14)] == ["none", "429", "429", "none"]
    assert options() == Settings(step=StepTime(base_s=0.02))


def test_a_sizing_gives_step_times_slots_and_cache(tmp_path: Path) -> None:
    plan = ModelPlan(id="B", label="MoE", model="Qwen/Qwen3-30B-A3B", weight_format="safetensors", quantization="fp8",
                     kv_cache_dtype="fp16", favourite=True)  # fmt: skip
    machine = Hardware(gpu="nvidia-gb10-dgx-spark")
    case = Requirements(peak_users_min=20, peak_users_max=50, user_tok_s_promise=20, user_tok_s_target=25, ttft_s=2,
                        input_tokens=3596, output_tokens=500, context_tokens=4096, model_plans=(plan,),
                        hardware=(machine,))  # fmt: skip
    sizing = size(case, plan, machine, load_catalog())
    path = tmp_path / "sizing.json"
    path.write_text(json.dumps([{"plan": plan.id, "problem": "", "sizing": sizing.model_dump(mode="json")}]))
    asked = options("--policy", "continuous", "--plan-sizing", str(path))
    assert (asked.slots, asked.kv_tokens) == (
        sizing.launch.max_num_seqs, sizing.requests_that_fit * sizing.context_tokens)  # fmt: skip
    assert asked.step.inputs is not None and sizing.inputs is not None
    assert asked.step.inputs.bandwidth_gb_s == sizing.inputs.bandwidth_gb_s == 273
    assert options("--policy", "slots", "--plan-sizing", f"{path}:{plan.id}", "--slots", "4").slots == 4
    with pytest.raises(UnknownName, match="unknown model plan 'Z'"):
        options("--policy", "slots", "--plan-sizing", f"{path}:Z")
    with pytest.raises(InputError, match="fixed timing has no steps"):
        options("--plan-sizing", str(path))
    path.write_text('[{"plan": "B", "sizing": null}]')
    with pytest.raises(InputError, match="'B' has no speed"):
        options("--policy", "slots", "--plan-sizing", str(path))
    path.write_text("{}")
    with pytest.raises(InputError, match="is not a sizing"):
        options("--policy", "slots", "--plan-sizing", str(path))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--engine", "vlm"), "Did you mean 'vllm'"),
        (("--spread", "1.5"), "not a share below 1"),
        (("--slots", "0"), "are 1 or more"),
        (("--itl-ms", "-1"), "-1 ms is no time"),
        (("--itl-ms", "nan"), "nan ms is no time"),
        (("--ttft-ms", "inf"), "times and reasoning tokens are 0 or more"),
        (("--policy", "continuous", "--token-budget", "8"), "below max_num_seqs a running request would starve"),
        (("--fault", "die:1:2:3"), "has too many parts"),
        (("--policy", "slots", "--plan-sizing", "no.json"), "cannot be read: No such file"),
    ],
)
def test_wrong_options_are_told(words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulate", "--port", "0", *words]) == 2
    assert error in capsys.readouterr().err
