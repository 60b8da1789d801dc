"""ShareGPT conversations: texts without times. Lengths are estimated from the texts, which are not kept.

A file is one JSON array of {"id": ..., "conversations": [{"from": "human" or "gpt", "value": text}, ...]}.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from planner.errors import InputError
from planner.traffic import Requests

# About four bytes of UTF-8 a token: four letters of English, one and a third characters of Japanese.
BYTES_PER_TOKEN = 4
FORM = 'Write [{"id": ..., "conversations": [{"from": "human", "value": ...}, {"from": "gpt", "value": ...}]}].'
ANSWERS = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard"})


class Talk(NamedTuple):
    """What was read: every answer is a request whose prompt is the conversation before it."""

    layout: str
    requests: Requests
    findings: tuple[str, ...]


def is_sharegpt(content: bytes) -> bool:
    """Whether a file is one JSON array: logs are CSV or an object a line."""
    return content[:100].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["


def read_sharegpt(name: str, content: bytes) -> Talk:
    """Estimated lengths of every turn; raises InputError for what are no conversations, or none with an answer."""
    prompts, answers, sessions, seen = array("q"), array("q"), array("q"), array("q")
    for number, turns in enumerate(_conversations(name, content)):
        before = known = 0
        for speaker, text in turns:
            tokens = -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
            if speaker in ANSWERS and before and tokens:
                for column, value in zip((prompts, answers, sessions, seen), (before, tokens, number, known),
                                         strict=True):  # fmt: skip
                    column.append(value)
                known = before + tokens
            before += tokens
    if not prompts:
        raise InputError("holds no conversation with a prompt and an answer.", where=name, fix=FORM)
    return Talk(
        "ShareGPT conversations",
        Requests(prompts, answers, session=sessions, seen_tokens=seen),
        (
            f"Lengths are estimated at {BYTES_PER_TOKEN} bytes of text a token: no tokenizer was asked.",
            "Conversations have no times: rates, bursts and requests in flight are not known.",
        ),
    )


def _conversations(name: str, content: bytes) -> Iterator[list[tuple[str, str]]]:
    """The turns of each conversation; one after the other, so that the parsed file is never in memory as a whole."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8.", where=name, fix="Save it as UTF-8.") from None
    decoder = json.JSONDecoder()
    place, number = _skip(text, text.index("[") + 1), 0
    while text[place : place + 1] != "]":
        number += 1
        try:
            found, place = decoder.raw_decode(text, place)
            yield [(str(t["from"]), str(t["value"])) for t in _turns(found)]
        except (json.JSONDecodeError, RecursionError, KeyError, TypeError, ValueError):
            raise InputError(f"conversation {number:,} cannot be read.", where=name, fix=FORM) from None
        place = _skip(text, place)


def _turns(found: Any) -> list[Any]:
    turns = found["conversations"] if "conversations" in found else found["items"]
    if not isinstance(turns, list):
        raise TypeError
    return turns


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    return place
