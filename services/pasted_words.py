"""Headings of a sheet: what a column holds, by the words that people write in English and Japanese.

A heading is words for what, a statistic, perhaps which end of a spread over repeats, and a unit: "TTFT p95 max [s]".
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from planner.metrics import METRICS, Level
from services.pasted_numbers import UNIT_WORDS, tidy

Spread = Literal["", "min", "mean", "max"]
# What a column can hold besides figures.
ROLES: dict[str, str] = {
    "candidate": "candidate", "load_point": "load point", "in_flight": "requests in flight",
    "rate_per_s": "offered rate", "input_tokens": "input tokens", "output_tokens": "output tokens",
    "n": "number of requests", "start": "start of the engine", "repeat": "repeat within a start",
    "at": "when it ran",
}  # fmt: skip
WHOLE = ("in_flight", "input_tokens", "output_tokens", "n", "start", "repeat")
LEFT_OUT = "left out"
UNITS_BY_HAND = ("ms", "s", "min", "tok/s", "req/s", "req/min", "%", "share", "tokens", "x")
_TOK_S, _REQ_S = "tok/s", "req/s"


class _Words(NamedTuple):
    """A column's words, the unit that tells it from others of the same words, and what it holds."""

    pattern: str
    holds: str
    unit: str = ""
    why: str = ""


# The first row that fits counts.
_TABLE: tuple[_Words, ...] = (
    _Words(r"total (tokens? )?throughput|total tokens?", LEFT_OUT, _TOK_S, "it counts prompt tokens too"),
    _Words(r"(user )?(speed|tokens?|throughput)?( ?/ ?| )?per (user|request|stream)( speed)?|user (speed|tok s)|"
           r"(1 ?)?(ユーザー?|人|リクエスト)(あたり|当たり|ごと)の?(速度|スループット)?", "user_tok_s", _TOK_S),
    _Words(r"(system |aggregate |output |generation |decode )*(tokens? )?(throughput|speed)|"
           r"(in )?total( output)?|aggregate|output( tokens?)?|generation|"
           r"(合計|全体|総|出力)の?(出力|生成)?(トークン)?(スループット|速度)?", "output_tok_s", _TOK_S),
    _Words(r"request throughput|completed requests?", "request_rate", _REQ_S),
    _Words(r"(ttft|time to first token|first token( latency| time)?|(最初|初回|先頭)の?トークン(まで|遅延|の?時間)*)",
           "ttft_ms"),
    _Words(r"tpot|time per output token|(1 ?)?トークン(あたり|当たり)の?時間", "tpot_ms"),
    _Words(r"itl|inter ?token latency|tokens? gap|gap between tokens|トークン間(隔|遅延|の?時間)*", "itl_ms"),
    _Words(r"e2e ?l?( latency)?|end to end( latency)?|total latency|"
           r"(全体の?|エンドツーエンド)?(応答時間|遅延)", "e2e_ms"),
    _Words(r"goodput|グッドプット", "goodput"),
    _Words(r"error (rate|share)|errors?|failure rate|(エラー|失敗)率", "error_share"),
    _Words(r"completed( share)?|success rate|(成功|完了)率", "completed_share"),
    _Words(r"pass rate|合格率", "pass_rate"),
    _Words(r"startup( time)?|start up( time)?|load time|起動時間", "startup_s"),
    _Words(r"started|starts up|起動可否", "started"),
    _Words(r"kv (cache )?(capacity|size)|kvキャッシュ(容量|サイズ)", "kv_capacity_tokens"),
    _Words(r"kv (cache )?(use|usage)|kvキャッシュ使用率", "kv_use"),
    _Words(r"preemptions?|プリエンプション(回数)?", "preemptions"),
    _Words(r"oom|out of memory|メモリー?不足", "oom"),
    _Words(r"restarts?|再起動(回数)?", "restarts"),
    _Words(r"prefix (cache )?hits?( rate)?|プレフィックス(キャッシュ)?ヒット率", "prefix_hit"),
    _Words(r"candidate|engine|server|framework|backend|候補|エンジン|サーバー?", "candidate"),
    _Words(r"load ?point|point|scenario|負荷点|シナリオ", "load_point"),
    _Words(r"(request |arrival |offered )?rate|到着率|リクエスト(率|レート)", "rate_per_s"),
    _Words(r"in ?flight|(max )?concurrency|concurrent( users?| requests?)?|parallel(ism)?|(simultaneous )?users?|"
           r"clients?|batch( size)?|(同時|並列)(実行|接続|リクエスト|ユーザー?)?(数|度)?", "in_flight"),
    _Words(r"(input|prompt|context)( length| len| tokens?)*|isl|"
           r"(入力|プロンプト)(長|トークン)?(数|長)?", "input_tokens"),
    _Words(r"(output|answer|completion|generated)( length| len| tokens?)*|osl|(出力|生成|回答)(長|トークン)?(数|長)?",
           "output_tokens"),
    _Words(r"n|num(ber of)? (prompts|requests)|requests?( n)?|samples?|(リクエスト|サンプル|件)数?", "n"),
    _Words(r"(engine )?start( no)?|boot|起動(回|番号)", "start"),
    _Words(r"repeat( no)?|repetition|run( no)?|trial|iteration|(繰り?返し|反復|試行)(回|番号)?|回", "repeat"),
    _Words(r"date|day|when|time(stamp)?|measured( at)?|(日付|日時|測定日|計測日)", "at"),
)  # fmt: skip
_WHICH = {_TOK_S: "per user, or in total?", _REQ_S: "offered, or completed?"}
_STATISTICS = {
    **{f"p{q}": f"p{q}" for q in (5, 50, 90, 95, 99)}, "median": "p50", "中央値": "p50", "mean": "mean",
    "avg": "mean", "average": "mean", "平均": "mean", "max": "max", "maximum": "max", "最大": "max", "min": "min",
    "minimum": "min", "最小": "min",
}  # fmt: skip
_OF_ITS_OWN = ("ms", "s", _TOK_S, _REQ_S, "req/min", "%")  # 'min' and 'tokens' may be words of the heading
_PERCENTILE = re.compile(r"(?:p ?)?(\d{1,2})(?:th|st|rd)? ?(?:percentile|%ile|パーセンタイル(?:値)?)")
_GLUED = re.compile("(" + "|".join(w for w in _STATISTICS if not w.isascii()) + ")")  # Japanese has no blanks


class Heading(NamedTuple):
    """What a column holds: a role, `METRIC STATISTIC`, or left out; `why` says what is missing to understand it."""

    holds: str
    unit: str = ""
    spread: Spread = ""
    why: str = ""

    @property
    def figure(self) -> tuple[str, str] | None:
        """Metric and statistic of a column with figures."""
        metric, _, statistic = self.holds.partition(" ")
        return (metric, statistic) if metric in METRICS and statistic else None


def meanings() -> dict[str, str]:
    """Everything that a column can be said to hold by hand, with its words."""
    figures = {
        f"{m.id} {s}": f"{m.name} {s}".removesuffix(" value")
        for m in METRICS.values()
        if m.level not in (Level.DEMAND, Level.STATIC)
        for s in m.statistics
    }
    return {LEFT_OUT: LEFT_OUT, **ROLES, **figures}


def heading(text: str) -> Heading:
    """Read a heading; one that is not understood is left out with the reason."""
    words, unit = _unit_of(tidy(text).lower())
    words = _PERCENTILE.sub(r" p\1 ", words)
    words = _GLUED.sub(r" \1 ", words)
    parts = re.sub(r"[_\-:,.()\[\]|·]+", " ", words).split()
    found = [_STATISTICS[p] for p in parts if p in _STATISTICS]
    phrase = " ".join(p for p in parts if p not in _STATISTICS)
    base = UNIT_WORDS[unit][0] if unit else ""
    row = next((w for w in _TABLE if (not w.unit or w.unit == base) and re.fullmatch(w.pattern, phrase)), None)
    if row is None:
        return Heading(LEFT_OUT, unit, why=_unknown(phrase, base))
    if row.holds in ROLES or row.holds == LEFT_OUT:
        return Heading(row.holds, unit, why=row.why)
    return _figure(row.holds, unit, found)


def _unknown(phrase: str, base: str) -> str:
    if base in _WHICH:
        return _WHICH[base]
    return f"{phrase!r} is no heading that is known here" if phrase else "it names nothing that was measured"


def _figure(metric: str, unit: str, found: list[str]) -> Heading:
    """Put statistics in their places: the metric's own comes first, what follows it is of the repeats."""
    own = METRICS[metric].statistics
    if own == ("value",):
        statistic, rest = "value", found
    elif not found:
        return Heading(LEFT_OUT, unit, why=f"which statistic of {METRICS[metric].name}: {', '.join(own)}?")
    else:
        first = next((f for f in found if f.startswith("p")), found[0])
        statistic, rest = first, [f for f in found if f != first]
    ends = {"min": "min", "mean": "mean", "p50": "mean", "max": "max"}
    if statistic not in own or len(rest) > 1 or any(r not in ends for r in rest):
        return Heading(LEFT_OUT, unit, why=f"{METRICS[metric].name} has the statistics {', '.join(own)}")
    spread: Spread = ends[rest[0]] if rest else ""  # type: ignore[assignment]
    return Heading(f"{metric} {statistic}", unit, spread)


def _unit_of(text: str) -> tuple[str, str]:
    """The heading without its unit, and the unit: what stands in brackets, or a word of its own."""
    for bracketed in re.findall(r"[\[(]([^\])]*)[\])]", text):
        if bracketed.strip() in UNIT_WORDS:
            return re.sub(rf"[\[(]{re.escape(bracketed)}[\])]", " ", text), bracketed.strip()
    words = re.split(r"([\s_,:]+)", text)
    for i in range(len(words) - 1, -1, -1):
        if UNIT_WORDS.get(words[i], ("", 1.0))[0] in _OF_ITS_OWN:
            return "".join(words[:i] + words[i + 1 :]), words[i]
    return text, ""
