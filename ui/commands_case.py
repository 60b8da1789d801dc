"""Commands of a case before it is measured: size, models, score, hypotheses, plan, launches."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.errors import InputError
from services.hypotheses import view as hypotheses_view
from services.launches import Weights, start
from services.model_reading import find
from services.own_models import add_model, summary
from services.plans import draft_plan
from services.scores import case_proposals, case_score, case_what_if, on_candidate, requirements_file
from services.typed_question import question_of
from services.what_if import answer, case_answers
from services.workspace import Workspace, now
from ui.command import CASE, FAILS, JSON, OK, Command, required
from ui.engine_terminal import print_score, score_json
from ui.hypothesis_terminal import hypotheses_json, print_hypotheses
from ui.launch_terminal import LAUNCH_ARGUMENTS, LAUNCH_EXAMPLE, print_launch
from ui.plan_terminal import PLAN_ARGUMENTS, PLAN_EXAMPLE, write_plan
from ui.sizing_terminal import ASKED, EXPLAIN, SIZE_EXAMPLE, answer_json, print_answer
from ui.terminal import Argument, as_json, read_text, say


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
    r = on_candidate(r, args.model_plan, args.gpu)
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
        Argument("--case", {"required": True, "metavar": "SLUG|FILE", "help": "a case, or a YAML file of one"}),
        Argument("--model-plan", {"metavar": "ID", "help": "one of its model plans (default: the favourite)"}),
        Argument("--gpu", {"metavar": "ID", "help": "one of its machines (default: the first)"}), JSON)),
    Command("plan", plan, "the plan file that bench runs, what it costs, the ready folder, the request for GPU time",
            PLAN_EXAMPLE, (CASE, *PLAN_ARGUMENTS)),
    Command("hypotheses", hypotheses, "what is tested first and why: cost, what is expected, what a no leads to",
            "hypotheses --case nortia", (
        CASE, Argument("--draft", {"action": "store_true", "help": "of a fresh draft although a plan is stored"}),
        JSON)),
    Command("launch", launch, "how a server is started: command, container, Kubernetes or systemd", LAUNCH_EXAMPLE,
            (CASE, *LAUNCH_ARGUMENTS, JSON)),
)  # fmt: skip
