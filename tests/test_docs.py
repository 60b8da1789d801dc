"""README and docs say nothing that is not there: links, commands with their options, make targets, variables, pages."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import cli
from bench import __main__ as bench
from services.workspace import ROOT
from ui.registry import PAGES

DOCS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "design").glob("*.md")])
TEXTS = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in DOCS}
ALL = "\n".join(TEXTS.values())
ENTRIES = {"cli.py": cli.parser, "-m bench": bench._parser}
EVERY_FILE = pytest.mark.parametrize("name", TEXTS)


def outside_code(text: str) -> str:
    return re.sub(r"^```.*?^```|^    .*?$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Headings as forges make anchors of them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@EVERY_FILE
def test_every_link_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(<?([^)>]+)>?\)", outside_code(TEXTS[name])):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target


def blocks(text: str) -> tuple[str, str]:
    """The code blocks of a text, and the text without them."""
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^    (.*)$", rest, re.MULTILINE)
    return "\n".join([fenced, *indented]), re.sub(r"^    .*$", "", rest, flags=re.MULTILINE)


def spans(text: str) -> list[str]:
    """What stands between backticks outside the blocks, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", blocks(text)[1])]


@EVERY_FILE
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_command_that_can_be_copied_is_understood(name: str, entry: str) -> None:
    for line in re.findall(rf"python {re.escape(entry)} (.*)", blocks(TEXTS[name])[0].replace("\\\n", " ")):
        words = shlex.split(line, comments=True)
        ENTRIES[entry]().parse_args(words[: words.index(">")] if ">" in words else words)


@EVERY_FILE
def test_every_command_and_option_that_is_spoken_of_exists(name: str) -> None:
    for span in spans(TEXTS[name]):
        words = span.removeprefix("python ").removeprefix("-m ").split()
        entry = "-m bench" if words[0] == "bench" and len(words) > 1 else "cli.py"
        if words[0] in ("cli.py", "bench"):
            words = words[1:]
        elif words[0] not in cli.GROUPS or len(words) < 2:
            continue
        found = ENTRIES[entry]()
        while words and (below := choices(found)):
            assert words[0] in below, span
            found = below[words.pop(0)]
        options = {w.split("=")[0] for w in words if w.startswith("--")}
        assert options <= set(found._option_string_actions), span


def choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser, by their word."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(groups[0].choices) if groups else {}


def commands(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    """Every command as it is typed."""
    below = choices(parser)
    if not below:
        yield before.strip()
    for word, of in below.items():
        yield from commands(of, f"{before} {word}")


def test_the_readme_names_every_command_and_every_page() -> None:
    said = TEXTS["README.md"]
    assert [c for c in commands(cli.parser()) if not re.search(rf"`{c}\b|cli\.py {c}\b", said)] == []
    assert [c for c in commands(bench._parser()) if f"bench {c}" not in ALL] == []
    assert [p.title for p in PAGES if p.step and f"**{p.title}**" not in said] == []


def test_the_readme_leads_to_every_document() -> None:
    assert [name for name in TEXTS if name != "README.md" and f"({name}" not in TEXTS["README.md"]] == []


def test_every_make_target_is_there_and_every_program_too() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    code = "\n".join("\n".join([blocks(text)[0], *spans(text)]) for text in TEXTS.values())
    assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= targets
    for module in re.findall(r"python -m ((?:perf|scripts|tests)[\w.]*)", code):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    for script in re.findall(r"python ((?:perf|scripts)/\w+\.py)", code):
        assert (ROOT / script).exists(), script


def test_the_variables_of_the_environment_are_those_that_are_read() -> None:
    rooms = ("services", "db", "ui", "bench", "planner")
    code = "".join(p.read_text(encoding="utf-8") for room in rooms for p in (ROOT / room).glob("*.py"))
    read = set(re.findall(r'"(FLIPLINE_\w+)"', code))
    private = {"FLIPLINE_LEASE"}  # bench marks its own servers with it
    assert set(re.findall(r"FLIPLINE_\w+", TEXTS["README.md"])) == read - private
    assert set(re.findall(r"FLIPLINE_\w+", ALL)) == read - private


def test_files_that_are_named_are_there() -> None:
    rooms = "planner|services|ui|db|bench|bundle|decisions|perf|scripts|tests"
    for path in re.findall(rf"\b((?:{rooms})/[\w/]+\.(?:py|csv|md))\b", ALL):
        assert (ROOT / Path(path)).exists(), path


def test_every_package_that_is_asked_for_earns_its_line() -> None:
    asked = "\n".join(p.read_text(encoding="utf-8") for p in ROOT.glob("requirements*.txt"))
    named = re.findall(r"^\| ([^|]+) \|", TEXTS["docs/dependencies.md"], re.MULTILINE)
    said = set(re.findall(r"[\w-]+", " ".join(named)))
    assert set(re.findall(r"^([a-z][\w-]*)", asked, re.MULTILINE)) <= said
