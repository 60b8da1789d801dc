"""The limits that perf/queueing.py measures, in its short form."""

from __future__ import annotations

from perf.queueing import MOST_SECONDS, in_words, pooled, ten_minutes


def test_ten_minutes_of_fifty_users_take_less_than_two_seconds() -> None:
    runs = ten_minutes()
    assert len(runs) == 5
    assert all(r["cpu_seconds"] < MOST_SECONDS for r in runs)
    # 600 s at 50 of 15 + 50 x 0.4 = 35 ms a step would be 857,000 tokens; prompts take some of that time.
    assert 750_000 < runs[0]["output_tokens"] < 857_000
    assert runs[2]["preemptions"] > 0


def test_ten_seeds_are_one_row_with_a_narrower_interval() -> None:
    rows = [{"model": "M/D/1", "utilisation": 0.5, "seed": n, "theory": 0.5, "mean": 0.45 + 0.01 * n, "inside": n > 2}
            for n in range(1, 11)]  # fmt: skip
    (found,) = pooled(rows)
    # Means 0.46 ... 0.55: 0.505, deviation 0.030277, over the root of ten 0.009574, times 4.781.
    assert (round(found["mean"], 3), round(found["half_width"], 4)) == (0.505, 0.0458)
    assert (found["inside"], found["seeds_inside"], found["seeds"]) == (True, 8, 10)
    words = in_words({"machine": "a machine", "runs": [], "seconds": 0.1, "peak_rss_mb": 40, "pooled": [found],
                      "reached": True})  # fmt: skip
    assert "inside the interval of 8 of 10 seeds" in words
