"""The terminal entry: size, score, plan, launch, take-in, enter, verdicts, usage, adr ... The same calls as the pages.

Exit codes: 0 all well, 1 something fails or is broken, 2 the input was wrong (one sentence on stderr).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import FliplineError, InputError
from planner.request_rate import DEFAULT_UTILISATION
from planner.requirements import Requirements
from services.arrivals import Arrived, bring_in, bring_in_usage
from services.calibrations import calibration
from services.catalog_check import check_catalog
from services.comparison import comparison, pairs
from services.diffs import Diff
from services.hypotheses import view as hypotheses_view
from services.launches import Weights, start
from services.model_reading import find
from services.next_runs import next_runs
from services.own_models import add_model, summary
from services.plans import draft_plan
from services.quality import precision_warnings
from services.results import RateCapacity, rate_capacity, results_of, theory_of, with_ttft_counted
from services.scores import case_proposals, case_score, case_what_if, requirements_file
from services.shipped import install_shipped
from services.typed_question import question_of
from services.verdicts import CaseState, case_state, judge_adr, judge_hypotheses, users_served
from services.what_if import answer, case_answers
from services.workspace import Workspace, home_folder, now, open_workspace
from ui.adr_terminal import (
    CHECK_ARGUMENTS,
    CHECK_EXAMPLE,
    EXPORT_ARGUMENTS,
    EXPORT_EXAMPLE,
    IMPORT_ARGUMENTS,
    IMPORT_EXAMPLE,
    REPLAY_ARGUMENTS,
    REPLAY_EXAMPLE,
    check_and_print,
    export_and_print,
    import_and_print,
    replay_and_print,
)
from ui.comparison_terminal import COMPARE_EXAMPLE, comparison_json, print_comparison
from ui.database_terminal import DATABASE_COMMANDS
from ui.diff_terminal import (
    DIFF_ADR,
    VERSIONS,
    adr_asked,
    plan_asked,
    print_diff,
    requirements_asked,
    score_asked,
)
from ui.due_terminal import DUE_ARGUMENTS, DUE_EXAMPLE, REJUDGE_EXAMPLE, due_and_print, rejudge_and_print
from ui.engine_terminal import print_score, score_json
from ui.enter_terminal import ENTER_ARGUMENTS, ENTER_EXAMPLE, enter_and_print
from ui.hypothesis_terminal import hypotheses_json, print_hypotheses
from ui.launch_terminal import LAUNCH_ARGUMENTS, LAUNCH_EXAMPLE, print_launch
from ui.log_terminal import (
    GRAPH_ARGUMENTS,
    GRAPH_EXAMPLE,
    SEARCH_ARGUMENTS,
    SEARCH_EXAMPLE,
    print_graph,
    search_and_print,
)
from ui.next_terminal import next_json, print_next
from ui.plan_terminal import PLAN_ARGUMENTS, PLAN_EXAMPLE, write_plan
from ui.report_terminal import REPORT_ARGUMENTS, REPORT_EXAMPLE, write_report
from ui.results_terminal import RESULTS_ARGUMENTS, RESULTS_EXAMPLE, print_results, results_json
from ui.sizing_terminal import ASKED, EXPLAIN, SIZE_EXAMPLE, answer_json, print_answer
from ui.terminal import Argument, as_json, read_text, say, table, you
from ui.traffic_terminal import TRAFFIC_ARGUMENTS, TRAFFIC_EXAMPLE, read_and_print
from ui.usage_terminal import USAGE_ARGUMENTS, USAGE_EXAMPLE, demand_asked, demand_json, print_demand
from ui.verify_terminal import VERIFY_ARGUMENTS, VERIFY_EXAMPLE, verify_and_print

OK, FAILS, BAD_INPUT = 0, 1, 2


def required(ws: Workspace, name: str) -> tuple[CaseState, Requirements]:
    """A case with its requirements; raises UnknownName, InputError."""
    state = case_state(ws, name)
    if state.requirements is None:
        raise InputError("has no requirements yet.", where=state.case.title, fix="Write them on the page first.")
    return state, state.requirements


def size(ws: Workspace, args: argparse.Namespace) -> int:
    """What fits, how fast it can be, how many units: every model plan of a case, or one model on one machine."""
    typed = {a.words: value for a in ASKED if (value := getattr(args, a.words)) is not None}
    if args.case and typed:
        raise InputError(f"--{next(iter(typed)).replace('_', '-')} does not go with --case.", where="size",
                         fix="The requirements of the case state it: leave it out, or leave out --case.")  # fmt: skip
    if args.case:
        answers = case_answers(ws, required(ws, args.case)[1])
    else:
        answers = (answer(ws, question_of(ws.catalog, typed)),)
    if args.json:
        as_json([answer_json(a) for a in answers])
    else:
        for a in answers:
            print_answer(a, args.explain)
    return OK if all(a.sizing and a.sizing.requests_that_fit for a in answers) else FAILS


def model_add(ws: Workspace, args: argparse.Namespace) -> int:
    """Read a model from a config.json, a folder or the hub, say what was read and assumed, and keep it."""
    proposal = find(args.given, on=now().date(), id=args.id or "", index=args.index)
    for name, value in summary(proposal):
        say(f"{name}: {value}")
    add_model(ws, proposal, replace=args.replace)
    say(f"{proposal.model.id} is in the catalogue of this workspace.")
    return OK


def score(ws: Workspace, args: argparse.Namespace) -> int:
    """Gates, ranking, contributions, flips and what-ifs of a case, or of a file with requirements."""
    path = Path(args.case)
    is_file = path.suffix in (".yaml", ".yml") or path.is_file()
    r = requirements_file(path.name, read_text(path)) if is_file else required(ws, args.case)[1]
    found = case_score(ws, r)
    shown = found, case_what_if(ws, r, found), case_proposals(r, found)
    if args.json:
        as_json(score_json(*shown))
    else:
        print_score(*shown)
    return OK if found.favourite else FAILS


def plan(ws: Workspace, args: argparse.Namespace) -> int:
    """The plan file, its cost, the ready folder or the request: of the stored plan while it fits, else of a draft."""
    write_plan(ws, *required(ws, args.case), args)
    return OK


def hypotheses(ws: Workspace, args: argparse.Namespace) -> int:
    """The hypotheses of the plan in the order in which they could end it, with what each costs."""
    state, r = required(ws, args.case)
    stands = None if args.draft or state.plan_is_stale else state.plan
    found = hypotheses_view(ws, state, r, stands or draft_plan(ws, state.case.slug, r).plan)
    if args.json:
        as_json(hypotheses_json(found))
    else:
        print_hypotheses(found)
    return OK


def launch(ws: Workspace, args: argparse.Namespace) -> int:
    """How one server is started for a case, as a command, a container, Kubernetes objects or a systemd unit."""
    weights = Weights(args.revision, args.gguf)
    form = start(ws, required(ws, args.case)[1], args.engine, args.form, args.purpose, weights)
    if args.json:
        as_json(form.model_dump(mode="json"))
    else:
        print_launch(form, args.out)
    return OK


def _fired(arrived: Arrived) -> None:
    for f in arrived.fired:
        say(f"FIRED {f.condition}: {f.sentence}")


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
    _fired(arrived)
    return FAILS if arrived.broken else OK


def enter(ws: Workspace, args: argparse.Namespace) -> int:
    """Figures out of a sheet, as entered by a named person; exit code 2 when a row is refused and not left out."""
    arrived = enter_and_print(ws, args, required(ws, args.case)[0])
    if arrived is None:
        return OK if args.dry_run else BAD_INPUT
    _fired(arrived)
    return OK


def verdicts(ws: Workspace, args: argparse.Namespace) -> int:
    """Every hypothesis and every flip condition of the case today."""
    state, _ = required(ws, args.case)
    judged = [(v.hypothesis.id, v.verdict) for v in judge_hypotheses(state)]
    flips = [(a.name, f) for a in state.adrs for f in judge_adr(state, a)]
    warnings, runs = precision_warnings(state), next_runs(ws, state)
    if args.json:
        as_json({
            "users": users_served(state)._asdict(),
            "hypotheses": [{"id": id, "sentence": v.sentence, **v.model_dump(mode="json")} for id, v in judged],
            "flip_conditions": [{"adr": adr, "condition": f.condition, "state": f.state.value, "sentence": f.sentence}
                                for adr, f in flips],
            "warnings": list(warnings),
            "measure_next": next_json(runs),
        })  # fmt: skip
    else:
        say(users_served(state).sentence)
        rows = [(id, v.state.value, v.kind.value if v.kind else "", v.sentence) for id, v in judged]
        table("Hypotheses", ("id", "state", "known by", "sentence"), rows)
        table("Flip conditions", ("adr", "condition", "state", "sentence"),
              [(adr, f.condition, f.state.value, f.sentence) for adr, f in flips])  # fmt: skip
        for warning in warnings:
            say(warning)
        print_next(runs)
    failing = any(v.side == "fails" for _, v in judged) or any(f.state == "fired" for _, f in flips)
    return FAILS if failing else OK


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
    shown = results_of(ws, state, share), asked, theory_of(calibration(ws), state)
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
    _fired(arrived)
    return OK


def traffic(ws: Workspace, args: argparse.Namespace) -> int:
    """What a request log says, against a case's requirements where one is named; the trace to replay on request."""
    read_and_print(args, required(ws, args.case)[1] if args.case else None)
    return OK


def adr_list(ws: Workspace, args: argparse.Namespace) -> int:
    """All ADRs with status and headline."""
    slugs = {c.id: c.slug for c in ws.store.cases.all()}
    case = ws.store.cases.get(args.case).id if args.case else None
    rows = [(slugs[a.case], a.name, a.status.value, a.title, a.headline) for a in ws.store.adrs.all(case=case)]
    columns = ("case", "adr", "status", "title", "headline")
    if args.json:
        as_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        table("Decisions", columns, rows)
    return OK


def adr_search(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions that have all words and pass the filters; 1 when there is none."""
    return OK if search_and_print(ws, args) else FAILS


def adr_graph(ws: Workspace, args: argparse.Namespace) -> int:
    """What supersedes what and rests on what, in the DOT language."""
    print_graph(ws, args)
    return OK


def compared(ask: Callable[[Workspace, argparse.Namespace], Diff]) -> Callable[[Workspace, argparse.Namespace], int]:
    """A command that prints the difference that `ask` finds."""

    def run(ws: Workspace, args: argparse.Namespace) -> int:
        print_diff(ask(ws, args), json=args.json)
        return OK

    return run


def adr_due(ws: Workspace, args: argparse.Namespace) -> int:
    """Reviews and re-checks that are due by now or soon."""
    return FAILS if due_and_print(ws, args) else OK


def adr_rejudge(ws: Workspace, args: argparse.Namespace) -> int:
    """Judge every condition again: a day passed, or a fact of the catalogue is another."""
    return FAILS if rejudge_and_print(ws, args) else OK


def adr_verify(ws: Workspace, args: argparse.Namespace) -> int:
    """The head hash of every ADR, and the first broken link where there is one."""
    return OK if verify_and_print(ws, args) else FAILS


def adr_export(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions as Markdown into a folder, or the log as JSON; 1 when a hand edit stands in the way."""
    return OK if export_and_print(ws, args) else FAILS


def adr_import(ws: Workspace, args: argparse.Namespace) -> int:
    """Decisions of a folder into a case, hand edits back into their records; 1 when a file did not come in."""
    return OK if import_and_print(ws, args) else FAILS


def adr_replay(ws: Workspace, args: argparse.Namespace) -> int:
    """Score and verdicts from what was kept with a decision; 1 when something comes out otherwise."""
    return OK if replay_and_print(ws, args) else FAILS


def catalog_check(args: argparse.Namespace) -> bool:
    """Whether the catalogue with this workspace's own entries is whole, and which engines' facts are stale."""
    found = check_catalog(home_folder(args.home), now().date())
    for line in found.lines():
        say(line)
    return not found.broken


CASE = Argument("--case", {"required": True, "metavar": "SLUG", "help": "the case, as in nortia"})
ANY_CASE = Argument("--case", {"metavar": "SLUG", "help": "only this case"})
JSON = Argument("--json", {"action": "store_true", "help": "print JSON"})
BY = Argument("--by", {"default": you(), "metavar": "NAME", "help": "who brings it in (default: you)"})


class Command(NamedTuple):
    """One command: its words, what it does, an example, its arguments."""

    words: str
    run: Callable[[Workspace, argparse.Namespace], int]
    help: str
    example: str
    arguments: tuple[Argument, ...]


COMMANDS: tuple[Command, ...] = (
    Command("size", size, "what fits, how fast it can be, how many units", SIZE_EXAMPLE,
            (Argument("--case", {"metavar": "SLUG", "help": "every model plan of a case"}), *ASKED, EXPLAIN, JSON)),
    Command("model add", model_add, "take a model into the catalogue from its config.json, a folder or the hub",
            "model add Qwen3-8B/config.json --id Qwen/Qwen3-8B", (
        Argument("given", {"metavar": "FILE|DIR|HUB_ID", "help": "config.json, a checkpoint's folder, or owner/name"}),
        Argument("--id", {"metavar": "NAME", "help": "its name in the catalogue (default: the folder's or the hub's)"}),
        Argument("--index", {"type": Path, "metavar": "FILE", "help": "model.safetensors.index.json of a file"}),
        Argument("--replace", {"action": "store_true", "help": "in place of an entry of that name"}))),
    Command("score", score, "gates, ranking, contributions and flip weights of the engines",
            "score --case nortia --json", (
        Argument("--case", {"required": True, "metavar": "SLUG|FILE", "help": "a case, or a YAML file of one"}), JSON)),
    Command("plan", plan, "the plan file that bench runs, what it costs, the ready folder, the request for GPU time",
            PLAN_EXAMPLE, (CASE, *PLAN_ARGUMENTS)),
    Command("hypotheses", hypotheses, "what is tested first and why: cost, what is expected, what a no leads to",
            "hypotheses --case nortia", (
        CASE, Argument("--draft", {"action": "store_true", "help": "of a fresh draft although a plan is stored"}),
        JSON)),
    Command("launch", launch, "how a server is started: command, container, Kubernetes or systemd", LAUNCH_EXAMPLE,
            (CASE, *LAUNCH_ARGUMENTS, JSON)),
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
    Command("adr list", adr_list, "all decisions with their status", "adr list --case nortia", (ANY_CASE, JSON)),
    Command("adr search", adr_search, "decisions by words and filters; exit code 1 when there is none", SEARCH_EXAMPLE,
            (*SEARCH_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr graph", adr_graph, "what supersedes what and rests on what, in the DOT language", GRAPH_EXAMPLE,
            (*GRAPH_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr due", adr_due, "what somebody promised to look at; exit code 1 when a day is here or past",
            DUE_EXAMPLE, (*DUE_ARGUMENTS, ANY_CASE, JSON)),
    Command("adr rejudge", adr_rejudge, "judge every condition again, as from cron; exit code 1 when one fires",
            REJUDGE_EXAMPLE, (ANY_CASE, JSON)),
    Command("adr verify", adr_verify, "check the hash chains; prints the head of each", VERIFY_EXAMPLE,
            (*VERIFY_ARGUMENTS, JSON)),
    Command("adr export", adr_export, "MADR 4 Markdown with an index and charts into a folder, or the log as JSON",
            EXPORT_EXAMPLE, EXPORT_ARGUMENTS),
    Command("adr import", adr_import, "bring in MADR or Nygard files, hand-edited exports, or a log as JSON",
            IMPORT_EXAMPLE, (*IMPORT_ARGUMENTS, BY)),
    Command("adr replay", adr_replay, "score and verdicts again from what was kept; exit code 1 when something differs",
            REPLAY_EXAMPLE, REPLAY_ARGUMENTS),
    Command("diff adr", compared(adr_asked), "two points of a decision's history, or two decisions",
            "diff adr 2 --against 1", (*DIFF_ADR, JSON)),
    Command("diff requirements", compared(requirements_asked), "two versions, and what the change invalidates",
            "diff requirements --case nortia 1 2", (CASE, *VERSIONS, JSON)),
    Command("diff score", compared(score_asked), "two versions' scores, one as decided (ADR-0001), or that of today",
            "diff score --case nortia ADR-0001 today", (CASE, *VERSIONS, JSON)),
    Command("diff plan", compared(plan_asked), "two stored plans, by the beginning of their hash",
            "diff plan --case nortia", (CASE, *VERSIONS, JSON)),
)  # fmt: skip
GROUPS = {"adr": "list, search, check, verify, export, import and replay decisions",
          "catalog": "check the facts and own entries",
          "db": "check the database, or move to another", "diff": "any two versions of a decision or its grounds",
          "model": "own models of the catalogue"}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """All commands with their help and an example each."""
    top = argparse.ArgumentParser(
        prog="cli.py", description="Flipline in the terminal: the same calls as the pages.",
        epilog="Exit codes: 0 all well, 1 something fails or is broken, 2 the input was wrong.",
    )  # fmt: skip
    top.add_argument("--home", type=Path, metavar="DIR", help="the workspace (default: FLIPLINE_HOME, else var/)")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    groups = {
        name: commands.add_parser(name, help=words, description=words).add_subparsers(required=True, metavar="COMMAND")
        for name, words in GROUPS.items()
    }
    for c in COMMANDS:
        group, _, word = c.words.rpartition(" ")
        _add(groups[group] if group else commands, word, c.help, c.example, c.arguments).set_defaults(run=c.run)
    check = _add(groups["catalog"], "check", "whether facts and own entries can be read, and how old", "catalog check")
    check.set_defaults(run=None, of_home=catalog_check)
    _add(groups["adr"], "check", "lint decisions, and judge exported ones against bundles without a database",
         CHECK_EXAMPLE, CHECK_ARGUMENTS).set_defaults(run=None, of_home=check_and_print)  # fmt: skip
    for word, run, what, example, arguments in DATABASE_COMMANDS:
        _add(groups["db"], word, what, example, arguments).set_defaults(run=None, of_home=run)
    return top


def _add(to: Any, word: str, what: str, example: str, arguments: tuple[Argument, ...] = ()) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = to.add_parser(
        word, help=what, description=f"{what[:1].upper()}{what[1:]}.", epilog=f"Example: python cli.py {example}"
    )
    for argument in arguments:
        added.add_argument(argument.name, **argument.options)
    return added


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = parser().parse_args(argv)
    try:
        if args.run is None:
            return OK if args.of_home(args) else FAILS
        ws = open_workspace(args.home)
        try:
            install_shipped(ws)
            code: int = args.run(ws, args)
            return code
        finally:
            ws.store.close()
    except FliplineError as e:
        print(e, file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
