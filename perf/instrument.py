"""How far off is the instrument, and what does it cost? Against a known truth, beside vLLM's own client.

    python perf/instrument.py            every row, three repeats: about four minutes on two cores that do nothing else
    python perf/instrument.py --quick    one repeat and fewer streams: about a minute
    python perf/instrument.py --json     the same as JSON, with `rows`, `dispatch`, `limits` and `machine`

A burst server pinned to one core stamps every write; the client runs on another. The error of a token is the arrival
that the client reports minus that write, and every token counts, also coalesced and late ones. A repeat is void when
the server offered less than 98 % of the asked rate. vLLM's request function needs .venv-vllm (make test-vllm);
AIPerf is measured too when --aiperf names the command in an environment of its own.
Exit code: 0 when every limit was reached, 1 when one was missed, 2 when nothing could be judged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.machine import client_scheduling, cpu_model  # noqa: E402
from planner.statistics import percentile  # noqa: E402

VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TOKENIZER = ROOT / ".venv-vllm" / "tiny-llama-4x256"
OURS, USER_SPACE, VLLM, AIPERF = "flipline", "flipline, user-space stamps", "vllm bench", "aiperf"
CHUNKS, EVERY_MS = 150, 20.0
MEMORY_STREAMS, MEMORY_CHUNKS = 512, 500
LEAST_OFFERED = 0.98
PROMPT_BYTES = 4096
IDLE = 0.10  # other processes may take this share of the machine before it no longer counts as idle


class Limit(NamedTuple):
    """What must be reached: `value` picks the figure from the report; None when it was not measured."""

    name: str
    at_most: float
    value: Callable[[dict[str, Any]], float | None]


def _worst(report: dict[str, Any], field: str, client: str = OURS) -> float | None:
    found = [r[field] for r in report["rows"] if r["client"] == client and r["streams"] <= 512 and r[field] is not None]
    return max(found, default=None)


def _cpu_ratio(report: dict[str, Any]) -> float | None:
    cpu = {(r["client"], r["streams"]): r["cpu_ms_per_1000_chunks"] for r in report["rows"]}
    pairs = [(cpu[OURS, n], theirs) for (client, n), theirs in cpu.items() if client == VLLM and n >= 256]
    return max((ours / theirs for ours, theirs in pairs if ours and theirs), default=None)


def _of(table: str, name: str, field: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda report: next((r[field] for r in report[table] if r["load"] == name), None)


AT_ONCE, POISSON = "256 at once", "200 req/s Poisson"
DISPATCHED: tuple[tuple[str, int, tuple[str, ...]], ...] = ((AT_ONCE, 256, ()), (POISSON, 600, ("--rate", "200")))
LIMITS = (
    Limit("arrival error p99, worst repeat, up to 512 streams (ms)", 0.5,
          lambda report: _worst(report, "arrival_error_p99_ms_worst")),
    Limit("dispatch lag p99, 256 at once (ms)", 10.0, _of("dispatch", AT_ONCE, "lag_p99_ms")),
    Limit("dispatch lag p99, 200 req/s Poisson (ms)", 5.0, _of("dispatch", POISSON, "lag_p99_ms")),
    Limit("CPU per chunk over vLLM's client, 256 streams and more", 0.7, _cpu_ratio),
    Limit(f"memory, {MEMORY_STREAMS} streams x {MEMORY_CHUNKS} tokens (MB)", 300.0,
          lambda report: report["memory_mb"]),
)  # fmt: skip


class Bench(NamedTuple):
    """The cores of server and client, and AIPerf's command where there is one."""

    server: int
    client: int
    aiperf: str = ""


def two_cores(aiperf: str = "") -> Bench:
    """Two cores of this process; ends the program when there are fewer."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        sys.exit("The server and the client need a core each, and this process may use only one.")
    return Bench(allowed[0], allowed[1], aiperf)


def command_of(client: str, aiperf: str) -> list[str]:
    """The client's command without its load."""
    if client == AIPERF:
        return [sys.executable, str(ROOT / "perf" / "aiperf_client.py"), "--aiperf", aiperf,
                "--tokenizer", str(TOKENIZER)]  # fmt: skip
    if client == VLLM:
        return [str(VLLM_PYTHON), str(ROOT / "perf" / "vllm_client.py")]
    more = ["--user-space"] if client == USER_SPACE else []
    return [sys.executable, str(ROOT / "perf" / "our_client.py"), *more]


@contextmanager
def burst_server(bench: Bench, streams: int, chunks: int) -> Iterator[int]:
    """A burst server on its core; yields the port."""
    command = [sys.executable, str(ROOT / "perf" / "burst_server.py"), "--streams", str(streams),
               "--chunks", str(chunks), "--every-ms", str(EVERY_MS)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_pin(bench.server)) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def _pin(core: int) -> Callable[[], None]:
    return lambda: os.sched_setaffinity(0, {core})


def run_client(bench: Bench, client: str, port: int, streams: int, chunks: int, *more: str) -> dict[str, Any]:
    """Run a client on its core; ends the program with its words when it fails."""
    done = subprocess.run(
        [*command_of(client, bench.aiperf), "--port", str(port), "--streams", str(streams),
         "--chunks", str(chunks), *more],
        capture_output=True, text=True, check=False, cwd=ROOT, preexec_fn=_pin(bench.client),
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{client} on {streams} streams: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def truth_of(port: int) -> dict[str, Any]:
    """What the server wrote and received."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def one_repeat(bench: Bench, client: str, streams: int, chunks: int) -> dict[str, Any]:
    """One burst of `chunks` tokens on every stream."""
    with burst_server(bench, streams, chunks) as port:
        seen = run_client(bench, client, port, streams, chunks)
        truth = truth_of(port)
    errors = [
        1000 * (arrived - written / 1e9)
        for stream, times in truth["written"].items()
        for arrived, written in zip(seen["arrived"][stream], times, strict=True)
    ]
    bound = seen.get("bound")
    return {
        "p50": percentile(errors, 50),
        "p99": percentile(errors, 99),
        "coalesced_share": sum(map(len, bound.values())) / len(errors) if bound is not None else None,
        "cpu_ms_per_1000_chunks": 1e6 * seen["cpu_s"] / len(errors) if seen["cpu_s"] is not None else None,
        "rss_mb": seen["rss_mb"],
        "offered_share": truth["offered_share"],
    }


def row_of(client: str, streams: int, repeats: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the repeats that are not void; None where all are."""
    good = [r for r in repeats if r["offered_share"] >= LEAST_OFFERED]

    def middle(field: str) -> float | None:
        known = [r[field] for r in good if r[field] is not None]
        return median(known) if known else None

    return {
        "client": client, "streams": streams,
        "arrival_error_p50_ms": middle("p50"), "arrival_error_p99_ms": middle("p99"),
        "arrival_error_p99_ms_worst": max((r["p99"] for r in good), default=None),
        "coalesced_share": middle("coalesced_share"), "cpu_ms_per_1000_chunks": middle("cpu_ms_per_1000_chunks"),
        "rss_mb": middle("rss_mb"), "offered_share": median(r["offered_share"] for r in repeats),
        "repeats": len(repeats), "void": len(repeats) - len(good),
    }  # fmt: skip


def dispatch_row(bench: Bench, load: str, requests: int, *more: str) -> dict[str, Any]:
    """How late requests of PROMPT_BYTES reach the server, by the kernel's stamp there."""
    with burst_server(bench, 0, 1) as port:
        seen = run_client(bench, OURS, port, requests, 1, "--prompt-bytes", str(PROMPT_BYTES), *more)
        received = truth_of(port)["received"]
    lags = [1000 * (received[stream] / 1e9 - due) for stream, due in seen["due"].items()]
    return {"client": OURS, "load": load, "requests": len(lags), "lag_p50_ms": percentile(lags, 50),
            "lag_p99_ms": percentile(lags, 99), "lag_max_ms": max(lags)}  # fmt: skip


def busy_share() -> float:
    """Share of the machine that other processes take, watched for half a second (Linux)."""

    def ticks() -> list[int]:
        return [int(v) for v in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]

    before = ticks()
    time.sleep(0.5)
    spent = [b - a for a, b in zip(before, ticks(), strict=True)]
    return 1 - (spent[3] + spent[4]) / max(1, sum(spent))


def measure(
    streams: Iterable[int], repeats: int, *, quick: bool, say: Callable[[str], None], aiperf: str = ""
) -> dict[str, Any]:
    """The whole report."""
    bench = two_cores(aiperf)
    there = {OURS: True, VLLM: VLLM_PYTHON.exists(), AIPERF: bool(aiperf), USER_SPACE: not quick}
    clients = [client for client, is_there in there.items() if is_there]
    machine = {"cpu": cpu_model(), "cores": os.cpu_count(), "kernel": os.uname().release,
               "python": sys.version.split()[0], "other_load_share": busy_share(),
               "client_scheduling": client_scheduling(), "vllm": VLLM in clients}  # fmt: skip
    made: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for client in clients:
        one_repeat(bench, client, 8, 10)  # files and byte code into memory
    for repeat in range(repeats):
        for n in streams:
            for client in clients if repeat % 2 == 0 else clients[::-1]:
                say(f"repeat {repeat + 1} of {repeats}: {n} streams, {client}")
                made.setdefault((client, n), []).append(one_repeat(bench, client, n, CHUNKS))
    say("dispatch")
    dispatch = [dispatch_row(bench, load, requests, *more) for load, requests, more in DISPATCHED]
    memory = None
    if not quick:
        say(f"memory: {MEMORY_STREAMS} streams x {MEMORY_CHUNKS} tokens")
        memory = one_repeat(bench, OURS, MEMORY_STREAMS, MEMORY_CHUNKS)["rss_mb"]
    report: dict[str, Any] = {
        "rows": [row_of(client, n, found) for (client, n), found in sorted(made.items(), key=lambda kv: kv[0][1])],
        "dispatch": dispatch, "memory_mb": memory, "machine": machine,
    }  # fmt: skip
    report["limits"] = [
        {"limit": limit.name, "at_most": limit.at_most, "value": value,
         "reached": None if value is None else value <= limit.at_most}
        for limit in LIMITS for value in [limit.value(report)]
    ]  # fmt: skip
    return report


def as_text(report: dict[str, Any]) -> str:
    """The report as Markdown tables."""

    def cell(value: Any, form: str = "{:.2f}") -> str:
        return "–" if value is None else form.format(value)

    m = report["machine"]
    lines = [
        f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, Python {m['python']}; client: {m['client_scheduling']}; "
        f"other processes took {m['other_load_share']:.0%} of the machine before the run.",
        "",
        "| client | streams | error p50 ms | error p99 ms | worst p99 ms | coalesced | CPU ms per 1,000 chunks "
        "| RSS MB | offered | void |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['client']} | {r['streams']} | {cell(r['arrival_error_p50_ms'], '{:.3f}')} "
        f"| {cell(r['arrival_error_p99_ms'], '{:.3f}')} | {cell(r['arrival_error_p99_ms_worst'], '{:.3f}')} "
        f"| {cell(r['coalesced_share'], '{:.2%}')} | {cell(r['cpu_ms_per_1000_chunks'], '{:.1f}')} "
        f"| {cell(r['rss_mb'], '{:.0f}')} | {cell(r['offered_share'], '{:.1%}')} | {r['void']} of {r['repeats']} |"
        for r in report["rows"]
    ]
    lines += ["", "| load | requests | dispatch lag p50 ms | p99 ms | max ms |", "|---|---|---|---|---|"]
    lines += [
        f"| {r['load']} | {r['requests']} | {r['lag_p50_ms']:.2f} | {r['lag_p99_ms']:.2f} | {r['lag_max_ms']:.2f} |"
        for r in report["dispatch"]
    ]
    words = {True: "reached", False: "missed", None: "not measured"}
    lines += ["", "| must be reached | at most | measured | |", "|---|---|---|---|"]
    lines += [
        f"| {x['limit']} | {x['at_most']:g} | {cell(x['value'])} | {words[x['reached']]} |" for x in report["limits"]
    ]
    if m["other_load_share"] > IDLE:
        lines += ["", "The machine was not idle: these figures say little about the instrument."]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repeat, no memory run, no user-space row")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--streams", default="64,256,512", help="numbers of streams (default: %(default)s)")
    parser.add_argument("--aiperf", default="", metavar="COMMAND", help="measure AIPerf too: ENV/bin/aiperf")
    args = parser.parse_args()
    report = measure(
        [int(n) for n in args.streams.split(",")], 1 if args.quick else 3, quick=args.quick,
        say=lambda text: print(text, file=sys.stderr, flush=True), aiperf=args.aiperf,
    )  # fmt: skip
    print(json.dumps(report, indent=1) if args.json else as_text(report))
    reached = [x["reached"] for x in report["limits"] if x["reached"] is not None]
    return 2 if not reached else int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
