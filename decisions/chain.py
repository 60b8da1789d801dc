"""A hash chain over the edits of one ADR: each link covers the one before.

It finds changes, removals inside, re-ordering and insertions. A cut-off tail, a well-formed addition and a record that
was written anew from some edit on are found only against a head hash that was kept elsewhere: every export prints it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

GENESIS = "0" * 64


class Entry(NamedTuple):
    """One link: `body` is the exact stored text, the canonical JSON of an edit; `seq` counts from 1."""

    adr: str
    seq: int
    body: str
    prev: str
    hash: str


class Broken(NamedTuple):
    """The first link that does not fit, and why."""

    adr: str
    seq: int
    why: str

    def __str__(self) -> str:
        """Read as one sentence."""
        return f"{self.adr}, edit {self.seq}: {self.why}"


def link_hash(prev: str, adr: str, seq: int, body: str) -> str:
    """Hex SHA-256 of previous hash, ADR id, sequence number and body, a line each."""
    return hashlib.sha256(f"{prev}\n{adr}\n{seq}\n{body}".encode()).hexdigest()


def link(adr: str, body: str, last: Entry | None = None) -> Entry:
    """The next link after `last`, or the first of a chain."""
    prev, seq = (last.hash, last.seq + 1) if last else (GENESIS, 1)
    return Entry(adr, seq, body, prev, link_hash(prev, adr, seq, body))


def head(entries: Iterable[Entry]) -> str:
    """The hash of the last link; GENESIS for an empty chain."""
    last = GENESIS
    for entry in entries:
        last = entry.hash
    return last


def verify(entries: Iterable[Entry], *, known_head: str | None = None, nothing_after: bool = False) -> Broken | None:
    """The first broken link of one ADR's chain in stored order, or None when it is whole.

    With `known_head` (from an export) a cut-off tail is found too: that head must be one of the links. With
    `nothing_after` it must be the last one, so that an addition is found as well, a well-formed one included.
    """
    prev, seq, adr, seen = GENESIS, 0, None, {GENESIS: 0}
    for entry in entries:
        seq += 1
        adr = adr or entry.adr
        if entry.adr != adr:
            return Broken(adr, seq, f"belongs to another ADR, {entry.adr}.")
        if entry.seq != seq:
            return Broken(adr, seq, f"is missing or out of order: number {entry.seq} stands in its place.")
        if entry.prev != prev:
            return Broken(adr, seq, "does not follow the edit before it.")
        if entry.hash != link_hash(prev, adr, seq, entry.body):
            return Broken(adr, seq, "was changed after it was written.")
        prev = entry.hash
        seen[prev] = seq
    if known_head is not None and known_head not in seen:
        return Broken(adr or "", seq + 1, f"is missing: the known head {known_head[:12]} is not in the log.")
    if nothing_after and known_head is not None and seen[known_head] != seq:
        return Broken(adr or "", seen[known_head] + 1, f"was added after the known head {known_head[:12]}.")
    return None
