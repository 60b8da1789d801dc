"""How a figure came about: formula in words, inputs with their sources, assumptions that dominate, known error."""

from __future__ import annotations

from planner.frozen import Frozen

REQUIREMENTS = "requirements"
UNKNOWN = "not stated"


class DerivedInput(Frozen):
    """One input of a figure, as text with its unit, and where it comes from."""

    name: str
    value: str
    source: str


class Derivation(Frozen):
    """One figure explained; `band` is the known error of this kind of estimate."""

    key: str
    title: str
    value: str
    formula: str
    inputs: tuple[DerivedInput, ...]
    assumptions: tuple[str, ...] = ()
    band: str

    def lines(self) -> tuple[str, ...]:
        """The explanation as plain text, one statement a line."""
        return (
            f"{self.title}: {self.value}",
            f"formula: {self.formula}",
            *(f"{i.name} = {i.value} ({i.source})" for i in self.inputs),
            *(f"assumes: {a}" for a in self.assumptions),
            f"known error: {self.band}",
        )


def given(name: str, value: str, source: str) -> DerivedInput:
    """One input."""
    return DerivedInput(name=name, value=value, source=source)
