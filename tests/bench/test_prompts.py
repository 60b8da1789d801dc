"""Prompts have the asked length, are new in each repeat, and share what they should share."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.bundling import Job
from bench.emulator import Emulator
from bench.emulator.settings import TEMPLATE_TOKENS, count_tokens
from bench.inputs import PlanInputs, local_counter
from bench.job import JobRun
from bench.progress import Reporter
from bench.prompts import NONCE_WORDS, WORDS, PromptMaker, Vocabulary, learn_vocabulary
from bundle.records import Record, read_records
from planner.errors import InputError, ServerError
from tests.bench.answering import run_answered
from tests.bench.helpers import FAST, candidate, only_bundle, plan, point, with_emulator


def learn(count: object) -> Vocabulary:
    async def counter(text: str) -> int:
        assert callable(count)
        return int(count(text))

    return asyncio.run(learn_vocabulary(counter))


def coarse(text: str) -> int:
    """A tokenizer that knows little: a token per three letters, six for the template."""
    return 6 + sum((len(w) + 2) // 3 for w in text.split())


def maker(vocabulary: Vocabulary, *, salt: str = "s", spell: bool = True, shared: float = 0.0) -> PromptMaker:
    return PromptMaker(vocabulary, seed=1, salt=salt, spell_salt=spell, shared_prefix=shared)


EASY = learn(count_tokens)
COARSE = learn(coarse)


def test_two_questions_are_enough_where_every_word_is_one_token() -> None:
    asked = []
    found = learn(lambda text: asked.append(text) or count_tokens(text))
    assert len(asked) == 2
    assert found.base == TEMPLATE_TOKENS + 1  # the template and the lead word


def test_each_word_is_measured_where_words_cost_more() -> None:
    assert COARSE.cost["time"] == 2  # four letters
    assert COARSE.cost["day"] == 1
    assert COARSE.base == 6 + 2  # "Note:" has five characters


@given(tokens=st.integers(min_value=9, max_value=600), index=st.integers(min_value=0, max_value=50))
@settings(max_examples=60)
def test_the_server_counts_what_was_asked_for(tokens: int, index: int) -> None:
    for vocabulary, count in ((EASY, count_tokens), (COARSE, coarse)):
        for shared in (0.0, 0.5):
            prompt = maker(vocabulary, shared=shared).make("load", index, tokens)
            assert prompt.tokens == count(prompt.text) == tokens


def test_a_length_below_the_template_gives_the_shortest_prompt_and_says_its_length() -> None:
    prompt = maker(EASY).make("load", 0, 2)
    assert prompt.tokens == count_tokens(prompt.text) == TEMPLATE_TOKENS + 1


def shared_words(a: str, b: str) -> int:
    x, y = a.split(), b.split()
    return next((i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))


def test_prompts_of_a_repeat_share_nothing_that_a_cache_could_use() -> None:
    texts = [maker(EASY).make("load", i, 200).text for i in range(100)]
    longest = max(shared_words(a, b) for i, a in enumerate(texts) for b in texts[:i])
    assert longest < 8  # vLLM's smallest cached piece is 16 tokens
    assert len(set(texts)) == 100


def test_another_repeat_has_another_salt_at_the_very_start_and_the_same_words_after_it() -> None:
    first, second = (maker(EASY, salt=s).make("load", 3, 200).text for s in ("one", "two"))
    assert shared_words(first, second) < 4
    assert first.split()[1 + NONCE_WORDS :] == second.split()[1 + NONCE_WORDS :]


def test_with_a_salt_field_in_the_api_the_texts_stay_the_same() -> None:
    first, second = (maker(EASY, salt=s, spell=False).make("load", 3, 200).text for s in ("one", "two"))
    assert first == second


def test_warm_up_uses_other_prompts() -> None:
    m = maker(EASY, spell=False)
    assert not {m.make("load", i, 100).text for i in range(20)} & {m.make("warmup", i, 100).text for i in range(20)}


@pytest.mark.parametrize(("share", "spell"), [(0.9, True), (0.9, False), (0.25, True), (0.25, False)])
def test_a_shared_prefix_has_the_asked_length(share: float, spell: bool) -> None:
    m = maker(EASY, shared=share, spell=spell)
    a, b = m.make("load", 1, 405).text, m.make("load", 2, 405).text
    # 405 tokens less 5 of template and lead leave 400; by chance the next word or two may agree as well.
    assert 400 * share <= shared_words(a, b) - 1 <= 400 * share + 3


@pytest.mark.parametrize("spell", [True, False])
def test_prompts_of_different_lengths_share_the_shorter_ones_prefix(spell: bool) -> None:
    m = maker(EASY, shared=0.5, spell=spell)
    short, long = m.make("load", 0, 205).text, m.make("load", 1, 1005).text
    assert 100 <= shared_words(short, long) - 1 <= 103  # half of the 200 that template and lead leave


def test_own_prompts_that_begin_alike_still_do_behind_the_nonce_of_the_repeat() -> None:
    texts = [maker(EASY, shared=0.5).own(f"You are a clerk. Question {i}", "load", i).text for i in range(5)]
    assert len({t.partition("Question")[0] for t in texts}) == 1  # what a cache can use, as with a salt in the API
    assert texts[0] != maker(EASY, shared=0.5, salt="other").own("You are a clerk. Question 0", "load", 0).text


def test_a_server_on_which_no_word_costs_one_token_is_refused() -> None:
    with pytest.raises(ServerError, match="lengths cannot be set"):
        learn(lambda text: 5 * len(text.split()))


def test_words_are_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS) >= 64


def test_own_prompts_stand_whole_behind_a_nonce_that_no_other_request_has() -> None:
    texts = [maker(EASY).own("Why is the sky blue?", "load", i).text for i in range(20)]
    assert all(t.endswith("\n\nWhy is the sky blue?") for t in texts)
    assert len(set(texts)) == 20
    assert maker(EASY, spell=False).own("Why?", "load", 0).text == "Why?"  # the API has a field for the salt


def stand_in_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `tokenizers` that counts a token per letter."""

    class Tokenizer:
        @staticmethod
        def from_file(path: str) -> Tokenizer:
            if Path(path).read_text() != "{}":
                raise Exception("expected value at line 1 column 1")
            return Tokenizer()

        def encode(self, text: str, *, add_special_tokens: bool) -> SimpleNamespace:
            return SimpleNamespace(ids=list(text), special=add_special_tokens)

    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))


def test_a_local_tokenizer_counts_the_text_and_nothing_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_tokenizers(monkeypatch)
    (tmp_path / "tokenizer.json").write_text("{}")
    assert local_counter(tmp_path)("four") == 4


def test_a_plans_tokenizer_folder_counts_the_prompts_that_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Words:
        """As many tokens as the server of this test counts, without its template."""

        @staticmethod
        def from_file(path: str) -> Words:
            assert path == str(tmp_path / "model" / "tokenizer.json")
            return Words()

        def encode(self, text: str, *, add_special_tokens: bool) -> SimpleNamespace:
            counted.append(text)
            return SimpleNamespace(ids=text.split())

    counted: list[str] = []
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Words))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    small = point("small", input_tokens=57, requests=2, warmup_requests=0)
    result, bodies = run_answered(lambda b: ["w "] * b["max_tokens"], tmp_path / "out", tmp_path, points=[small],
                                  tokenizer_dir="model")  # fmt: skip
    _, records = only_bundle(result)
    assert {r.prompt_tokens for r in records} == {57}
    assert len(counted) > 1
    assert sum(not b.get("stream") for b in bodies) == 1  # the server is asked once, for its template


def test_a_local_tokenizer_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"holds no tokenizer\.json"):
        local_counter(tmp_path)
    (tmp_path / "tokenizer.json").write_text("broken")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError, match="needs the Python package tokenizers, which is not installed"):
        local_counter(tmp_path)
    stand_in_tokenizers(monkeypatch)
    with pytest.raises(InputError, match="is not a tokenizer: expected value"):
        local_counter(tmp_path)


def test_lengths_by_a_local_tokenizer_are_exact_on_the_server(tmp_path: Path) -> None:
    # The server counts words; so does the local tokenizer, without the template that usage shows once.
    async def go(emulator: Emulator) -> list[Record]:
        made = plan(candidate(emulator.port, engine="openai"), points=[point(input_tokens=57)])
        inputs = PlanInputs({}, lambda text: count_tokens(text) - TEMPLATE_TOKENS)
        job = Job(made.candidates[0], made.stages[0], 1)
        reporter = Reporter(tmp_path, 6, bar=False)
        out = tmp_path / "bundle"
        out.mkdir()
        await JobRun(made, job, job.candidate.launch, out, reporter, asyncio.Event(), [], inputs=inputs).run()
        return read_records(out / "parallel-2-1.records.parquet")

    records = with_emulator(FAST, go)
    assert {r.prompt_tokens for r in records} == {57}
