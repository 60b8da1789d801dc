"""One row of a public log beside what the planner says of it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Unpredictable(Exception):
    """Why a figure gets no prediction."""


class Predicted(NamedTuple):
    """A measured figure and its prediction; without one, `reason` says why. `measured` None: the row has no figure.

    `quantity` names what is compared and its unit (weights_gib, kv_tokens, max_concurrency, tpot_ms), `klass` the
    architecture class (dense or moe for speeds, the catalogue's architecture for memory).
    """

    quantity: str
    klass: str
    engine: str
    model: str
    gpu: str
    measured: float | None
    predicted: float | None
    reason: str
    source_url: str
    detail: str = ""

    @property
    def error(self) -> float | None:
        """Relative error, predicted / measured - 1."""
        return self.predicted / self.measured - 1 if self.predicted is not None and self.measured else None

    def as_json(self) -> dict[str, Any]:
        """The row as data; its class is called `class`."""
        own = self._asdict()
        return {"class": own.pop("klass"), **own}
