"""Evidence that is found by metric and load point, not walked: a case may hold a hundred thousand figures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from planner.conditions import Evidence, Kind

T = TypeVar("T")
_Groups = dict[str | None, list[Evidence]]  # by load point


class Fact(NamedTuple):
    """That there is a figure of this metric, kind, candidate and load point."""

    metric: str
    kind: Kind
    candidate: str | None
    load_point: str | None


class Known(Collection[Evidence]):
    """All evidence of a case in its order. Figures of a metric may be read when they are first asked for.

    `joined` keeps what it joins, so that a few new figures beside many old ones cost nothing.
    """

    def __init__(self, evidence: Iterable[Evidence] = ()) -> None:
        self._all: tuple[Evidence, ...] | None = tuple(evidence)
        self._parts: tuple[Known, ...] = ()
        self._unread: dict[str, Callable[[], Iterable[Evidence]]] = {}
        self._read: dict[str, _Groups] | None = None
        self._facts: frozenset[Fact] | None = None

    @classmethod
    def joined(cls, *parts: Known) -> Known:
        """Several after each other."""
        whole = cls()
        whole._all, whole._parts, whole._read = None, parts, {}
        return whole

    @classmethod
    def read_later(cls, metrics: Mapping[str, Callable[[], Iterable[Evidence]]], facts: Iterable[Fact]) -> Known:
        """Figures by metric, in the order of time and id; `facts` are all that hold of them."""
        known = cls()
        known._all, known._unread, known._read, known._facts = None, dict(metrics), {}, frozenset(facts)
        return known

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> Known:
        """The same evidence; what has an index keeps it."""
        return evidence if isinstance(evidence, cls) else cls(evidence)

    def with_metrics(self, metrics: Mapping[str, Iterable[Evidence]]) -> Known:
        """The same with other figures of some metrics, in the order of time and id."""
        kept: dict[str, Callable[[], Iterable[Evidence]]] = {
            m: partial(self.of_metric, m) for m in sorted({f.metric for f in self.facts}) if m not in metrics
        }
        changed = {m: tuple(found) for m, found in metrics.items()}
        facts = {f for f in self.facts if f.metric not in metrics} | facts_of(e for es in changed.values() for e in es)
        return Known.read_later(kept | {m: partial(tuple, found) for m, found in changed.items()}, facts)

    @property
    def facts(self) -> frozenset[Fact]:
        """Which figures there are, without reading them."""
        if self._parts:
            return frozenset().union(*(part.facts for part in self._parts))
        if self._facts is None:
            self._facts = frozenset(facts_of(self))
        return self._facts

    def points(self, metric: str) -> set[str]:
        """Load points at which there is a figure of that metric."""
        return {f.load_point for f in self.facts if f.metric == metric and f.load_point}

    def of_metric(self, *metrics: str) -> list[Evidence]:
        """Figures of some metrics; those of one part and load point stand together."""
        own = [e for m in metrics for found in self._of(m).values() for e in found]
        return own + [e for part in self._parts for e in part.of_metric(*metrics)]

    def at_point(self, point: str | None) -> list[Evidence]:
        """Figures of all metrics at one load point, or at none."""
        metrics = dict.fromkeys(f.metric for f in sorted(self.facts, key=lambda f: f.metric) if f.load_point == point)
        return [e for m in metrics for e in self.at(m, point)]

    def at(self, metric: str, point: str | None) -> list[Evidence]:
        """Figures of a metric at one load point, or at none."""
        own = self._of(metric).get(point, [])
        return [*own, *(e for part in self._parts for e in part.at(metric, point))]

    def by_id(self, ids: Iterable[str]) -> dict[str, Evidence]:
        """Figures by id, sought first among those that were read; what is not there is left out."""
        wanted, found = set(ids), dict[str, Evidence]()
        for part in self._parts or (self,):
            metrics, read = {f.metric for f in part.facts}, set(part._read or ())
            for metric in (*sorted(metrics & read), *sorted(metrics - read)):
                if len(found) == len(wanted):
                    return found
                found |= {e.id: e for e in part.of_metric(metric) if e.id in wanted}
        return found

    def _of(self, metric: str) -> _Groups:
        """Own figures of a metric by load point. Two threads may both read it, which does no harm."""
        if self._read is None:
            read: dict[str, _Groups] = {}
            for e in self._all or ():
                read.setdefault(e.metric, {}).setdefault(e.load_point, []).append(e)
            self._read = read
        if (found := self._read.get(metric)) is not None:
            return found
        if (later := self._unread.get(metric)) is None:
            return self._read.get(metric, {})
        found = {}
        for e in sorted(later(), key=_moment):
            found.setdefault(e.load_point, []).append(e)
        self._read[metric] = found
        self._unread.pop(metric, None)
        return found

    def _everything(self) -> tuple[Evidence, ...]:
        if self._all is None and self._parts:
            return tuple(e for part in self._parts for e in part)
        if self._all is None:
            self._all = tuple(sorted(self.of_metric(*{f.metric for f in self.facts}), key=_moment))
        return self._all

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self._everything())

    def __len__(self) -> int:
        return len(self._everything())

    def __contains__(self, e: object) -> bool:
        return e in self._everything()


def facts_of(evidence: Iterable[Evidence]) -> set[Fact]:
    """What holds of some figures."""
    return {Fact(e.metric, e.kind, e.candidate, e.load_point) for e in evidence}


def _moment(e: Evidence) -> tuple[object, str]:
    return e.at, e.id


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
