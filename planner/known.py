"""Evidence that is found by metric and load point, not walked: a case may hold a hundred thousand figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from planner.conditions import Evidence

T = TypeVar("T")
_Groups = dict[str, dict[str | None, list[Evidence]]]


class Known(tuple[Evidence, ...]):
    """All evidence of a case in its order, with an index that is built when it is first asked.

    `joined` keeps the indexes of what it joins, so that a few new figures beside many old ones cost nothing.
    """

    _parts: tuple[Known, ...] = ()
    _groups: _Groups | None = None

    @classmethod
    def joined(cls, *parts: Known) -> Known:
        """Several after each other."""
        whole = cls(e for part in parts for e in part)
        whole._parts = parts
        return whole

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> Known:
        """The same evidence; what has an index keeps it."""
        return evidence if isinstance(evidence, cls) else cls(evidence)

    def points(self, metric: str) -> set[str]:
        """Load points at which there is a figure of that metric."""
        own = {p for p, found in self._index().get(metric, {}).items() if p and found}
        return own.union(*(part.points(metric) for part in self._parts))

    def of_metric(self, *metrics: str) -> list[Evidence]:
        """Figures of some metrics; those of one part and load point stand together."""
        own = [e for m in metrics for found in self._index().get(m, {}).values() for e in found]
        return own + [e for part in self._parts for e in part.of_metric(*metrics)]

    def at_point(self, point: str | None) -> list[Evidence]:
        """Figures of all metrics at one load point, or at none."""
        own = [e for points in self._index().values() for e in points.get(point, ())]
        return own + [e for part in self._parts for e in part.at_point(point)]

    def at(self, metric: str, point: str | None) -> list[Evidence]:
        """Figures of a metric at one load point, or at none."""
        own = self._index().get(metric, {}).get(point, [])
        return [*own, *(e for part in self._parts for e in part.at(metric, point))]

    def _index(self) -> _Groups:
        if self._groups is None:
            self._groups = {}
            for e in () if self._parts else self:
                self._groups.setdefault(e.metric, {}).setdefault(e.load_point, []).append(e)
        return self._groups


class Derived(Generic[T]):
    """What was worked out from all evidence of a case, remembered for the very same evidence and the same question.

    Evidence never changes, so its identity stands for its content as long as it is held here.
    """

    def __init__(self, most: int = 4) -> None:
        self._held: dict[tuple[int, Hashable], tuple[Known, T]] = {}
        self._most = most

    def get(self, known: Known, question: Hashable, make: Callable[[], T]) -> T:
        """What was made before, else what `make` gives now; an error is not remembered."""
        key = id(known), question
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = known, make()
            for oldest in list(self._held)[: -self._most]:
                self._held.pop(oldest, None)
        return held[1]
