"""Stage B's setting from stage A's result: the largest closed point up to which the promise is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bundle.run_data import read_run
from bundle.summary import summarise
from planner.condition_line import format_condition
from planner.conditions import Condition, Evidence
from planner.loads import LoadPoint
from planner.poc import Launch, StageRule


class Setting(NamedTuple):
    """The number that the rule gives, and one sentence that says why."""

    value: int
    why: str


def setting_from(folders: Sequence[Path], rule: StageRule) -> Setting | None:
    """Apply a stage's rule to the sealed bundles of the earlier stage; None when they measured no closed point.

    There are several when that stage was interrupted and went on in a new start.

    Points are taken from small to large and the first one that breaks the promise, or was not measured, ends it; when
    even the smallest breaks it, the smallest is the setting.
    """
    manifests = [read_run(folder).manifest for folder in folders]
    points = {p.name: p for m in manifests for p in m.points if p.shape == "closed" and not p.free_length}
    measured = {r.load_point for m in manifests for r in m.repeats}
    ladder = sorted((p for p in points.values() if p.name in measured), key=lambda p: p.in_flight or 0)
    if not ladder:
        return None
    kept = _kept(folders, rule.keeps, ladder)
    test = format_condition(rule.keeps)
    if not kept:
        return Setting(ladder[0].in_flight or 1, f"{test} holds at no point: the smallest, {ladder[0].name}, is used")
    return Setting(kept[-1].in_flight or 1, f"{test} holds up to {kept[-1].name}")


def _kept(folders: Sequence[Path], keeps: Condition, ladder: list[LoadPoint]) -> list[LoadPoint]:
    """The points up to which the promise is kept, by the value of each repeat.

    This sets a knob and is no verdict: one start can prove nothing. Failed requests count as never, and a point whose
    figures are spoiled keeps nothing.
    """
    found: dict[str, list[Evidence]] = {}
    for e in (e for folder in folders for e in summarise(folder)):
        if e.metric == keeps.metric and e.statistic == keeps.statistic and e.load_point:
            found.setdefault(e.load_point, []).append(e)
    kept: list[LoadPoint] = []
    for point in ladder:
        pieces = found.get(point.name)
        if not pieces or not all(e.valid and keeps.holds_for(e.value) for e in pieces):
            break
        kept.append(point)
    return kept


def with_setting(launch: Launch, name: str, value: int) -> Launch | None:
    """The launch with a setting's argument (or environment variable) set to a value; None when it names neither."""
    argument = launch.stage_settings.get(name)
    if argument is None or not launch.command:
        return None
    if not argument.startswith("-"):
        return launch.model_copy(update={"environment": {**launch.environment, argument: str(value)}})
    command = list(launch.command)
    for i, word in enumerate(command):
        if word == argument and i + 1 < len(command):
            command[i + 1] = str(value)
            break
        if word.startswith(f"{argument}="):
            command[i] = f"{argument}={value}"
            break
    else:
        command += [argument, str(value)]
    return launch.model_copy(update={"command": tuple(command)})
