"""Commands of what came back: bundles, tables, verdicts, results, comparison, report, usage, traffic."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.conditions import Verdict
from planner.request_rate import DEFAULT_UTILISATION
from services.arrivals import bring_in, bring_in_usage
from services.calibrations import calibration
from services.comparison import comparison, pairs
from services.next_runs import next_runs
from services.quality import precision_warnings
from services.results import RateCapacity, rate_capacity, results_of, theory_of, with_ttft_counted
from services.verdicts import case_state, headline, judge_adr, judge_hypotheses
from services.workspace import Workspace
from ui.command import BAD_INPUT, BY, CASE, FAILS, JSON, OK, Command, fired, required
from ui.comparison_terminal import COMPARE_EXAMPLE, comparison_json, print_comparison
from ui.enter_terminal import ENTER_ARGUMENTS, ENTER_EXAMPLE, enter_and_print
from ui.next_terminal import next_json, print_next
from ui.report_terminal import REPORT_ARGUMENTS, REPORT_EXAMPLE, write_report
from ui.results_terminal import RESULTS_ARGUMENTS, RESULTS_EXAMPLE, print_results, results_json
from ui.terminal import Argument, as_json, say, table
from ui.traffic_terminal import TRAFFIC_ARGUMENTS, TRAFFIC_EXAMPLE, read_and_print
from ui.usage_terminal import USAGE_ARGUMENTS, USAGE_EXAMPLE, demand_asked, demand_json, print_demand


def take_in(ws: Workspace, args: argparse.Namespace) -> int:
    """Take in bundles and judge the case again; exit code 1 when one of several is broken."""

    def report(done: int, total: int, name: str) -> None:
        if name:
            say(f"{done + 1} of {total}: {name}")

    arrived = bring_in(ws, args.case, args.path, args.by, report)
    rows = [
        (t.run.id, t.run.candidate, t.run.kind.value, t.run.status, "new" if t.new else "was there",
         "; ".join(t.run.findings) or "none")
        for t in arrived.taken
    ]  # fmt: skip
    table("Runs", ("run", "candidate", "kind", "status", "stored", "findings"), rows)
    for broken in arrived.broken:
        say(f"BROKEN {broken.error}")
    fired(arrived)
    return FAILS if arrived.broken else OK


def enter(ws: Workspace, args: argparse.Namespace) -> int:
    """Figures out of a sheet, as entered by a named person; exit code 2 when a row is refused and not left out."""
    arrived = enter_and_print(ws, args, required(ws, args.case)[0])
    if arrived is None:
        return OK if args.dry_run else BAD_INPUT
    fired(arrived)
    return OK


def verdicts(ws: Workspace, args: argparse.Namespace) -> int:
    """Every hypothesis and every flip condition of the case today."""
    state, _ = required(ws, args.case)
    judged = [(v.hypothesis.id, v.verdict) for v in judge_hypotheses(state)]
    flips = [(a.name, f) for a in state.adrs for f in judge_adr(state, a)]
    warnings, runs = precision_warnings(state), next_runs(ws, state)
    if args.json:
        as_json({
            "users": headline(state)._asdict(),
            "hypotheses": [{"id": id, "sentence": v.sentence, **v.model_dump(mode="json")} for id, v in judged],
            "flip_conditions": [{"adr": adr, "condition": f.condition, "state": f.state.value, "sentence": f.sentence}
                                for adr, f in flips],
            "warnings": list(warnings),
            "measure_next": next_json(runs),
        })  # fmt: skip
    else:
        say(headline(state).sentence)
        rows = [(id, v.state.value, v.kind.value if v.kind else "", _with_expectation(v)) for id, v in judged]
        table("Hypotheses", ("id", "state", "known by", "sentence"), rows)
        table("Flip conditions", ("adr", "condition", "state", "sentence"),
              [(adr, f.condition, f.state.value, f.sentence) for adr, f in flips])  # fmt: skip
        for warning in warnings:
            say(warning)
        print_next(runs)
    failing = any(v.side == "fails" for _, v in judged) or any(f.state == "fired" for _, f in flips)
    return FAILS if failing else OK


def _with_expectation(v: Verdict) -> str:
    """The sentence, and of what nothing decides yet what is predicted."""
    return v.sentence if v.decided or not v.expectation else f"{v.sentence} Expected: {v.expectation}."


def compare(ws: Workspace, args: argparse.Namespace) -> int:
    """Every two candidates of a case figure by figure; 1 when their contracts refuse a comparison."""
    state, _ = required(ws, args.case)
    found = [comparison(state, *two, all_figures=args.all) for two in pairs(state)]
    if args.json:
        as_json([comparison_json(c) for c in found])
    else:
        for c in found:
            print_comparison(c)
        if not found:
            say("Fewer than two candidates were measured, so there is nothing to compare.")
    return FAILS if any(c.parity is None or c.parity.state == "refused" for c in found) else OK


def results(ws: Workspace, args: argparse.Namespace) -> int:
    """Knee, batch limit, capacity, units and cost from what was seen, and measured over theory."""
    state, _ = required(ws, args.case)
    share = DEFAULT_UTILISATION if args.utilisation is None else args.utilisation
    asked: tuple[RateCapacity, ...] = ()
    if args.ttft is not None:
        asked = rate_capacity(with_ttft_counted(ws, state, args.ttft), args.ttft, share)
    shown = results_of(ws, state, share), asked, theory_of(calibration(ws), state), precision_warnings(state)
    if args.json:
        as_json(results_json(*shown))
    else:
        print_results(*shown)
    return OK


def report(ws: Workspace, args: argparse.Namespace) -> int:
    """Everything about a PoC as one file, for people without the app."""
    write_report(ws, case_state(ws, args.case), args.out)
    return OK


def usage(ws: Workspace, args: argparse.Namespace) -> int:
    """Bring in what users really did and judge the case again."""
    found = demand_asked(ws, args)
    arrived = bring_in_usage(ws, args.case, found.counted(), by=args.by, source=found.source)
    if args.json:
        as_json(demand_json(found, arrived.fired))
        return OK
    print_demand(found)
    fired(arrived)
    return OK


def traffic(ws: Workspace, args: argparse.Namespace) -> int:
    """What a request log says, against a case's requirements where one is named; the trace to replay on request."""
    read_and_print(args, required(ws, args.case)[1] if args.case else None)
    return OK


COMMANDS: tuple[Command, ...] = (
    Command("take-in", take_in, "take in result bundles, a folder or a .zip", "take-in --case nortia results/", (
        CASE, BY, Argument("path", {"type": Path, "metavar": "PATH", "help": "folder that bench wrote to, or .zip"}))),
    Command("enter", enter, "figures by hand out of a sheet: units, headings and repeats are read, nothing is guessed",
            ENTER_EXAMPLE, (CASE, *ENTER_ARGUMENTS)),
    Command("verdicts", verdicts, "hypotheses and flip conditions today; exit code 1 when one fails or fired",
            "verdicts --case nortia --json", (CASE, JSON)),
    Command("results", results, "knee, batch limit, units and cost from what was seen; measured over theory",
            RESULTS_EXAMPLE, (CASE, *RESULTS_ARGUMENTS, JSON)),
    Command("report", report, "the PoC as one HTML page with charts, or as Markdown, for people without the app",
            REPORT_EXAMPLE, (CASE, *REPORT_ARGUMENTS)),
    Command("compare", compare, "every two candidates figure by figure; exit code 1 when contracts refuse it",
            COMPARE_EXAMPLE, (
        CASE, Argument("--all", {"action": "store_true", "help": "every statistic that was taken"}), JSON)),
    Command("usage", usage, "bring in what users did: a CSV of days, a request log, or a Prometheus", USAGE_EXAMPLE,
            (CASE, *USAGE_ARGUMENTS, JSON)),
    Command("traffic", traffic, "what a request log says: lengths, rates, bursts, in flight; a trace to replay",
            TRAFFIC_EXAMPLE, (*TRAFFIC_ARGUMENTS, JSON)),
)  # fmt: skip
