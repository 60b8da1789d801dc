"""A team's own engine files add engines and change stated fields; one that is wrong is refused and harms nothing."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.catalog import Refusal, load_catalog
from planner.errors import InputError
from tests.planner.fictitious import facts, put

OURS = load_catalog()
OWN_RATING = """\
axes:
  batching:
    rating: 1
    reason: Our run of March stalled.
    source: [our bench run]
    versions: 0.33.0
    read_on: 2026-11-28
    evidence_kind: measured
sources:
  our bench run: {address: infra/benchmarks, version: run 12, read_on: 2026-11-28, read: stalls under 40 users}
"""


def refused(own: Path) -> Refusal:
    """The one refusal; all engines of ours are there all the same."""
    found = load_catalog(overlay=own, tolerant=True)
    assert {id: found.engines[id] for id in OURS.engines} == OURS.engines
    assert found.models == OURS.models
    (refusal,) = found.refused
    with pytest.raises(InputError, match="engines/"):
        load_catalog(overlay=own)
    assert refusal.fix
    return refusal


def test_a_file_with_a_new_id_adds_an_engine(tmp_path: Path) -> None:
    found = load_catalog(overlay=put(tmp_path, facts()))
    assert set(found.engines) == {*OURS.engines, "swiftserve"}
    assert found.engine("swiftserve").parameters["max_concurrent_sequences"].flag == "--slots"
    assert load_catalog().engines == OURS.engines


def test_a_file_with_a_known_id_changes_the_stated_fields_only(tmp_path: Path) -> None:
    own = put(tmp_path, OWN_RATING, "vllm.yaml")
    found, ours = load_catalog(overlay=own).engine("vllm"), OURS.engine("vllm")
    assert (found.axes["batching"].rating, found.axes["batching"].read_on) == (1, date(2026, 11, 28))
    assert found.axes["batching"].statement == ours.axes["batching"].statement
    assert found.axes["chunked_prefill"] == ours.axes["chunked_prefill"]
    assert set(found.sources) == {*ours.sources, "our bench run"}
    assert OURS.engine("vllm").axes["batching"].rating == 3


@pytest.mark.parametrize(
    ("launch", "digest", "basis"),
    [
        ("{port: 1234}", OURS.engine("ollama").launch.image_digest, OURS.engine("ollama").launch.image_digest_basis),
        ("{image: 'ollama/ollama:0.34.0'}", "", ""),
        ("{image_digest: 'sha256:" + "ab" * 32 + "'}", "sha256:" + "ab" * 32, ""),
    ],
    ids=["another field", "another image", "a digest of their own"],
)
def test_what_we_say_of_an_image_falls_with_it(tmp_path: Path, launch: str, digest: str, basis: str) -> None:
    found = load_catalog(overlay=put(tmp_path, f"launch: {launch}\n", "ollama.yaml")).engine("ollama").launch
    assert (found.image_digest, found.image_digest_basis) == (digest, basis)


HOSTILE: dict[str, tuple[str, int, str]] = {
    "an unknown key": ("colour: red\n", 1, "colour: is no field here"),
    "an unknown criterion": ("axes:\n  batchin: {rating: 3, source: [x], versions: a, read_on: 2026-11-28, "
                             "statement: s, reason: r, evidence_kind: reported, confidence: low}\n",
                             2, "axes.batchin: is no criterion"),
    "a wrong type": ("name: vLLM\ncadence_days: often\n", 2, "cadence_days: input should be a valid integer"),
    "a rating out of range": (OWN_RATING.replace("rating: 1", "rating: 4"), 3, "axes.batching.rating: input should be"),
    "a rating without a source": ("name: v\naxes:\n  batching:\n    rating: 1\n", 4, "needs its own source"),
    "a rating with an empty source": (OWN_RATING.replace("source: [our bench run]", "source: ['']"), 5,
                                      "axes.batching.source.0"),
    "a source that nothing names": (OWN_RATING.partition("sources:")[0], 5, "'our bench run' is none of the file's"),
    "a source that nothing cites": (OWN_RATING + "  two: {address: a/b, version: v, read_on: 2026-11-28, read: r}\n",
                                    11, "sources.two: is cited nowhere"),
    "a source without an address": (OWN_RATING.replace("infra/benchmarks", "heard"), 10, "our bench run.address"),
    "another file's id": ("name: v\nid: sglang\n", 2, "'sglang' differs from the file's name"),
    "a key that stands twice": ("name: a\nname: b\n", 2, "'name' stands twice"),
    "an alias bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 1, "uses an anchor or alias"),
    "deep nesting": ("axes: " + "[" * 50 + "]" * 50 + "\n", 1, "nested deeper than 20 levels"),
    "deeper nesting": ("axes: " + "[" * 400_000, 1, "maximum nesting depth"),
    "an object of Python": ("name: !!python/object/apply:os.system [ls]\n", 1, "could not determine a constructor"),
    "a list": ("- a\n", 1, "holds no fields"),
    "broken YAML": ("name: [\n", 2, "not readable as YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_or_malformed_file_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    text, line, says = HOSTILE[name]
    refusal = refused(put(tmp_path, text, "vllm.yaml"))
    assert refusal.where == f"engines/vllm.yaml, line {line}"
    assert says in refusal.what


def test_a_rating_of_speed_from_documents_alone_has_to_be_marked(tmp_path: Path) -> None:
    text = OWN_RATING.replace("measured", "documented")
    assert "documentation alone, and is not marked" in refused(put(tmp_path, text, "vllm.yaml")).what
    marked = put(tmp_path, text.replace("    rating: 1", "    rating: 1\n    only_documented: true"), "vllm.yaml")
    os.utime(marked / "engines" / "vllm.yaml", ns=(0, 10**18))
    assert load_catalog(overlay=marked).engine("vllm").axes["batching"].only_documented


def test_a_file_of_50_mb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    own = put(tmp_path, "name: v\n", "vllm.yaml")
    os.truncate(own / "engines" / "vllm.yaml", 50_000_000)
    assert "50,000,000 bytes" in refused(own).what


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, linked: str) -> None:
    elsewhere = put(tmp_path / "elsewhere", facts())
    own = tmp_path / "own"
    own.mkdir()
    if linked == "folder":
        (own / "engines").symlink_to(elsewhere / "engines")
    else:
        (own / "engines").mkdir()
        (own / "engines" / "swiftserve.yaml").symlink_to("../../elsewhere/engines/swiftserve.yaml")
    assert "leads out of its folder" in refused(own).what


def test_a_pipe_is_not_waited_for_and_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    os.mkfifo(tmp_path / "engines" / "swiftserve.yaml")
    assert "is not a plain file" in refused(tmp_path).what
    (tmp_path / "engines" / "swiftserve.yaml").unlink()
    (tmp_path / "engines" / "swiftserve.yaml").symlink_to("nowhere.yaml")
    assert "cannot be read" in refused(tmp_path).what


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("llama-server.yaml", {"id": "llama-server"}, "'llama-server' is used by Ollama already"),
        ("swift.yaml", {}, "'swiftserve' differs from the file's name"),
        ("swiftserve.yml", {}, "does not end in .yaml"),
    ],
)
def test_an_engine_id_is_used_once(tmp_path: Path, name: str, change: dict[str, Any], says: str) -> None:
    refusal = refused(put(tmp_path, facts(**change), name))
    assert says in refusal.what
    where, _, line = refusal.where.partition(", line ")
    assert where == f"engines/{name}"
    if name.endswith(".yaml"):  # of another ending nothing is read
        written = (tmp_path / "engines" / name).read_text().splitlines()
        assert written[int(line) - 1].startswith("id: ")


def test_a_server_inside_an_own_engine_may_not_take_a_known_id(tmp_path: Path) -> None:
    inner = {k: v for k, v in facts(id="vllm").items() if k in OURS.engine("ollama").llama_server.model_fields_set}
    refusal = refused(put(tmp_path, facts(llama_server=inner)))
    assert "llama_server.id: 'vllm' is used by vLLM already" in refusal.what
    line = int(refusal.where.rpartition(" ")[2])
    assert (tmp_path / "engines" / "swiftserve.yaml").read_text().splitlines()[line - 1] == "  id: vllm"


def test_one_bad_file_leaves_the_good_ones(tmp_path: Path) -> None:
    put(tmp_path, facts())
    put(tmp_path, "colour: red\n", "vllm.yaml")
    (tmp_path / "gpus.yaml").write_text(
        "schema: 1\ngpus:\n- {id: nvidia-rtx-3090, tdp_w: 300}\n- {id: nvidia-rtx-4090, tdp_w: much}\n"
    )
    (tmp_path / "models.yaml").write_text("models: [")
    found = load_catalog(overlay=tmp_path, tolerant=True)
    assert "swiftserve" in found.engines
    assert found.gpu("RTX 3090").tdp_w == 300
    assert found.gpu("RTX 4090") == OURS.gpu("RTX 4090")
    assert [r.where for r in found.refused] == [
        "models.yaml, line 2", "gpus.yaml, line 4, gpus 'nvidia-rtx-4090'", "engines/vllm.yaml, line 1",
    ]  # fmt: skip
