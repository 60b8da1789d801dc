"""A small log is measured as the long one is; the limits are for the long one on a quiet machine."""

from perf.adr_log import LIMITS_S, in_words, report


def test_a_small_log_is_listed_verified_and_exported():
    found = report(None, adrs=20, edits=50)
    assert (found["database"], found["exported"]) == ("sqlite", 20)
    assert set(LIMITS_S) == set(found["seconds"])
    assert found["reached"], in_words(found)
