"""Prompts have the asked length, are new in each repeat, and share what they should share."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.admission import TEMPLATE_TOKENS, count_tokens
from bench.prompts import NONCE_WORDS, WORDS, PromptMaker, Vocabulary, learn_vocabulary
from planner.errors import ServerError


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
@settings(max_examples=60, deadline=None)
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


def test_a_server_on_which_no_word_costs_one_token_is_refused() -> None:
    with pytest.raises(ServerError, match="lengths cannot be set"):
        learn(lambda text: 5 * len(text.split()))


def test_words_are_distinct() -> None:
    assert len(set(WORDS)) == len(WORDS) >= 64
