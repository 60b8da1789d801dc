"""A small log is measured as the long one is; the limits are for the long one on a quiet machine."""

from perf.adr_log import LIMITS_S, in_words, report


def test_a_small_log_is_listed_verified_and_exported():
    found = report(None, adrs=20, edits=50)
    assert (found["database"], found["exported"]) == ("sqlite", 20)
    assert set(LIMITS_S) == set(found["seconds"])
    assert all(seconds > 0 for seconds in found["seconds"].values())
    within = all(found["seconds"][name] < most for name, most in LIMITS_S.items())  # unless it stood still
    assert found["reached"] is within, in_words(found)
