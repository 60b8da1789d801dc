"""Kernel stamps on the client's clock, and what a wall clock that is set in mid-run does to them."""

from __future__ import annotations

import struct

import pytest

from bench.arrivals import Arrivals, upper_bounds

S = 1_000_000_000


class Clocks:
    """A monotonic and a wall clock that we turn by hand."""

    def __init__(self) -> None:
        self.monotonic = 100 * S
        self.wall = 1_800_000_000 * S

    def pass_ms(self, ms: float) -> None:
        self.monotonic += round(ms * 1e6)
        self.wall += round(ms * 1e6)

    def stamp(self) -> list[tuple[int, int, bytes]]:
        """What the kernel would hand over for a segment that arrives now."""
        return [(1, 35, struct.pack("@ll", *divmod(self.wall, S)))]


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def arrivals(clocks: Clocks) -> Arrivals:
    return Arrivals(lambda: clocks.wall, lambda: clocks.monotonic)


def test_a_late_reader_still_gets_the_time_of_arrival(clocks: Clocks, arrivals: Arrivals) -> None:
    stamp = clocks.stamp()
    clocks.pass_ms(6)
    assert arrivals.time_of(stamp, arrivals.epoch) == (pytest.approx(100.0, abs=1e-9), True)


def test_a_read_without_a_stamp_has_the_time_of_the_read_and_is_counted(clocks: Clocks, arrivals: Arrivals) -> None:
    clocks.pass_ms(6)
    assert arrivals.time_of([], arrivals.epoch) == (pytest.approx(100.006, abs=1e-9), True)
    assert (arrivals.reads, arrivals.unstamped, arrivals.dropped) == (1, 1, 0)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, 0.005, -0.005])
def test_a_stamp_astride_a_step_is_dropped_and_later_ones_are_right(
    clocks: Clocks, arrivals: Arrivals, step_s: float
) -> None:
    before = arrivals.epoch
    old = clocks.stamp()
    clocks.wall += round(step_s * S)
    clocks.pass_ms(2)
    assert arrivals.time_of(old, before) == (pytest.approx(100.002, abs=1e-9), False)
    assert arrivals.steps_s == [pytest.approx(step_s)]
    fresh = clocks.stamp()
    clocks.pass_ms(1)
    assert arrivals.time_of(fresh, before) == (pytest.approx(100.003, abs=1e-9), False), "may have waited since before"
    assert arrivals.time_of(fresh, arrivals.epoch) == (pytest.approx(100.002, abs=1e-9), True)
    assert arrivals.dropped == 2


def test_losing_the_core_between_two_clock_reads_is_no_step(clocks: Clocks) -> None:
    reads = 0

    def wall() -> int:
        nonlocal reads
        reads += 1
        if reads == 7:  # the first look at this read; five reads were for the offset at the start
            clocks.pass_ms(30)
        return clocks.wall

    arrivals = Arrivals(wall, lambda: clocks.monotonic)
    stamp = clocks.stamp()
    for _ in range(3):
        arrivals.time_of(stamp, arrivals.epoch)
    assert (arrivals.epoch, arrivals.steps_s, arrivals.dropped) == (0, [], 0)


@pytest.mark.parametrize("torn", range(6, 11))
def test_the_offset_that_a_repeat_begins_and_ends_with_knows_no_lost_core_either(clocks: Clocks, torn: int) -> None:
    """Read once each, wall and monotonic clock would have differed by the 30 ms, as if somebody had set the wall's."""
    reads = 0

    def wall() -> int:
        nonlocal reads
        reads += 1
        if reads == torn:  # five reads were for the offset at the start, five are for this one
            clocks.pass_ms(30)
        return clocks.wall

    arrivals = Arrivals(wall, lambda: clocks.monotonic)
    began = (clocks.monotonic - clocks.wall) * 1e-9
    assert arrivals.offset_s() == pytest.approx(began, abs=1e-6)


@pytest.mark.parametrize(
    ("times", "unsure", "bound"),
    [
        ((1.0, 2.0, 3.0), (), (False, False, False)),
        ((1.0, 1.0, 1.0, 2.0), (), (True, True, False, False)),  # of a group only the last one's time is its own
        ((1.0, 2.0, 3.0), (2.0,), (False, True, False)),
        ((), (), ()),
    ],
)
def test_equal_times_are_a_group_whose_last_one_is_right(
    times: tuple[float, ...], unsure: tuple[float, ...], bound: tuple[bool, ...]
) -> None:
    assert upper_bounds(times, unsure) == bound
