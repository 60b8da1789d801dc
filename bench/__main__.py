"""The instrument's terminal entry: python -m bench COMMAND; `python -m bench --help` names the commands.

Exit codes: 0 done, 1 done but a server failed or two results do not compare, 2 the input is wrong, 130 cancelled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

from bench.emulator import command as emulator
from bench.heard import Heard
from planner.errors import FliplineError

BAD_INPUT, CANCELLED = 2, 130
MOST = 256  # processes of a load, passes of a client
_EXIT_CODES = {
    "run": "0 done, 1 done but a server failed, 2 the input is wrong, 130 cancelled",
    "check": "0 every candidate answered, 1 one did not, 2 the input is wrong, 130 cancelled",
    "emulate": "0 stopped by a signal, 1 ended by its fault, 2 the input is wrong",
    "doctor": "0 nothing would spoil a measurement, 1 something would",
    "compare": "0 they compare, 1 they do not, 2 the input is wrong",
    "crosscheck": "0 both clients agree, 1 they do not, 2 the input is wrong, 130 cancelled",
}
_OTHER_EXIT_CODES = "0 done, 2 the input is wrong, 130 cancelled"


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with redirect_stdout(Heard(sys.stdout)):
            code = command(options)
            sys.stdout.flush()
        return code
    except FliplineError as e:
        print(f"bench: {e}", file=sys.stderr)
        return BAD_INPUT
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        print(f"bench: {where}cannot be read or written: {e.strerror or e}. Check the path, its rights and the room "
              "there.", file=sys.stderr)  # fmt: skip
        return BAD_INPUT
    except KeyboardInterrupt:
        return CANCELLED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure a server for a language model.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "measure a plan and write one bundle per start",
                   "python -m bench run plan.yaml --out results")  # fmt: skip
    run.add_argument("plan", type=Path, help="plan file (YAML)")
    run.add_argument(
        "--out", type=Path, required=True, help="folder for bundles and progress.json; resumes what is there"
    )
    run.add_argument("--shards", type=_positive, metavar="N",
                     help="processes that offer the load; by default as many as its rate needs")  # fmt: skip
    _may_name_commands(run)
    run.add_argument("--json", action="store_true", help="print the result as JSON")

    check = _command(commands, "check", _check, "start or attach to each server and try one request",
                     "python -m bench check plan.yaml")  # fmt: skip
    check.add_argument("plan", type=Path, help="plan file (YAML)")
    _may_name_commands(check)
    check.add_argument("--json", action="store_true", help="print the result as JSON")

    doctor = _command(commands, "doctor", _doctor, "say what on this machine would spoil a measurement",
                      "python -m bench doctor")  # fmt: skip
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")

    emulate = _command(commands, "emulate", emulator.run, "serve an OpenAI-compatible API with known timing",
                       "python -m bench emulate --port 8000 --ttft-ms 100 --itl-ms 20 --slots 16")  # fmt: skip
    emulator.add_arguments(emulate)

    summary = _command(commands, "summary", _summary, "print the evidence in bundles",
                       "python -m bench summary results")  # fmt: skip
    summary.add_argument("folder", type=Path, help="a bundle, or a folder of bundles")
    summary.add_argument("--json", action="store_true", help="print the evidence as JSON")
    _add_import(commands)
    compare = _command(commands, "compare", _compare, "set two bundles side by side, if their contracts allow it",
                       "python -m bench compare results/vllm-A-start1 results/ollama-A-start1")  # fmt: skip
    compare.add_argument("left", type=Path, help="folder of one bundle")
    compare.add_argument("right", type=Path, help="folder of the other")
    compare.add_argument("--json", action="store_true", help="print the rows as JSON")
    _add_crosscheck(commands)
    return parser


def _add_import(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "import", _import, "make a bundle from another tool's result file",
                      "python -m bench import bench.json --candidate vllm --out results --source 'team B'")  # fmt: skip
    parser.add_argument("file", type=Path, help="result of vllm bench serve, SGLang, GuideLLM, AIPerf or llama.cpp")
    parser.add_argument("--candidate", required=True, help="candidate whose result it is")
    parser.add_argument("--out", type=Path, help="folder for the bundle")
    parser.add_argument("--plan", type=Path, help="plan file that candidate and load points are held against")
    parser.add_argument("--point", action="append", default=[], metavar="[LOAD=]POINT",
                        help="load point of the plan that a load of the file stands for")  # fmt: skip
    parser.add_argument("--source", default="", help="where the file comes from")
    parser.add_argument("--licence", default="", help="licence of the file, or who allowed its use")
    parser.add_argument("--state", action="append", default=[], metavar="FIELD=VALUE",
                        help="contract field that the file does not say, such as gpu=GB10")  # fmt: skip
    parser.add_argument("--in-flight", type=int, help="requests in flight, where the file does not say")
    parser.add_argument("--rate", type=float, help="requests per second, where the file does not say")
    parser.add_argument("--date", default="", help="day of the run (2026-08-14), where the file does not say")
    parser.add_argument("--format", default="", help="format name, if it is not recognised")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be taken")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_crosscheck(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "crosscheck", _crosscheck, "measure a closed loop with vLLM's own client and with ours",
                      "python -m bench crosscheck plan.yaml --client-python .venv-vllm/bin/python --tokenizer MODEL_DIR"
                      )  # fmt: skip
    parser.add_argument("plan", type=Path, help="plan file (YAML)")
    parser.add_argument("--client-python", type=Path, required=True, help="Python of an environment that has vLLM")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with the model's tokenizer")
    parser.add_argument("--candidate", default="", help="whose server; by default the first of the plan")
    parser.add_argument("--point", default="", help="closed load point; by default the one with the most in flight")
    parser.add_argument("--rounds", type=_positive, default=3, help="passes of vLLM's client (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="folder that keeps its result files and the server's log")
    parser.add_argument("--normal-priority", action="store_true",
                        help="do not give vLLM's client the real-time priority that ours has")  # fmt: skip
    _may_name_commands(parser)
    parser.add_argument("--json", action="store_true", help="print every pass as JSON")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST}")
    return int(text)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    what: str,
    example: str,
) -> argparse.ArgumentParser:
    codes = _EXIT_CODES.get(name, _OTHER_EXIT_CODES)
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter,
                                 epilog=f"Example: {example}\nExit codes: {codes}.")  # fmt: skip
    parser.set_defaults(command=run)
    return parser


def _may_name_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-command", action="store_true",
                        help="run commands of the plan that are not those of a known engine")  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    from bench import commands

    return commands.run(options)


def _check(options: argparse.Namespace) -> int:
    from bench import commands

    return commands.check(options)


def _doctor(options: argparse.Namespace) -> int:
    from bench import commands

    return commands.doctor(options)


def _summary(options: argparse.Namespace) -> int:
    from bench import commands

    return commands.summary(options)


def _import(options: argparse.Namespace) -> int:
    from bench.importers import command

    return command.run(options)


def _compare(options: argparse.Namespace) -> int:
    from bench import compare

    return compare.run(options)


def _crosscheck(options: argparse.Namespace) -> int:
    from bench import crosscheck

    return crosscheck.run(options)


if __name__ == "__main__":
    sys.exit(main())
