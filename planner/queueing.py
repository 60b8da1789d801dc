"""Continuous batching in virtual time: how long requests wait, how long they take, what the KV cache holds meanwhile.

Discrete events over planner.batching's scheduler, which the emulator runs too. Time is whole nanoseconds, so that a
stretch of equal steps taken at once ends exactly where one step after the other would. Arrivals stop after `duration_s`
and whoever is there is still served: every TTFT is then known, which first come first served makes independent of
what would have come later. Rates and averages over time count up to the end of arrivals only.
"""

from __future__ import annotations

import sys

from planner.batching import Limits, Policy, Scheduler, Step
from planner.errors import InputError
from planner.queue_load import NS, Load, Source
from planner.queue_result import Look, Served, Simulation
from planner.step_time import StepTime

LOOKS = 240  # points of the timeline
_NEVER = sys.maxsize


def simulate(
    load: Load, limits: Limits, step: StepTime, *, seed: int = 0, duration_s: float | None = None,
    requests: int | None = None,
) -> Simulation:  # fmt: skip
    """Offer a load to a server until `duration_s` have passed or `requests` have come, and serve whoever came.

    Raises InputError when nothing ends the arrivals, a step takes no time, or a request could never be served.
    """
    if duration_s is None and requests is None and load.process != "trace":
        raise InputError("nothing ends the arrivals.", where="queueing", fix="State duration_s or requests.")
    if (duration_s is not None and duration_s <= 0) or (requests is not None and requests < 1):
        raise InputError("a duration above 0 and at least one request make a run.", where="queueing")
    run = _Run(Source(load, seed, requests), Scheduler(limits), step, duration_s)
    run.go()
    return run.result(limits.policy, seed)


class _Run:
    """The clock, the books of each request by its number, and the sums over time. Times in ns."""

    def __init__(self, source: Source, scheduler: Scheduler, step: StepTime, duration_s: float | None) -> None:
        self._source, self._scheduler, self._step_time = source, scheduler, step
        self._end = _NEVER if duration_s is None else max(1, round(duration_s * NS))
        self._look_every = max(1, self._end // LOOKS) if duration_s is not None else _NEVER
        self._next_look = self._look_every
        self._durations: dict[tuple[int, int], int] = {}
        self._now = 0
        self._arrived: list[int] = []
        self._started: list[int] = []
        self._first: list[int] = []
        self._finished: list[int] = []
        self._lengths: list[tuple[int, int]] = []
        self._timeline: list[Look] = []
        self._output_tokens = self._busy = self._in_system = 0
        self._preemptions = self._kv_peak = 0
        self._left: tuple[int, int] | None = None  # running and waiting when arrivals stopped
        self._closed_at = 0

    def go(self) -> None:
        """From the first arrival to the last answer."""
        scheduler, due = self._scheduler, self._source.due
        self._let_in()
        while True:
            if self._now >= self._end and self._left is None:
                self._close_the_books()
            if scheduler.empty:
                if self._left is not None or not due or due[0] >= self._end:
                    break
                self._wait_until(due[0])
                self._let_in()
                continue
            began, there = self._now, len(scheduler.running) + len(scheduler.waiting)
            done, count = self._advance()
            took = self._now - began
            if self._left is None:
                self._output_tokens += len(done.produced) * count
                self._busy += took
                self._in_system += there * took
            self._write_down(done, began)
            self._let_in()
            if self._now >= self._next_look and self._left is None:
                self._look(done)
        if self._left is None:
            if self._end != _NEVER:
                self._wait_until(self._end)
            self._close_the_books()

    def result(self, policy: Policy, seed: int) -> Simulation:
        """The books in seconds."""
        left_running, left_waiting = self._left or (0, 0)
        served = tuple(
            Served(arrived / NS, started / NS, first / NS, finished / NS, *lengths)
            for arrived, started, first, finished, lengths in zip(
                self._arrived, self._started, self._first, self._finished, self._lengths, strict=True
            )
        )
        return Simulation(
            policy=policy, seed=seed, served=served, timeline=tuple(self._timeline), simulated_s=self._closed_at / NS,
            output_tokens=self._output_tokens, busy_s=self._busy / NS, request_s=self._in_system / NS,
            left_running=left_running, left_waiting=left_waiting, preemptions=self._preemptions,
            kv_peak_share=self._kv_peak / self._scheduler.limits.kv_blocks,
        )  # fmt: skip

    def _let_in(self) -> None:
        """Submit who has come since the last step began."""
        due, latest = self._source.due, min(self._now, self._end - 1)
        while due and due[0] <= latest:
            at, prompt, output = self._source.take()
            self._scheduler.submit(len(self._arrived), prompt, output)
            self._arrived.append(at)
            self._lengths.append((prompt, output))
            for book in (self._started, self._first, self._finished):
                book.append(-1)
            self._in_system += self._now - at

    def _advance(self) -> tuple[Step, int]:
        """The next step, or as many equal ones as end by the first of: an arrival, the end, a look."""
        calm = self._scheduler.calm_steps()
        if calm < 2:
            done = self._scheduler.step()
            self._now += self._duration(done.batch, done.prefill_tokens)
            return done, 1
        each = self._duration(len(self._scheduler.running), 0)
        count = calm
        if self._left is None:
            until = min(self._end, self._next_look)
            if self._source.due and not self._scheduler.newcomers_wait:
                until = min(until, self._source.due[0])
            count = min(calm, -(-(until - self._now) // each))
        self._now += each * count
        return self._scheduler.jump(count), count

    def _duration(self, batch: int, prefill_tokens: int) -> int:
        key = batch, prefill_tokens
        known = self._durations.get(key)
        if known is None:
            known = self._durations[key] = round(self._step_time.seconds(batch, prefill_tokens) * NS)
            if not known:
                raise InputError("a step takes no time, so nobody would ever wait.", where="queueing",
                                 fix="State base_s, or take the inputs of a sizing.")  # fmt: skip
        return known

    def _write_down(self, done: Step, began: int) -> None:
        started, now = self._started, self._now
        for request in reversed(done.worked):  # who starts is younger than whoever has started before
            if started[request] >= 0:
                break
            started[request] = began
        for request in done.first:
            self._first[request] = now
        for request in done.finished:
            self._finished[request] = now
            self._source.answered(now)
        self._preemptions += len(done.preempted)
        if done.kv_blocks > self._kv_peak:
            self._kv_peak = done.kv_blocks

    def _look(self, done: Step) -> None:
        share = done.kv_blocks / self._scheduler.limits.kv_blocks
        self._timeline.append(Look(self._now / NS, share, done.batch, len(self._scheduler.waiting)))
        self._next_look = self._now - self._now % self._look_every + self._look_every

    def _wait_until(self, moment: int) -> None:
        """Nobody is here; the looks that fall into the gap see that."""
        if moment >= self._next_look:
            self._timeline += [Look(self._now / NS, 0.0, 0, 0), Look(moment / NS, 0.0, 0, 0)]
            self._next_look = moment - moment % self._look_every + self._look_every
        self._now = moment

    def _close_the_books(self) -> None:
        self._left = len(self._scheduler.running), len(self._scheduler.waiting)
        self._closed_at = self._now
