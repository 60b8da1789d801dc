"""What could explain that two candidates differ at a load point: settings that differ, and KV capacity that binds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from planner.contract import FIELDS, Contract, Moved
from planner.loads import LoadPoint
from planner.pairing import KvCapacity

_IS_THE_CANDIDATE = frozenset({"engine", "engine_version", "engine_version_reported"})


class Setting(NamedTuple):
    """What both candidates set, at a load point, and what their KV caches hold."""

    moved: Moved
    point: LoadPoint | None
    capacities: Sequence[KvCapacity]


def _fits_in_both_batches(s: Setting) -> bool:
    limits = [int(x) for x in (s.moved.left, s.moved.right) if x.isdecimal()]
    in_flight = s.point.in_flight if s.point else None
    return bool(in_flight and len(limits) == 2 and in_flight <= min(limits))


def _kv_suffices(s: Setting) -> bool:
    return bool(s.capacities) and all(k.needed is not None and not k.binds for k in s.capacities)


# Settings that cannot be felt below a limit: with what shows that this load stays below it, and the words for that.
WITHOUT_EFFECT: dict[str, tuple[Callable[[Setting], bool], str]] = {
    "max_num_seqs": (_fits_in_both_batches, "both batches hold all requests of this load"),
    "gpu_memory_share": (_kv_suffices, "the KV cache holds all requests of this load"),
}


class Explained(NamedTuple):
    """What could be the cause, and what is ruled out with its reason."""

    could: tuple[str, ...]
    ruled_out: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Both in one sentence; empty where nothing is known."""
        if not self.could and not self.ruled_out:
            return ""
        if len(self.could) == 1 and self.ruled_out:
            cause = f"Besides the engines themselves, only this could explain it: {self.could[0]}"
        elif self.could:
            cause = f"Besides the engines themselves, this could explain it: {'; '.join(self.could)}"
        else:
            cause = "No setting that is stated explains it"
        out = f"; ruled out: {'; '.join(self.ruled_out)}" if self.ruled_out else ""
        return f"{cause}{out}."


def explain(
    left: Contract, right: Contract, point: LoadPoint | None, capacities: Sequence[KvCapacity]
) -> Explained:  # fmt: skip
    """Sort every setting that differs, and the KV capacity, into what could matter at this load and what cannot."""
    could, ruled_out = [k.in_words() for k in capacities if k.binds], []
    if _kv_suffices(Setting(Moved("", "", ""), point, capacities)):
        ruled_out.append(f"KV capacity, since this load asks for {capacities[0].needed:,.0f} tokens and every start "
                         f"holds {min(k.lowest for k in capacities):,.0f} or more")  # fmt: skip
    a, b = left.stated(), right.stated()
    for field in FIELDS:
        moved = Moved(field.name, a.get(field.name, ""), b.get(field.name, ""))
        if field.between == "context" or field.name in _IS_THE_CANDIDATE or moved.left == moved.right:
            continue
        cannot, why = WITHOUT_EFFECT.get(field.name, (None, ""))
        if cannot and cannot(Setting(moved, point, capacities)):
            ruled_out.append(f"{moved}, since {why}")
        else:
            could.append(str(moved))
    return Explained(tuple(could), tuple(ruled_out))
