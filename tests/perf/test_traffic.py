"""The limits that perf/traffic.py measures, on a twentieth of the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.traffic import FORMS, MOST_MB, MOST_SECONDS, ROWS, in_words, timed, write


@pytest.mark.parametrize("form", FORMS)
def test_a_twentieth_of_the_rows_takes_a_small_part_of_the_time(form: str, tmp_path: Path) -> None:
    write(tmp_path / form, ROWS // 20, seed=1)
    found = timed(tmp_path / form)
    assert found["rows"] == ROWS // 20
    assert found["cpu_seconds"] < MOST_SECONDS / 10  # twice its share: a small run warms up no less than a large one
    assert "a limit was missed" in in_words({"machine": "a machine", "runs": [found], "reached": False})
    assert MOST_MB == 1000


def test_made_up_rows_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "own.csv", 100, seed=3)
    assert (tmp_path / "a" / "own.csv").read_bytes() == (tmp_path / "b" / "own.csv").read_bytes()
