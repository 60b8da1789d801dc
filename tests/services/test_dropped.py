"""What is dropped: archives, folders of bundles, loose files; told by the names that the person knows."""

from __future__ import annotations

import pytest

from planner.errors import BundleError
from services.arrivals import bring_in, bring_in_files
from services.dropped import laid_out
from tests.bundle.made import POINT, bundle
from tests.services.made import small_plan, with_plan, zipped


@pytest.fixture
def case(shipped):
    return with_plan(shipped, small_plan(POINT))


def loose(root):
    """The files of a folder as a browser gives them: relative names and contents."""
    return [(str(p.relative_to(root.parent)), p.read_bytes()) for p in sorted(root.rglob("*")) if p.is_file()]


def test_a_folder_of_bundles_is_found_with_the_archives_in_it(tmp_path):
    results = tmp_path / "results"
    first, other = bundle(results / "vllm-1"), bundle(tmp_path / "vllm-2", start=2)
    zipped([other], results / "more.zip")
    (results / "progress.json").write_text("{}")  # bench leaves it beside its bundles
    with laid_out(loose(results)) as drop:
        assert [f.name for f in drop.found] == ["results/vllm-1", "results/more.zip/vllm-2"]
        assert (drop.found[0].folder / "manifest.json").read_bytes() == (first / "manifest.json").read_bytes()


def test_several_archives_come_in_with_one_count_each(shipped, case, tmp_path):
    one, two = bundle(tmp_path / "a"), bundle(tmp_path / "b", start=2)
    files = [
        ("one.zip", zipped([one], tmp_path / "one.zip")),
        ("both.zip", zipped([one, two], tmp_path / "both.zip")),
        ("notes.zip", b"no zip at all"),
    ]
    seen = []
    arrived = bring_in_files(shipped, case, files, "Kim", lambda *at: seen.append(at))
    # names in order: both.zip holds starts 1 and 2, one.zip start 1 again, which its hash tells
    assert [(t.run.start, t.new) for t in arrived.taken] == [(1, True), (2, True), (1, False)]
    assert (arrived.new, [b.name for b in arrived.broken]) == (2, ["notes.zip"])
    assert seen == [(0, 3, "both.zip/a"), (1, 3, "both.zip/b"), (2, 3, "one.zip/a"), (3, 3, "")]


def test_a_drop_that_was_interrupted_is_dropped_again(shipped, case, tmp_path):
    for start in (1, 2, 3):
        bundle(tmp_path / "results" / f"s{start}", start=start)

    def clicks_away(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring_in(shipped, case, tmp_path / "results", "Kim", clicks_away)
    again = bring_in(shipped, case, tmp_path / "results", "Kim")
    assert [t.new for t in again.taken] == [False, False, True]


@pytest.mark.parametrize("name", ["../evil/manifest.json", "/etc/evil", ""])
def test_a_name_that_points_outside_is_refused(name):
    with pytest.raises(BundleError, match="points outside"), laid_out([(name, b"x")]):
        pass


def test_a_folder_without_bundles_says_which_to_choose(shipped, case):
    with pytest.raises(BundleError, match=r"the drop: holds no bundle\. Choose the folder that bench wrote to"):
        bring_in_files(shipped, case, [("a/x.txt", b"x"), ("a/y.txt", b"y")], "Kim")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a\0b"], r"'a\\x00b': is no name of a file"),
        (["\ud800"], r"'\\ud800': is no name of a file"),
        (["a" * 300], "cannot be laid out: File name too long"),
        (["b", "b/manifest.json"], "b/manifest.json: cannot be laid out"),
    ],
)
def test_a_name_that_no_disk_takes_is_one_sentence(names, sentence):
    with pytest.raises(BundleError, match=sentence), laid_out([(name, b"{}") for name in names]):
        raise AssertionError
