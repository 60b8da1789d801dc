"""An open loop on a server that cannot keep up: told apart from one that is merely busy, and stopped when asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.emulator.settings import Settings
from bench.exchange import Exchange
from bench.saturation import LOOK_EVERY_S, Saturation
from planner.errors import InputError
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Stop
from tests.bench.helpers import candidate, only_bundle, plan, point, run_attached


def seen(waiting: list[int], oldest_s: list[float], within_s: float = 6.0) -> list[str]:
    """What each look gives: so many requests without a token, the first of which has waited so long."""
    growth, found = Saturation(within_s), []
    for k, (n, oldest) in enumerate(zip(waiting, oldest_s, strict=True)):
        now = 100.0 + k * LOOK_EVERY_S
        found.append(growth.look(now, [Exchange(dispatched=now - oldest)] * n))
    return found


def test_a_queue_that_grows_with_its_wait_is_saturated_once_it_has_grown_long_enough() -> None:
    # 2 more requests wait at each look, half a second later; the oldest has been there since the beginning.
    found = seen([2 * k for k in range(20)], [0.5 * k for k in range(20)])
    assert not any(found[:12])  # 12 looks are 5.5 s
    assert (
        found[12]
        == "saturated: queue and wait grew for 6 s, to 24 requests without a token, the first of them for 6.0 s"
    )


@pytest.mark.parametrize(
    ("waiting", "oldest_s"),
    [
        ([20] * 40, [3.0] * 40),  # a long queue that stands
        ([2 * (k % 8) for k in range(40)], [0.3 * (k % 8) for k in range(40)]),  # bursts that are worked off
        ([2 * k for k in range(40)], [1.0] * 40),  # more arrive, none waits longer
        ([0] * 40, [0.0] * 40),
        ([20] * 40, [0.5 * k for k in range(40)]),  # some wait ever longer, but no more of them
        ([1 + k // 8 for k in range(24)], [0.5 * k for k in range(24)]),  # three wait: too few to call it a queue
    ],
)
def test_a_queue_that_does_not_keep_growing_is_not(waiting: list[int], oldest_s: list[float]) -> None:
    assert not any(seen(waiting, oldest_s))


def test_an_answer_that_has_begun_waits_no_longer() -> None:
    streaming = Exchange(dispatched=0.0, wire=[(0.1, b"head"), (0.2, b"role"), (0.3, b"token")])
    growth = Saturation(3.0)
    assert not any(growth.look(k * LOOK_EVERY_S, [streaming] * 4 * k) for k in range(40))


def test_an_open_loop_at_twice_what_the_server_can_do_is_stopped_and_says_why(tmp_path: Path) -> None:
    # One place, 100 + 5 x 10 = 150 ms a request, so 6.7 a second; 40 a second are offered.
    load = point("flood", shape="open", rate_per_s=40.0, arrival="constant", requests=500, warmup_requests=0)
    slow = Settings(ttft_ms=100, itl_ms=10, slots=1)
    stop = {"saturation_s": 3, "max_point_s": 20}
    for attempt in range(4):
        manifest, records = only_bundle(run_attached(slow, tmp_path / str(attempt), points=[load], stop=stop))
        (repeat,) = manifest.repeats
        if repeat.stop_reason.startswith("saturated") or repeat.loop_stalled_share < 0.05:
            break  # else this machine stood still for seconds, in which nobody sees a queue grow
    assert repeat.status == "stopped"
    assert repeat.stop_reason.startswith("saturated: queue and wait grew for 3 s, to ")
    assert repeat.failed == 0 and repeat.undetermined > 0
    assert len(records) < 500


def test_plans_without_the_rule_keep_their_hash_and_those_with_it_go_through_a_file() -> None:
    made = plan(candidate(1), stop={"saturation_s": 10.0})
    assert plan_from_yaml(plan_to_yaml(made)) == made
    assert made.sha256() != plan(candidate(1)).sha256()
    assert Stop().saturation_s is None  # the plan's overload points are meant to queue
    with pytest.raises(InputError, match="saturation_s"):
        plan_from_yaml(plan_to_yaml(made).replace("saturation_s: 10.0", "saturation_s: 1.0"))
