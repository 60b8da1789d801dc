"""The words of a decision file: MADR's headings in English, their Japanese, and what other templates call the same."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from decisions.record import Status

Language = Literal["en", "ja"]


class Words(NamedTuple):
    """Headings and fixed phrases of one language; the English headings are those of MADR 4.0.0 exactly."""

    context: str
    drivers: str
    options: str
    outcome: str
    consequences: str
    confirmation: str
    sizing: str
    pros: str
    more: str
    conditions: str
    evidence: str
    opinions: str
    approves: str
    objects: str
    answered: str
    comments: str
    machine: str
    good: str
    neutral: str
    bad: str
    chosen: str
    because: str
    stop: str
    accepted: str
    review: str
    supersedes: str
    superseded_by: str
    columns: tuple[str, ...]
    not_written: str
    no_options: str
    not_chosen: str
    computed: str
    formula: str
    assumes: str
    known_error: str
    no_condition: str
    waiting: str
    no_evidence: str
    run: str
    for_machines: str


WORDS: dict[Language, Words] = {
    "en": Words(
        context="Context and Problem Statement", drivers="Decision Drivers", options="Considered Options",
        outcome="Decision Outcome", consequences="Consequences", confirmation="Confirmation", sizing="Sizing",
        pros="Pros and Cons of the Options", more="More Information", conditions="What would change this decision",
        evidence="Evidence", opinions="Approvals and objections", approves="approves", objects="objects",
        answered="{who} answers", comments="Comments", machine="For machines", good="Good, because ",
        neutral="Neutral, because ", bad="Bad, because ", chosen='Chosen option: "', because='", because ', stop=".",
        accepted="Accepted by {who} on {day}.", review="To be reviewed by {day}.", supersedes="Supersedes",
        superseded_by="Superseded by",
        columns=("Condition", "Fires when it", "State", "Room left", "Owner", "Re-check", "Then"),
        not_written="Not written yet.", no_options="None listed yet.", not_chosen="No option is chosen yet.",
        computed="Computed before anything was measured; each figure with how it came about.", formula="formula: ",
        assumes="assumes: ", known_error="known error: ", no_condition="No flip condition was written down.",
        waiting="Fired, and waiting for a person's answer:", no_evidence="No evidence is attached.", run="run",
        for_machines="The part that tools read. The head is the hash of the last edit: keep it, and a later cut of the "
        "log is found.",
    ),
    "ja": Words(
        context="背景と課題", drivers="決定の要因", options="検討した選択肢", outcome="決定の結果",
        consequences="影響", confirmation="確認方法", sizing="規模の見積もり", pros="選択肢の長所と短所",
        more="補足情報", conditions="この決定を覆す条件", evidence="根拠", opinions="承認と異議",
        approves="承認", objects="異議", answered="{who} の回答", comments="コメント", machine="機械向け",
        good="良い点: ", neutral="どちらでもない点: ", bad="悪い点: ", chosen="選んだ選択肢: 「",
        because="」、理由: ", stop="。", accepted="{day} に {who} が承認。", review="{day} までに見直す。",
        supersedes="置き換える決定:", superseded_by="置き換えた決定:",
        columns=("条件", "発火する側", "状態", "残りの余裕", "担当", "再確認日", "そのときの対応"),
        not_written="未記入。", no_options="選択肢はまだない。", not_chosen="まだ選ばれていない。",
        computed="測定の前に計算した値。それぞれに求め方を添える。", formula="式: ", assumes="仮定: ",
        known_error="既知の誤差: ", no_condition="覆す条件は書かれていない。",
        waiting="発火し、人の判断を待っている:", no_evidence="根拠は添えられていない。", run="実行",
        for_machines="道具が読む部分。head は最後の編集のハッシュ。控えておけば、記録の末尾が切られても分かる。",
    ),
}  # fmt: skip

# What MADR 2 to 4, Nygard and common variants call a part, lower case, by the field that takes it.
_ALIASES: dict[str, tuple[str, ...]] = {
    "context": ("context", "problem statement", "context and problem", "background"),
    "drivers": ("drivers", "forces"),
    "options": ("options", "options considered", "considered alternatives", "alternatives"),
    "outcome": ("decision", "outcome"),
    "consequences": ("implications",),
    "good": ("positive consequences", "positive", "pros"),
    "bad": ("negative consequences", "negative", "cons"),
    "neutral": ("neutral consequences", "neutral"),
    "confirmation": ("validation",),
    "pros": ("pros and cons",),
    "links": ("links", "related decisions", "related"),
    "status": ("status", "状態"),
    "date": ("date",),
}
# Understood only in a file that we wrote.
_OURS = ("sizing", "conditions", "evidence", "opinions", "comments", "machine")
PARTS: dict[str, str] = {
    **{name: part for part, names in _ALIASES.items() for name in names},
    **{
        getattr(words, part).casefold(): part
        for words in WORDS.values()
        for part in ("context", "drivers", "options", "outcome", "consequences", "confirmation", "pros", "more", *_OURS)
    },
}

_STATUSES: tuple[tuple[Status, str], ...] = (
    (Status.SUPERSEDED, r"super[sc]eded|replaced|obsoleted by|置き換え|置換"),
    (Status.DEPRECATED, r"deprecated|obsolete|retired|withdrawn|廃止|非推奨"),
    (Status.REJECTED, r"rejected|declined|denied|abandoned|却下"),
    (Status.PROPOSED, r"proposed|pending|draft|open|in progress|under (?:review|discussion)|提案|検討中"),
    (Status.ACCEPTED, r"accepted|approved|adopted|decided|done|implemented|active|承認|採択|採用"),
)


def part_of(heading: str, *, ours: bool) -> str | None:
    """The part that a heading names, whatever the capitals, numbering or closing punctuation; None for another."""
    bare = re.sub(r"<!--.*?-->|^[\d.]+\s+", "", heading).strip().strip("*_: ")
    part = PARTS.get(bare.casefold())
    return None if part in _OURS and not ours else part


def status_of(words: str) -> Status | None:
    """The status that the first telling words name; None when none does."""
    found = [(m.start(), s) for s, pattern in _STATUSES if (m := re.search(pattern, words, re.IGNORECASE))]
    return min(found, key=lambda f: f[0])[1] if found else None
