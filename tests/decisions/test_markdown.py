"""The export: MADR 4's headings exactly, user text as text, the same bytes each time.

python-frontmatter and markdown-it-py, which know nothing of us, say what a reader sees.
"""

from datetime import date, timedelta
from pathlib import Path

import frontmatter
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from decisions.edits import ConditionFired, ConditionRetired, Superseded
from decisions.escaping import inline
from decisions.exports import file_name
from decisions.flip_condition import FlipCondition
from decisions.flips import FlipState, FlipVerdict, fired_edit, judge_flips
from decisions.markdown import to_markdown
from decisions.record import (
    Adr,
    Comment,
    Consequences,
    Fire,
    Opinion,
    Option,
    People,
    Section,
    draft,
)
from decisions.view import apply, current
from planner.condition_line import parse_condition
from planner.contract import Contract
from planner.derivation import Derivation, DerivedInput
from planner.loads import LoadPoint
from tests.decisions.made import NOW, SEEDS_FOUR, accepted_edits, context, nortia, observed_peak, text

GOLDEN = Path(__file__).parents[1] / "golden" / "adr-nortia.md"
READER = MarkdownIt("commonmark").enable("table")
# the headings of MADR 4.0.0, template/adr-template.md at adr/madr@11807d8, in their order
MADR = [
    "Context and Problem Statement", "Decision Drivers", "Considered Options", "Decision Outcome",
    "Pros and Cons of the Options", "More Information",
]  # fmt: skip


def body(markdown: str) -> str:
    return frontmatter.loads(markdown).content


def front(markdown: str) -> dict:
    return frontmatter.loads(markdown).metadata


def headings(markdown: str) -> list[tuple[str, str]]:
    tokens = READER.parse(body(markdown))
    return [(t.tag, shown(tokens[i + 1])) for i, t in enumerate(tokens) if t.type == "heading_open"]


def shown(inline) -> str:
    return "".join(t.content for t in inline.children)


def structure(markdown: str) -> list[str]:
    """Every token's type with inline ones: two documents of equal structure differ in words only."""
    kinds = []
    for token in READER.parse(body(markdown)):
        kinds.append(token.type)
        kinds += [c.type for c in token.children or () if c.type not in ("text", "text_special", "softbreak")]
    return kinds


def machine(markdown: str) -> dict:
    fences = [t for t in READER.parse(body(markdown)) if t.type == "fence"]
    assert [f.info for f in fences] == ["yaml"]
    return yaml.safe_load(fences[0].content)


def fired() -> tuple[Adr, tuple]:
    adr = current(accepted_edits())
    verdicts = judge_flips(adr, [observed_peak(5)], context())
    return apply(adr, fired_edit(verdicts[1], at=NOW + timedelta(days=60))), verdicts


def test_a_figure_of_the_sizing_is_cited_with_formula_inputs_and_known_error():
    figure = Derivation(
        key="units", title="Units for 50 users", value="3 (bound), 13 (coverage), 17 (planning)",
        formula="users / largest batch", inputs=(DerivedInput(name="users", value="50", source="requirements"),),
        assumptions=("users are spread evenly",), band="as the speed that it rests on",
    )  # fmt: skip
    draft = nortia().model_copy(update={"sizing": (figure, figure.model_copy(update={"title": "*x* <b>\n# y"}))})
    text = to_markdown(draft)
    assert (
        "### Sizing\n\nComputed before anything was measured; each figure with how it came about.\n\n"
        "* **Units for 50 users: 3 (bound), 13 (coverage), 17 (planning)**\n"
        "  * formula: users / largest batch\n"
        "  * users = 50 (requirements)\n"
        "  * assumes: users are spread evenly\n"
        "  * known error: as the speed that it rests on\n"
    ) in text
    assert "* **\\*x\\* \\<b> \\# y: 3" in text  # nothing in a title becomes structure
    assert "### Sizing" not in to_markdown(nortia())


def test_the_nortia_decision_as_a_file():
    seen = "in 28 days never more than 5 requests at once"
    adr = current([
        *accepted_edits(),
        ConditionFired(at=NOW + timedelta(days=60), author="Flipline", fire=Fire(
            condition="few-users", at=NOW + timedelta(days=60), sentence=seen, value=5, distance=0)),
        ConditionRetired(at=NOW + timedelta(days=61), author="Lee", condition="shared-prefix-dominates", reason="-"),
    ])  # fmt: skip
    verdicts = (
        FlipVerdict(condition="engine-does-not-start", state=FlipState.UNMEASURED, sentence=""),
        FlipVerdict(condition="few-users", state=FlipState.FIRED, sentence=seen, value=5, distance=0,
                    relative_distance=0, unit="count"),
    )  # fmt: skip
    assert to_markdown(adr, verdicts, head="d" * 64) == GOLDEN.read_text(encoding="utf-8")


def test_headings_are_those_of_madr_in_their_order():
    found = headings(to_markdown(current(accepted_edits())))
    assert [h for tag, h in found if tag == "h2"] == MADR
    assert [h for tag, h in found if tag == "h1"] == ["vLLM serves the internal assistant"]
    assert {"Consequences", "Confirmation", "vLLM", "Ollama"} <= {h for tag, h in found if tag == "h3"}


def test_front_matter():
    markdown = to_markdown(current(accepted_edits()))
    assert 'status: "accepted"\n' in markdown
    assert front(markdown) == {
        "status": "accepted", "date": date(2026, 9, 2), "decision-makers": ["Sato"], "consulted": ["Tanaka", "Lee"],
        "tags": ["inference"],
    }  # fmt: skip


def test_machines_read_the_conditions_back():
    adr, verdicts = fired()
    data = machine(to_markdown(adr, verdicts, head="d" * 64))
    assert (data["id"], data["number"], data["head"]) == (adr.id, 7, "d" * 64)
    assert [parse_condition(c["condition"]) for c in data["conditions"]] == [c.condition for c in adr.conditions]
    assert [c["state"] for c in data["conditions"]] == ["unmeasured", "fired", "unmeasured", "unmeasured"]
    assert data["evidence"] == [{"id": "e-1", "kind": "imported", "sha256": "e" * 64, "run": "b" * 64}]
    assert data["snapshots"] == {"plan": "a" * 64}


def test_superseding_links_both_ends():
    old = current(accepted_edits("01JOLD"))
    new = current(accepted_edits("01JNEW", number=8)).model_copy(update={"supersedes": ("01JOLD",), "title": "Simpler"})
    old = apply(old, Superseded(at=NOW, author="Sato", by="01JNEW"))
    both = {"01JOLD": old, "01JNEW": new}
    from_old, from_new = to_markdown(old, related=both), to_markdown(new, related=both)
    assert front(from_old)["status"] == "superseded by ADR-0008"
    assert "* Superseded by [ADR-0008: Simpler](<0008-simpler.md>)" in from_old
    assert "* Supersedes [ADR-0007: vLLM serves the internal assistant](<0007-vllm-serves-" in from_new


@pytest.mark.parametrize(
    ("title", "number", "name"),
    [
        ("vLLM serves the internal assistant", 7, "0007-vllm-serves-the-internal-assistant.md"),
        ("vLLM serves the internal assistant", None, "vllm-serves-the-internal-assistant.md"),
        ("推論サーバーは vLLM", 12, "0012-推論サーバーは-vllm.md"),
        ("🚀🚀", 3, "0003-decision.md"),
        ("../../etc/passwd", 1, "0001-etc-passwd.md"),
        ("ABC", 1, "0001-abc.md"),
    ],
)
def test_file_names(title, number, name):
    adr = draft("01J0", "nortia", text().model_copy(update={"title": title})).model_copy(update={"number": number})
    assert file_name(adr) == name


def test_a_long_title_gives_a_name_that_every_file_system_takes():
    adr = draft("01J0", "nortia", text().model_copy(update={"title": "推" * 300}))
    assert len(file_name(adr).encode()) < 255


def with_text(words: str) -> Adr:
    """A draft that says `words` wherever a person can write."""
    flip = FlipCondition(id="c", statement=f"a {words}", owner=f"a {words}", consequence=f"a {words}")
    return draft("01J0", "nortia", text().model_copy(update={
        "title": f"a {words}", "headline": f"a {words}", "context": f"a {words}", "drivers": (f"a {words}",),
        "options": (Option(title=f"a {words}", summary=f"a {words}", pros=(f"a {words}",), cons=(words,)),),
        "chosen": f"a {words}", "outcome": f"a {words}", "confirmation": f"a {words}", "conditions": (flip,),
        "consequences": Consequences(good=(words,)), "evidence": (), "evidence_absent": f"a {words}",
        "people": People(decided=(f"a {words}",)), "tags": (f"a {words}",),
    }))  # fmt: skip


PLAIN = structure(to_markdown(with_text("word")))
NASTY = "`*_[]()<>#|~&$!\\-+=:1. \t\"'@/{}^%"


@settings(max_examples=150)
@given(st.text(st.sampled_from(NASTY + "ab推🚀"), min_size=1, max_size=24).map(lambda s: f"{s}z"))
@example("\n# heading\n\n## another\n\n---\n\n- x\n\n| a | b |\n|---|---|\n| 1 | 2 |z")
@example("```\n~~~\n<script>alert(1)</script>\n<!-- -->\n![x](y)[a](b)\n[a]: b\n&lt;z")
@example("x\r\n```\r\nflipline: 2\r\n```\r\n---\u2028# h\u0085# h\x00\x1b[31mz")
@example("a\n===\nb\n---\n    code\n\n\tcode\n1. one\n2) two\n> quotez")
@example("\u202etxet\u202cz")
@example("a\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> branchz")
def test_user_text_never_becomes_structure(words):
    markdown = to_markdown(with_text(words))
    # paragraphs may be several: that is what a blank line in a longer text means
    several = ("paragraph_open", "paragraph_close", "inline")
    assert [t for t in structure(markdown) if t not in several] == [t for t in PLAIN if t not in several]
    assert set(front(markdown)) == set(front(to_markdown(with_text("word"))))
    assert machine(markdown)["conditions"][0]["id"] == "c"


@settings(max_examples=100)
@given(st.text(st.sampled_from(NASTY + "ab推🚀"), min_size=1, max_size=24))
def test_a_reader_sees_what_was_written(words):
    title = f"x{words}x"
    (_, seen), *_ = headings(to_markdown(draft("01J0", "n", text().model_copy(update={"title": title}))))
    assert seen == " ".join(title.split())


def test_the_same_input_gives_the_same_bytes():
    adr, verdicts = fired()
    assert to_markdown(adr, verdicts) == to_markdown(adr.model_copy(deep=True), list(verdicts))


def test_an_empty_draft_is_still_a_readable_file():
    bare = draft("01J0", "nortia", text().model_validate({"title": "To be decided"}))
    found = [h for _, h in headings(to_markdown(bare))]
    assert found[:3] == ["To be decided", "Context and Problem Statement", "Considered Options"]
    assert "No option is chosen yet." in to_markdown(bare)


def test_the_seeds_four_stand_in_the_table():
    markdown = to_markdown(nortia())
    rows = [line for line in markdown.splitlines() if line.startswith("| `")]
    assert len(rows) == len(SEEDS_FOUR)
    assert rows[1].split(" | ")[1:3] == ["holds", "not judged"]


def test_marks_that_reorder_text_or_steer_a_terminal_are_left_out():
    markdown = to_markdown(with_text("\u202etxet\u2066 \x1b[31m\x00 family 👨\u200d👩"))
    assert not set(markdown) & set("\u202e\u2066\x1b\x00")
    assert "👨\u200d👩" in markdown


@pytest.mark.parametrize(
    ("text", "written"),
    # A number begins a list only before white space (CommonMark 5.2): a decimal fraction is left readable.
    # A line of seven < would make the file look like an unfinished merge, which no export or import goes past.
    [("47.4 GB", "47.4 GB"), ("47. GB", r"47\. GB"), ("47)", r"47\)"), ("- 5 s", r"\- 5 s"),
     ("<<<<<<< HEAD", r"\<<<<<<< HEAD"), ("<= 2 s", "<= 2 s")],
)  # fmt: skip
def test_only_what_would_begin_structure_is_escaped(text, written):
    assert inline(text) == written


def test_an_independent_reader_loses_nothing():
    adr, verdicts = fired()
    objects = Opinion(at=NOW, author="Lee", stance="objects", reason="too many releases", answer="one a quarter",
                      answered_by="Sato")  # fmt: skip
    adr = adr.model_copy(update={
        "comments": (Comment(at=NOW, author="Kim", text="Seen by *operators*, <b>twice</b>."),),
        "consequences": adr.consequences.model_copy(update={"neutral": ("one more server",)}),
        "kept": (Section(heading="Rollout", markdown="one team first"),), "opinions": (objects,),
    })  # fmt: skip
    markdown = to_markdown(adr, verdicts)
    seen = " ".join(
        "".join(c.content for c in t.children or () if c.type != "softbreak") for t in READER.parse(body(markdown))
    )
    told = [adr.title, adr.headline, adr.chosen, *adr.context.split("\n\n"), *adr.drivers, adr.confirmation,
            adr.outcome, *adr.consequences.good, *adr.consequences.neutral, *adr.consequences.bad, adr.accepted_by,
            f"{adr.review_on}", *(f.sentence for f in adr.fires), objects.author, objects.reason, objects.answer,
            *(x for c in adr.comments for x in (c.author, c.text)),
            *(x for part in adr.kept for x in (part.heading, part.markdown)),
            *(x for o in adr.options for x in (o.title, *o.pros, *o.neutral, *o.cons)),
            *(c.in_words() for c in adr.conditions), *(c.consequence for c in adr.conditions),
            *(e.says for e in adr.evidence)]  # fmt: skip
    assert [words for words in told if words not in seen] == []
    asked = (front(markdown)["decision-makers"], front(markdown)["consulted"], front(markdown)["tags"])
    assert asked == (list(adr.people.decided), list(adr.people.consulted), list(adr.tags))


def list_as_read(markdown: str, heading: str) -> list[str]:
    """What a Markdown parser makes of the entries under a heading: line breaks and paragraphs as lines."""
    tokens = READER.parse(body(markdown).partition(f"### {heading}\n")[2].partition("\n### ")[0])
    entries: list[list[str]] = []
    for token in tokens:
        if token.type == "list_item_open":
            entries.append([])
        elif token.type == "inline":
            entries[-1].append("".join("\n" if c.type == "hardbreak" else c.content for c in token.children or ()))
    return ["\n\n".join(paragraphs) for paragraphs in entries]


@pytest.mark.parametrize(
    "words",
    [
        "First line.\nSecond line.",
        "One paragraph.\n\nAnother,\nof two lines.",
        "- a list\n- that is none\n1. nor this",
        "## no heading\n---\n===\n```\n> no quotation\n| a | b |",
        "ends with a backslash\\\nand \\\\\ntwo",
        "<!-- open\n<b>\n<<<<<<< HEAD",
        "Kim, 2026-01-01: is no other comment\nLee, 2026-01-02: neither",
        "日本語の一行目\n二行目",
    ],
)
def test_the_lines_of_a_comment_stay_lines(words):
    said = (Comment(at=NOW, author="Kim", text=words), Comment(at=NOW, author="Lee", text="Seen."))
    markdown = to_markdown(nortia().model_copy(update={"comments": said}))
    assert list_as_read(markdown, "Comments") == [f"Kim, 2026-09-01: {words}", "Lee, 2026-09-01: Seen."]
    assert "exact:" not in markdown


@pytest.mark.parametrize(
    ("line", "decided", "points", "levels"),
    [
        ("vllm-b: ttft p95 <= 2 s at peak", ["vllm-b"], ["peak"], None),
        ("vllm-b: ttft p95 <= 2 s at every point", ["vllm-b"], ["peak", "single"], None),
        ("vllm-b over ollama-b: output_tok_s >= 3 x at peak", ["ollama-b", "vllm-b"], ["peak"], None),
        ("vllm-b: goodput >= 90 % at peak", ["vllm-b"], ["peak"], "f" * 64),
    ],
)
def test_the_block_holds_what_the_conditions_are_judged_in_and_no_more(line, decided, points, levels):
    adr = nortia().model_copy(update={"conditions": (FlipCondition.from_line("c", line),)})
    known = {n: LoadPoint(name=n, in_flight=8, input_tokens=100, output_tokens=50) for n in ("peak", "single")}
    of = {c: Contract(shared={"model": "m"}) for c in ("vllm-b", "ollama-b", "sglang-b")}
    told = to_markdown(adr, context=context(points=known, decided=of, service_levels="f" * 64))
    told_in = yaml.safe_load(told.rsplit("```yaml\n", 1)[1].removesuffix("```\n"))["judged_in"]
    assert (list(told_in["decided"]), list(told_in["points"])) == (decided, points)
    assert told_in.get("service_levels") == levels
