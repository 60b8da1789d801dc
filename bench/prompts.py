"""Prompts of an exact token length that no cache has seen before, with a shared prefix on request.

Texts are drawn from short words whose cost in tokens is measured on the server first; lengths then add up without
asking again. The count is the whole prompt as the server sees it, chat template included (usage.prompt_tokens).
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench.schedule import seeded
from planner.errors import ServerError

Counter = Callable[[str], Awaitable[int]]

LEAD = "Note:"
_TEXT = (
    "time year day man world life hand part child eye place work week case point house water room mother area money "
    "story fact month lot right study book word side kind head friend father power hour game line end member law car "
    "city name team minute idea body back parent face level office door health art war party result change morning "
    "reason research girl guy food"
)
WORDS = tuple(_TEXT.split())
FILLERS = ("a", "I", "of", "to", "in", "x", "e", "s", "t", "n")
NONCE_WORDS = 8


class Vocabulary(NamedTuple):
    """Words with their cost in tokens, and the cost of a prompt that holds nothing but LEAD."""

    cost: dict[str, int]
    base: int

    @property
    def unit(self) -> str:
        """A word of one token, to fill up with."""
        return min(self.cost, key=lambda w: (self.cost[w], w))


class Prompt(NamedTuple):
    """A text and how many prompt tokens it is meant to have."""

    text: str
    tokens: int


async def learn_vocabulary(count: Counter) -> Vocabulary:
    """Measure the words on a server.

    When all words together cost one token each, that settles it with two questions; otherwise each word is asked.
    Raises ServerError when no word costs exactly one token, or counts do not add up.
    """
    base = await count(LEAD)
    if await count(_text(WORDS)) - base == len(WORDS):
        return Vocabulary(dict.fromkeys(WORDS, 1), base)
    cost = {}
    for word in (*FILLERS, *WORDS):
        fourfold = await count(_text([word] * 4)) - base
        if fourfold > 0 and fourfold % 4 == 0:
            cost[word] = fourfold // 4
    if 1 not in cost.values():
        raise ServerError("no word of ours costs one token on this server, so lengths cannot be set.",
                          fix="Check that the server counts prompt tokens (usage or /tokenize).")  # fmt: skip
    return Vocabulary(cost, base)


class PromptMaker:
    """Makes the prompts of one repeat.

    `seed` fixes the texts, `salt` makes them new: without a salt field in the API it is spelled as words at the very
    start of the prompt. With a shared prefix all prompts of a repeat begin with the same salt and prefix; the prefix of
    a short prompt begins that of a long one.
    """

    def __init__(self, vocabulary: Vocabulary, *, seed: int, salt: str, spell_salt: bool, shared_prefix: float) -> None:
        self._vocabulary = vocabulary
        self._words = sorted(vocabulary.cost)
        self._seed = seed
        self._salt = salt
        self._spell_salt = spell_salt
        self._shared = shared_prefix

    def make(self, cohort: str, index: int, tokens: int) -> Prompt:
        """The prompt of one request; a target below the chat template's own length gives the shortest prompt."""
        room = max(0, tokens - self._vocabulary.base)
        shared = round(room * self._shared) if self._shared else 0
        words: list[str] = []
        if self._spell_salt:
            own = () if shared else (cohort, index)
            nonce = min(room, NONCE_WORDS)
            words += self._fill(seeded("salt", self._salt, *own), nonce)
            room, shared = room - nonce, max(0, shared - nonce)
        if shared:
            words += self._fill(seeded("shared", self._seed), shared)
        words += self._fill(seeded("prompt", self._seed, cohort, index), room - shared)
        return Prompt(_text(words), self._vocabulary.base + sum(self._vocabulary.cost[w] for w in words))

    def own(self, text: str, cohort: str, index: int) -> Prompt:
        """A prompt from outside, behind a nonce where the API has no salt; how many tokens it has is not known.

        Each has its own nonce, so that nothing is shared; where a shared prefix is stated they begin alike already, and
        one nonce for all keeps it so, as a salt does.
        """
        if not self._spell_salt:
            return Prompt(text, 0)
        own = () if self._shared else (cohort, index)
        return Prompt(f"{_text(self._fill(seeded('salt', self._salt, *own), NONCE_WORDS))}\n\n{text}", 0)

    def _fill(self, rng: random.Random, tokens: int) -> list[str]:
        cost, unit = self._vocabulary.cost, self._vocabulary.unit
        words: list[str] = []
        while tokens > 0:
            word = rng.choice(self._words)
            word = word if cost[word] <= tokens else unit
            words.append(word)
            tokens -= cost[word]
        return words


def _text(words: list[str] | tuple[str, ...]) -> str:
    return " ".join((LEAD, *words))
