"""Words for people where the domain has short names: criteria, gates, ratings, metrics and roles."""

from __future__ import annotations

import re
from typing import NamedTuple

from planner.criterion_names import criterion_name, with_names
from planner.metrics import METRICS as OF_METRIC
from planner.metrics import quantity
from ui.text import t

RATINGS: tuple[str, ...] = ("○○○ none", "●○○ limited", "●●○ good", "●●● excellent")
GATES: dict[str, str] = {
    "gpu and precision": "GPU and precision",
    "api": "API",
    "licence": "Licence",
    "maintained": "Maintained",
    "operating system": "Operating system",
    "air gap": "Air gap",
}
METRICS: dict[str, str] = {
    "ttft": "TTFT",
    "ttft_service": "TTFT from the send",
    "itl": "gap between tokens",
    "itl_quiet": "gap between tokens, undisturbed",
    "itl_disturbed": "gap between tokens, disturbed",
    "tpot": "time per token",
    "user_tok_s": "speed per user",
    "e2e": "answer complete",
    "output_tok_s": "total output",
    "request_rate": "requests done",
    "error_share": "errors",
    "completed_share": "completed",
    "pass_rate": "quality passed",
    "quality_loss": "loss of quality",
    "json_valid": "valid JSON",
    "structured_cost": "cost of structured output",
    "measured_over_bound": "measured / coverage bound",
    "startup_s": "start-up",
    "oom": "out-of-memory deaths",
    "kv_capacity": "KV capacity",
    "kv_capacity_spread": "spread of KV capacity",
    "kv_use": "KV cache in use",
    "prefix_hit": "prefix cache hits",
    "peak_in_flight": "peak in flight",
    "requests_per_day": "requests a day",
    "shared_prefix_share": "shared prefix",
    "input_tokens": "prompt length",
    "output_tokens": "answer length",
    "format_supported": "format supported",
}
_METRIC = re.compile(r"(?<![\w-])(" + "|".join(sorted(METRICS, key=len, reverse=True)) + r")(?![\w-])")
# A condition line holds shares from 0 to 1, as files and hashes have them; beside a value in % a person reads %.
_SHARE = re.compile(
    r"(?<![\w-])((?:" + "|".join(m.name for m in OF_METRIC.values() if m.unit == "share") + r")(?: (?:mean|max))? "
    r"(?:[≤≥]|is|between)) (\d+(?:\.\d+)?(?:e-\d+)?)(?: and (\d+(?:\.\d+)?(?:e-\d+)?))?(?![\d.]*\d|e| [x%](?!\w))"
)
BETTER_WORSE: dict[int, str] = {1: "+ better", 0: "= same", -1: "− worse"}


class RoleLook(NamedTuple):
    """Colour, icon and words of a candidate's role."""

    colour: str
    icon: str
    words: str


ROLES: dict[str, RoleLook] = {
    "favourite": RoleLook("green", ":material/star:", "favourite: measure it first"),
    "baseline": RoleLook("blue", ":material/flag:", "baseline: what a gain is stated against"),
    "challenger": RoleLook("violet", ":material/sports_score:", "challenger: close enough to measure"),
    "re-examine": RoleLook("orange", ":material/update:", "to be re-examined"),
    "later": RoleLook("gray", ":material/schedule:", "later"),
    "stopped": RoleLook("red", ":material/block:", "stopped by a gate"),
}


def criterion(name: str) -> str:
    """A criterion's name for people."""
    return t(criterion_name(name))


def rating(value: int | None) -> str:
    """A rating from 0 to 3 as marks and a word; None is unknown and looks like none of them."""
    return t("??? unknown") if value is None else t(RATINGS[value])


def better_worse(value: int | None) -> str:
    """How one engine compares with another on one criterion."""
    return t("? not known") if value is None else t(BETTER_WORSE[value])


def in_words(text: str) -> str:
    """A sentence of the domain with criteria by their names for people, and a capital at its head."""
    named = with_names(text, criterion)
    return named[:1].upper() + named[1:]


def metrics_in_words(text: str) -> str:
    """A condition or a sentence about one with its metrics by their names for people, and its shares in %."""
    text = _SHARE.sub(_in_percent, text.replace("<=", "≤").replace(">=", "≥"))
    return _METRIC.sub(lambda found: t(METRICS[found[1]]), text)


def _in_percent(found: re.Match[str]) -> str:
    """The test of a share with its threshold in %."""
    ends = [quantity(float(n), "share") for n in found.groups()[1:] if n]
    return f"{found[1]} {' and '.join(ends)}"


def in_short(sentence: str) -> str:
    """The clause of a verdict that names value and threshold, without samples and sources: what is read from afar."""
    return metrics_in_words(sentence.partition("; ")[0].rstrip(".") + ".")


def with_range(value: float, low: float, high: float, unit: str) -> str:
    """A value with its range, the unit once where all three share it."""
    shown = quantity(value, unit)
    if low == high:
        return shown
    ends = [quantity(x, unit) for x in (low, high)]
    tail = f" {shown.rpartition(' ')[2]}"
    if all(end.endswith(tail) for end in ends):
        ends = [end.removesuffix(tail) for end in ends]
    return f"{shown} ({' – '.join(ends)})"


def role_badge(role: str) -> str:
    """A candidate's role as an inline badge: word, colour and icon."""
    look = ROLES[role]
    return f":{look.colour}-badge[{look.icon} {t(look.words)}]"
