"""Decision files in the shapes that repositories hold, written for the tests: MADR 2 to 4, Nygard, and what people do.

Each is a name, its bytes, and what a reader must find. The shapes follow the templates of adr/madr 2.1.2, 3.0.0 and
4.0.0 and of npryce/adr-tools; the words are ours.
"""

from __future__ import annotations

from datetime import date
from typing import Any, NamedTuple

from decisions.record import Status


class Shape(NamedTuple):
    """A file and what it says; `fields` are those of AdrText that matter, `kept` the headings that are kept."""

    name: str
    body: bytes
    status: Status
    day: date | None = None
    fields: dict[str, Any] = {}
    kept: tuple[str, ...] = ()


NYGARD = b"""# 1. Record architecture decisions

Date: 2024-03-05

## Status

Accepted

## Context

We need to record the decisions made on this project.

## Decision

We will use records, as Michael Nygard described them.

## Consequences

See his article. Tools exist:

```sh
# Not a heading
adr new "Something"
```
"""

NYGARD_SUPERSEDED = b"""# 2. Keep sessions in memory

Date: 2024-03-06

## Status

Superceded by [3. Keep sessions in Redis](0003-keep-sessions-in-redis.md)

## Context

One server.

## Decision

Memory is enough.

## Consequences

Restarts lose sessions.
"""

NYGARD_SUPERSEDES = b"""# 3. Keep sessions in Redis

Date: 2024-04-01

## Status

Accepted

Supercedes [2. Keep sessions in memory](0002-keep-sessions-in-memory.md)

## Context

Two servers.

## Decision

Redis.

## Consequences

One more thing to run.
"""

MADR_2 = b"""# Use Markdown for the handbook

* Status: accepted
* Deciders: Ann, Bo
* Date: 2021-02-03

Technical Story: HB-12

## Context and Problem Statement

Which format do we write in?

## Decision Drivers <!-- optional -->

* plain text
* diffs that can be read

## Considered Options

* Markdown
* [AsciiDoc](https://asciidoctor.org)

## Decision Outcome

Chosen option: "Markdown", because everybody knows it.

### Positive Consequences <!-- optional -->

* no training

### Negative Consequences <!-- optional -->

* no footnotes

## Pros and Cons of the Options <!-- optional -->

### Markdown

[example | description](https://example.org)

* Good, because known
* Bad, because of dialects

### [AsciiDoc](https://asciidoctor.org)

* Good, because rich
* Bad, because rare

## Links

* Refines [ADR-0001](0001-record.md)
"""

MADR_3 = b"""---
status: accepted
date: 2023-01-09
deciders: [Ann, Bo]
consulted: Cy, Di
informed: everyone
---
# Use PostgreSQL

## Context and Problem Statement

Where do rows live?

## Considered Options

* PostgreSQL
* SQLite

## Decision Outcome

Chosen option: "PostgreSQL", because several write.

### Consequences

* Good, because several write
* Neutral, because it is known
* Bad, because it has to be run

## Validation

A load test each quarter.
"""

MADR_4 = b"""---
status: "superseded by ADR-0008"
date: 2024-11-05
decision-makers: Ann
---

# Cache answers

## Context and Problem Statement

Answers repeat.

## Considered Options

* A cache
* Nothing

## Decision Outcome

Chosen option: "A cache", because answers repeat.

### Confirmation

The hit rate is above one half.

## Rollout

1. one team
2. everybody

### Costs

None.

## More Information

Asked again in a year.
"""

MADR_4_SUCCESSOR = b"""---
status: accepted
date: 2025-01-02
tags: [cache, answers]
x-ticket: 77
---
# ADR-0008: Cache nothing

## Context and Problem Statement

The hit rate is one in a hundred.

## Considered Options

* A cache
* Nothing

## Decision Outcome

Chosen option: "Nothing", because nothing repeats.

## More Information

Supersedes ADR-0007.
"""

SETEXT = b"""Choose a queue
==============

Status
------

Proposed

Context
-------

Jobs wait.

Decision
--------

Not yet.
"""

JAPANESE = """---
status: 承認
date: 2025-04-01
---
# 推論サーバーは vLLM にする

## 背景と課題

二十人が同時に使う。

## 検討した選択肢

* vLLM
* Ollama

## 決定の結果

選んだ選択肢: 「vLLM」、理由: まとめて処理できる。
""".encode()

TOML_FRONT = b"""+++
status = "rejected"
date = 2022-05-06
+++
# Rewrite in another language

## Context

It is slow.

## Decision

No.
"""

TITLE_IN_FRONT = b"""---
title: "Freeze on Fridays: no releases"
status: deprecated
date: "2022-07-08"
decision-makers:
  - Ann
  - Bo
---

## Context and Problem Statement

Fridays hurt.

## Decision Outcome

No release on a Friday.
"""

OWN_TABLE = b"""# 12. Pick a region

## Status

Accepted on 2024-02-29, amended later
Proposed on 2024-02-01

## Context

| Region | Delay |
|---|---|
| A | 10 ms |

## Options Considered

~~~text
## not a heading either
~~~

## Decision

A.

## Consequences

- cheap
- Bad, because far
  from some users

### Positive

- near to most
"""

SHAPES: tuple[Shape, ...] = (
    Shape("0001-record-architecture-decisions.md", NYGARD, Status.ACCEPTED, date(2024, 3, 5), {
        "title": "Record architecture decisions",
        "context": "We need to record the decisions made on this project.",
        "outcome": "We will use records, as Michael Nygard described them."}, ("Also under Consequences",)),
    Shape("0002-keep-sessions-in-memory.md", NYGARD_SUPERSEDED, Status.SUPERSEDED, date(2024, 3, 6),
          {"title": "Keep sessions in memory"}, ("Status history",)),
    Shape("0003-keep-sessions-in-redis.md", NYGARD_SUPERSEDES, Status.ACCEPTED, date(2024, 4, 1),
          {"title": "Keep sessions in Redis"}, ("Status history",)),
    Shape("0004-use-markdown.md", MADR_2.replace(b"\n", b"\r\n"), Status.ACCEPTED, date(2021, 2, 3), {
        "title": "Use Markdown for the handbook", "drivers": ("plain text", "diffs that can be read"),
        "chosen": "Markdown", "outcome": "everybody knows it."}, ("Introduction", "Links")),
    Shape("0005-use-postgresql.md", MADR_3.rstrip(), Status.ACCEPTED, date(2023, 1, 9), {
        "confirmation": "A load test each quarter.", "chosen": "PostgreSQL"}),
    Shape("0007-cache-answers.md", b"\xef\xbb\xbf" + MADR_4, Status.SUPERSEDED, date(2024, 11, 5), {
        "chosen": "A cache", "confirmation": "The hit rate is above one half."},
        ("Rollout", "Also under More Information")),
    Shape("0008-cache-nothing.md", MADR_4_SUCCESSOR, Status.ACCEPTED, date(2025, 1, 2), {
        "title": "Cache nothing", "tags": ("cache", "answers")}, ("Also under More Information", "Front matter")),
    Shape("0009-queue.md", SETEXT, Status.PROPOSED, None, {"title": "Choose a queue", "context": "Jobs wait."}),
    Shape("0010-vllm.md", JAPANESE, Status.ACCEPTED, date(2025, 4, 1), {
        "title": "推論サーバーは vLLM にする", "chosen": "vLLM", "outcome": "まとめて処理できる。"}),
    Shape("0011-rewrite.md", TOML_FRONT, Status.REJECTED, date(2022, 5, 6), {"outcome": "No."}),
    Shape("0012-region.md", OWN_TABLE, Status.ACCEPTED, None, {
        "title": "Pick a region"}, ("Status history", "Also under Options Considered")),
    Shape("0013-freeze.md", TITLE_IN_FRONT, Status.DEPRECATED, date(2022, 7, 8), {
        "title": "Freeze on Fridays: no releases"}),
)  # fmt: skip
