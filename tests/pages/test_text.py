"""No visible text slips by `t`: what a page says can be translated without touching the page.

Read from the source: an argument that people see is a call of `t`, text from data (`plain`, a badge), or built of such.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.condition_line import parse_condition
from planner.errors import InputError
from services.workspace import ROOT

SOURCES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "ui").glob("*.py"))]

# Calls whose first argument is not read by people: layout, keys, formats, code, control.
NOT_TEXT = {
    "columns", "container", "navigation", "switch_page", "Page", "page_link", "set_page_config", "stop", "rerun",
    "cache_data", "cache_resource", "fragment", "code", "dataframe", "altair_chart", "data_editor", "form", "empty",
}  # fmt: skip
# Keyword arguments that people read, of any call on `st` or on what it returned.
VISIBLE = {"label", "help", "placeholder", "alt", "text", "title", "body", "caption"}
OURS = {"head": 1, "go_to": 1, "flash": 0, "explained": 1}  # our own calls: position of the visible argument
CHARTS = {"y_title", "required_label"}
CHART_TITLES = {"X", "Y", "Color", "Tooltip"}
# Words that are the same in every language, or that no person reads as a word.
SAME_EVERYWHERE = {"Flipline", "UTC", "KV", "kWh", "GB", "ms"}
ID_OR_PATH = re.compile(r"[a-z0-9]+(?:[-/._][a-z0-9]+)+")


def has_words(text: str) -> bool:
    """Whether a literal holds a word: Markdown marks, icons and directives are none."""
    kept = []
    for part in text.split(":"):
        word = part.strip("[]*#`_ ")
        directive = word.startswith("material/") or word in (
            "small",
            "green",
            "red",
            "orange",
            "blue",
            "gray",
            "violet",
        )
        kept.append("" if directive else part)
    return any(w not in SAME_EVERYWHERE for w in re.findall(r"[A-Za-z]+", " ".join(kept).replace("-badge[", "[")))


def is_example(text: str) -> bool:
    """Whether a literal shows what to type: an id, a path, or a condition line, which is English in every language."""
    if ID_OR_PATH.fullmatch(text):
        return True
    try:
        parse_condition(text)
    except InputError:
        return False
    return True


def literals(node: ast.expr) -> Iterator[ast.Constant]:
    """Literal words in an argument that no call of a function covers."""
    match node:
        case ast.Constant(value=str() as text) if has_words(text) and not is_example(text):
            yield node
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from literals(part)
        case ast.FormattedValue(value=inner):
            yield from literals(inner)
        case ast.BinOp(left=left, right=right):
            yield from literals(left)
            yield from literals(right)
        case ast.IfExp(body=body, orelse=orelse):
            yield from literals(body)
            yield from literals(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from literals(value)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from literals(part)
        case _:  # a name, an attribute, a call: t, plain, a badge, or a value that is no literal
            return


def streamlit_call(call: ast.Call) -> bool:
    """Whether a call is `st.x(...)`, or `x` on a container such as a column or the sidebar."""
    f = call.func
    return isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.attr in STREAMLIT


def _streamlit_names() -> set[str]:
    import streamlit as st

    return {name for name in dir(st) if not name.startswith("_")}


STREAMLIT = _streamlit_names()


def seen(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that people read."""
    f = call.func
    name = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
    if isinstance(f, ast.Name) and name in OURS and len(call.args) > OURS[name]:
        yield call.args[OURS[name]]
    if streamlit_call(call):
        if call.args and name not in NOT_TEXT:
            yield call.args[0]
        if name == "metric":
            yield from call.args[1:3]
        yield from (k.value for k in call.keywords if k.arg in VISIBLE)
    if ast.unparse(f).startswith("st.column_config."):
        yield from call.args[:1]
        yield from (k.value for k in call.keywords if k.arg in VISIBLE)
    if ast.unparse(f).startswith("alt.") and name in CHART_TITLES:
        yield from (k.value for k in call.keywords if k.arg == "title")
    yield from (k.value for k in call.keywords if k.arg in CHARTS)


def slips(source: str) -> list[str]:
    """Every visible literal that does not pass through `t`, as `line: text`."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return [f"{x.lineno}: {x.value!r}" for call in calls for argument in seen(call) for x in literals(argument)]


def untranslated_keys(source: str) -> list[str]:
    """Literal keys of dicts that become table columns: written with `t` everywhere or nowhere in one dict."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict) and any(isinstance(k, ast.Call) for k in node.keys):
            found += [f"{k.lineno}: {k.value!r}" for k in node.keys if isinstance(k, ast.Constant)]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_visible_literal_slips_by(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert slips(source) == []
    assert untranslated_keys(source) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('st.markdown("Hello")', ["1: 'Hello'"]),
        ('st.markdown(t("Hello"))', []),
        ('st.button(t("Save"), help="why")', ["1: 'why'"]),
        ('st.markdown(f"**{plain(x)}** ends")', ["1: '** ends'"]),
        ('st.markdown(f"{state_badge(s)} **{plain(x)}** · :small[{y}]")', []),
        ('st.warning(t("a") if x else "b", icon=":material/report:")', ["1: 'b'"]),
        ('left.metric(t("Units"), "many")', ["1: 'many'"]),
        ('go_to("sizing", "Look there:")', ["1: 'Look there:'"]),
        ('head("sizing", t("What fits"))', []),
        ('st.columns(3)', []),
        ('st.text_input(t("Id"), placeholder="ttft-too-slow")', []),
        ('st.column_config.TextColumn("Id")', ["1: 'Id'"]),
        ('alt.X("batch:Q", title="In flight")', ["1: 'In flight'"]),
    ],
)  # fmt: skip
def test_the_rule_itself(line: str, found: list[str]) -> None:
    assert slips(line) == found


def test_messages_are_literals_so_that_a_catalogue_can_be_made() -> None:
    """A message that is put together before `t` sees it could never be looked up."""
    built = [
        f"{path.name}:{call.lineno}"
        for path in SOURCES
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "t" and call.args
        if isinstance(call.args[0], ast.JoinedStr | ast.BinOp)
    ]
    assert built == []
