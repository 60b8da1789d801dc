"""What would change a decision: a flip condition as a value. decisions/flips.py judges it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from decisions.forgotten import Forgotten, remembered
from planner.condition_line import format_condition, parse_condition
from planner.conditions import Condition
from planner.frozen import Frozen


class Action(StrEnum):
    """What a fired condition asks for."""

    REOPEN = "reopen"
    SIMPLIFY = "simplify"
    CHANGE_MODEL_PLAN = "change_model_plan"
    BACK_TO_HARDWARE = "back_to_hardware"
    COMPARE_ENGINE = "compare_engine"
    OTHER = "other"


FiresWhen = Literal["holds", "fails"]


class FlipCondition(Frozen):
    """One reason to re-open a decision: a measurable condition, or a statement that its owner judges by hand.

    `fires_when` says which side of the condition fires. The consequence stands here, not inside `condition`.
    `forgotten` is a stored condition that this Flipline cannot read any more, since its metric or its form is gone: it
    is kept as it was, can never be judged, and breaks nothing that stands beside it.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    condition: Condition | None = None
    forgotten: Forgotten | None = Field(default=None, exclude_if=lambda kept: kept is None)
    statement: str = ""
    fires_when: FiresWhen = "holds"
    owner: str = ""
    recheck_on: date | None = None
    action: Action = Action.REOPEN
    consequence: str = ""
    retired: bool = False

    @model_validator(mode="before")
    @classmethod
    def _kept_though_forgotten(cls, data: Any) -> Any:
        return remembered(data) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _one_of_both(self) -> FlipCondition:
        if ((self.condition or self.forgotten) is None) == (not self.statement.strip()):
            raise ValueError(f"flip condition {self.id!r}: give either a condition line or a statement, not both.")
        if self.condition is not None and self.condition.consequence:
            raise ValueError(f"flip condition {self.id!r}: write the consequence beside the condition, not inside it.")
        return self

    @classmethod
    def from_line(
        cls, id: str, line: str, *, fires_when: FiresWhen = "holds", owner: str = "", recheck_on: date | None = None,
        action: Action = Action.REOPEN,
    ) -> FlipCondition:  # fmt: skip
        """Build from a condition line; the text after `->` becomes the consequence.

        Raises InputError for a line that does not parse.
        """
        parsed = parse_condition(line)
        return cls(
            id=id, condition=parsed.model_copy(update={"consequence": ""}), fires_when=fires_when, owner=owner,
            recheck_on=recheck_on, action=action, consequence=parsed.consequence,
        )  # fmt: skip

    @property
    def manual(self) -> bool:
        """Whether a person judges it, because no metric can."""
        return bool(self.statement)

    def in_words(self) -> str:
        """The condition line, or the statement."""
        if self.forgotten:
            return self.forgotten.line
        return format_condition(self.condition) if self.condition else self.statement
