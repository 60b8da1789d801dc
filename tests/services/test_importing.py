"""Folders of decisions come in once, whole files only; hand-edited exports come back as edits of who edited them."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from decisions.record import People, Status
from planner.errors import ConflictError, InputError, NotAllowed
from services.decisions import accept, comment, open_adr, propose_draft, save
from services.exporting import export_all, export_markdown, plan_export
from services.hand_edits import read_hand_edit, take_hand_edit
from services.importing import import_path
from services.opinions import answer_objection, approve, object_to
from tests.decisions.corpus import SHAPES
from tests.services.conftest import opened
from tests.services.made import CASE, accepted, decide, superseding

GIT = ("git", "-c", "user.name=Ann Reviewer", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, "-C", str(folder), *arguments], check=False, capture_output=True)


def said(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run([*GIT, "-C", str(folder), *arguments], check=True, capture_output=True, input=given).stdout


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    for shape in SHAPES:
        (folder / shape.name).write_bytes(shape.body)
    (folder / "README.md").write_text("# Our decisions\n\n## Status\n")
    (folder / "adr-template.md").write_text("# {title}\n\n## Status\n\n{status}\n")
    (folder / "notes.md").write_text("# Notes\n\n## Milk\n\nBuy some.\n")
    return folder


def test_a_corpus_of_real_shapes_comes_in_with_links_at_both_ends(shipped, corpus):
    done = import_path(shipped, CASE, corpus, "Kim")
    assert (len(done.new), done.broken, sorted(done.passed_over)) == (
        len(SHAPES), (), ["README.md", "adr-template.md", "notes.md"],
    )  # fmt: skip
    by_title = {a.title: a for a in done.new}
    assert {s.fields["title"]: s.status for s in SHAPES if "title" in s.fields}.items() <= {
        t: a.status for t, a in by_title.items()
    }.items()
    for old, new in (("Keep sessions in memory", "Keep sessions in Redis"), ("Cache answers", "Cache nothing")):
        assert by_title[old].superseded_by == by_title[new].id
        assert by_title[new].supersedes == (by_title[old].id,)
    assert by_title["Keep sessions in Redis"].number == 3
    assert by_title["Keep sessions in Redis"].accepted_at.isoformat() == "2024-04-01T00:00:00+00:00"
    assert by_title["Use PostgreSQL"].accepted_by == "Ann, Bo"
    assert shipped.store.adrs.verify() == ()


def test_the_same_folder_again_brings_nothing_twice(shipped, corpus):
    first = import_path(shipped, CASE, corpus, "Kim")
    again = import_path(shipped, CASE, corpus, "Kim")
    assert (again.new, len(again.there)) == ((), len(first.new))


def test_a_successor_that_comes_later_supersedes_what_is_here(shipped, corpus):
    (corpus / "0008-cache-nothing.md").rename(corpus.parent / "later.md")
    old = next(a for a in import_path(shipped, CASE, corpus, "Kim").new if a.title == "Cache answers")
    assert old.status is Status.DEPRECATED  # its file says by what it was superseded, and that is not here
    (corpus.parent / "later.md").rename(corpus / "0008-cache-nothing.md")
    (new,) = import_path(shipped, CASE, corpus, "Kim").new
    assert shipped.store.adrs.get(old.id).superseded_by == new.id


def test_numbers_that_are_taken_here_give_way(shipped, corpus):
    accepted(shipped)  # ADR-0001
    done = import_path(shipped, CASE, corpus, "Kim")
    numbers = {a.title: a.number for a in done.new}
    assert numbers["Keep sessions in memory"] == 2
    assert numbers["Record architecture decisions"] == max(n for n in numbers.values() if n)


def test_what_was_rejected_here_is_superseded_by_nothing_that_comes(shipped, tmp_path):
    (tmp_path / "0001-a.md").write_text("# Use A\n\n## Status\n\nRejected\n")
    (old,) = import_path(shipped, CASE, tmp_path, "Kim").new
    (tmp_path / "0002-b.md").write_text("# Use B\n\n## Status\n\nAccepted\n\nSupersedes [A](0001-a.md)\n")
    done = import_path(shipped, CASE, tmp_path, "Kim")
    assert ([a.title for a in done.new], done.broken) == (["Use B"], ())
    assert shipped.store.adrs.get(old.id).status is Status.REJECTED


def test_an_import_into_the_same_folder_as_the_export_leaves_their_files_as_they_are(shipped, corpus):
    import_path(shipped, CASE, corpus, "Kim")
    before = {p.name: p.read_bytes() for p in corpus.iterdir()}
    planned = plan_export(shipped, corpus)
    assert {p.name for p in planned.left} == {s.name for s in SHAPES}
    export_all(shipped, corpus)
    after = {p.name: p.read_bytes() for p in corpus.iterdir()}
    assert {name: after[name] for name in before} == before
    index = after["index.md"].decode()  # README.md is theirs
    assert "| 0003 | [Keep sessions in Redis](<0003-keep-sessions-in-redis.md>) | Accepted | 2024-04-01 |" in index


def test_a_file_is_the_same_decision_whichever_way_it_is_brought(shipped, tmp_path):
    docs = tmp_path / "docs"
    for team in ("ours", "theirs"):
        (docs / team).mkdir(parents=True)
        (docs / team / "0001-store.md").write_text(
            f"# Store of {team}\n\n## Status\n\nAccepted\n\n## Decision\n\nOne.\n"
        )
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in sorted(docs.rglob("*.md")):
            out.write(path, path.relative_to(tmp_path))
    (ours,) = import_path(shipped, CASE, docs / "ours", "Kim").new
    (theirs,) = import_path(shipped, CASE, docs, "Kim").new  # the other team's: the same name, another text
    assert (ours.title, theirs.title) == ("Store of ours", "Store of theirs")
    for way in (docs, archive, docs / "ours", docs / "ours" / "0001-store.md"):
        assert import_path(shipped, CASE, way, "Kim").new == ()
    planned = plan_export(shipped, docs / "theirs")
    assert [p.name for p in planned.left] == ["0001-store.md"]
    assert [f.path.name for f in planned.files if f.kind == "decision"] == ["0003-store-of-ours.md"]


def test_what_was_exported_comes_into_an_empty_log_and_out_again_the_same(shipped, tmp_path):
    (tmp_path / "other").mkdir()
    ws = opened(tmp_path / "other")
    old = accepted(shipped)
    comment(shipped, old.id, "Kim", "Seen by *operators*, <b>twice</b>.\nOnce more  on Monday.\n\n- Kim ")
    decide(shipped, superseding(shipped, old))
    paths = export_all(shipped, tmp_path / "out")
    ws.store.cases.add(shipped.store.cases.get(CASE))
    done = import_path(ws, CASE, tmp_path / "out", "Lee")
    assert [a.text for a in done.new] == [shipped.store.adrs.get(a.id).text for a in done.new]
    assert done.broken == ()
    (said,) = ws.store.adrs.get(old.id).comments
    assert said.text == "Seen by *operators*, <b>twice</b>.\nOnce more  on Monday.\n\n- Kim "
    assert ws.store.adrs.verify() == ()
    judged = {condition for adr, condition in ws.store.verdicts.latest(done.new[-1].case) if adr == done.new[-1].id}
    assert judged == {c.id for c in done.new[-1].active_conditions}  # at once, with what is known there
    for path, adr in zip(paths, done.new, strict=True):
        there, here = path.read_text(), export_markdown(ws, adr.id)[1]
        assert told(here) == told(there)
    assert import_path(ws, CASE, tmp_path / "out", "Lee").new == ()
    ws.store.close()


def test_who_approved_and_who_objected_comes_into_an_empty_log_too(shipped, tmp_path):
    (tmp_path / "other").mkdir()
    ws = opened(tmp_path / "other")
    opened_one = open_adr(shipped, next(a.id for a in shipped.store.adrs.all()))
    id = opened_one.adr.id
    propose_draft(shipped, id, opened_one.version, "Tanaka")
    approve(shipped, id, "Kim (ops)")
    object_to(shipped, id, "Lee", "too many releases (two a month): see below")
    proposal = open_adr(shipped, id)
    save(shipped, proposal, proposal.adr.text.model_copy(update={"people": People(decided=("Sato",))}), "Tanaka")
    approve(shipped, id, "Mori", "now it names who decides")
    answer_objection(shipped, id, "Lee", "Sato", "one a quarter is enough")
    was = accept(shipped, id, "Sato").opinions
    export_all(shipped, tmp_path / "out")
    ws.store.cases.add(shipped.store.cases.get(CASE))
    (came,) = import_path(ws, CASE, tmp_path / "out", "Ann").new
    assert [o.model_dump(exclude={"at"}) for o in came.opinions] == [o.model_dump(exclude={"at"}) for o in was]
    assert [(o.author, o.outdated, o.at.date()) for o in came.opinions] == [
        ("Kim (ops)", True, was[0].at.date()), ("Mori", False, was[1].at.date()), ("Lee", False, was[2].at.date()),
    ]  # fmt: skip
    assert ws.store.adrs.verify() == ()
    ws.store.close()


def test_an_opinion_of_a_block_that_was_spoiled_keeps_its_file_out(shipped, tmp_path):
    (tmp_path / "other").mkdir()
    ws = opened(tmp_path / "other")
    old = accepted(shipped)
    object_to(shipped, old.id, "Lee", "too many releases")
    (path,) = export_all(shipped, tmp_path / "out")
    path.write_text(path.read_text().replace("  reason: too many releases\n", ""))
    ws.store.cases.add(shipped.store.cases.get(CASE))
    done = import_path(ws, CASE, tmp_path / "out", "Ann")
    assert (done.new, [b.file for b in done.broken]) == ((), [path.name])
    assert "cannot be objected to without a reason" in str(done.broken[0].error)
    ws.store.close()


def told(markdown: str) -> tuple[list[str], dict]:
    """What a file says beyond hashes, and beyond verdicts, which need evidence that Markdown does not carry."""
    prose, block = markdown.split("```yaml\n")
    machine = yaml.safe_load(block.removesuffix("```\n"))
    conditions = [{k: v for k, v in c.items() if k != "state"} for c in machine["conditions"]]
    unlike = {k: v for k, v in machine.items() if k not in ("head", "text_sha256", "judged_in", "exact")}
    return [x for x in prose.split("\n") if not x.startswith(("| `", "> "))], {**unlike, "conditions": conditions}


def test_a_hand_edit_comes_back_with_the_author_that_git_names_and_is_then_written_over(shipped, tmp_path):
    adr = accepted(shipped)
    git(tmp_path, "init")
    folder = tmp_path / "docs"
    (path,) = export_all(shipped, folder)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "Export")
    path.write_text(
        path.read_text().replace("### For machines", "### Comments\n\n* Not on Fridays.\n\n### For machines")
    )
    with pytest.raises(NotAllowed, match="was edited by hand"):
        export_all(shipped, folder)
    assert "+* Not on Fridays." in plan_export(shipped, folder).refused[0].difference
    git(tmp_path, "commit", "-a", "-m", "Review of the export")
    (came,) = import_path(shipped, CASE, folder, "Kim").edited
    edit = shipped.store.adrs.edits(adr.id)[-1]
    assert (edit.kind, edit.author, edit.text, edit.reason) == (
        "comment", "Ann Reviewer", "Not on Fridays.", "Review of the export",
    )  # fmt: skip
    assert came.edit.asked.refused == ()
    assert export_all(shipped, folder) == (path,)  # nothing of the hand edit is lost any more
    assert "Ann Reviewer" in path.read_text()
    assert len(import_path(shipped, CASE, folder, "Kim").there) == 1


def test_a_name_in_another_encoding_is_read_as_far_as_it_can_be(shipped, tmp_path):
    adr = accepted(shipped)
    git(tmp_path, "init")
    (path,) = export_all(shipped, tmp_path)
    path.write_text(path.read_text().replace("### For machines", "### Comments\n\n* No.\n\n### For machines"))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "Review")
    was = said(tmp_path, "cat-file", "commit", "HEAD")
    latin = was.replace(b"author Ann Reviewer", b"author J\xfcrgen")  # as a foreign client may write it
    written = said(tmp_path, "hash-object", "-t", "commit", "-w", "--stdin", given=latin)
    git(tmp_path, "update-ref", "HEAD", written.decode().strip())
    import_path(shipped, CASE, tmp_path, "Kim")
    assert shipped.store.adrs.edits(adr.id)[-1].author == "J\ufffdrgen"


def test_an_edit_that_nobody_committed_yet_is_of_who_brings_it(shipped, tmp_path):
    adr = accepted(shipped)
    git(tmp_path, "init")
    (path,) = export_all(shipped, tmp_path)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "Export")
    path.write_text(path.read_text().replace("### For machines", "### Comments\n\n* No.\n\n### For machines"))
    import_path(shipped, CASE, tmp_path, "Kim")
    edit = shipped.store.adrs.edits(adr.id)[-1]
    assert (edit.author, edit.reason) == ("Kim", "")


def test_a_hand_edit_that_was_read_before_somebody_wrote_is_a_conflict(shipped, tmp_path):
    adr = accepted(shipped)
    (path,) = export_all(shipped, tmp_path)
    text = path.read_text().replace("### For machines", "### Comments\n\n* No.\n\n### For machines")
    read = read_hand_edit(shipped, text, path.name, author="Kim")
    comment(shipped, adr.id, "Lee", "Wait.")
    with pytest.raises(ConflictError, match="Lee added 'comment'"):
        take_hand_edit(shipped, read)
    assert [c.text for c in shipped.store.adrs.get(adr.id).comments] == ["Wait."]


def test_the_author_of_what_is_not_committed_is_who_brings_it(shipped, tmp_path):
    adr = accepted(shipped)
    (path,) = export_all(shipped, tmp_path / "docs")
    path.write_text(path.read_text().replace("### For machines", "### Comments\n\n* No.\n\n### For machines"))
    import_path(shipped, CASE, tmp_path / "docs", "Kim")
    assert shipped.store.adrs.edits(adr.id)[-1].author == "Kim"
    with pytest.raises(InputError, match="nobody is named"):
        take_hand_edit(shipped, read_hand_edit(shipped, path.read_text().replace("* No.", "* Yes."), "x", author=""))


def test_what_cannot_be_an_edit_changes_nothing(shipped, tmp_path):
    adr = accepted(shipped)
    (path,) = export_all(shipped, tmp_path / "docs")
    path.write_text(path.read_text().replace("Nortia, internal assistant: 20", "Nortia: 20", 1))
    head = shipped.store.adrs.head(adr.id)
    (refused,) = import_path(shipped, CASE, tmp_path / "docs", "Kim").refused
    assert "context of an ADR that is accepted does not change" in refused.edit.asked.refused[0]
    assert shipped.store.adrs.head(adr.id) == head


@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge", "CHERRY_PICK_HEAD"])
def test_a_git_tree_in_the_middle_of_a_merge_is_left_alone(shipped, tmp_path, name):
    accepted(shipped)
    git(tmp_path, "init")
    (tmp_path / ".git" / name).write_text("0" * 40)
    with pytest.raises(NotAllowed, match=r"is in the middle of a (merge|rebase|cherry-pick)\. Finish or abort it"):
        export_all(shipped, tmp_path / "docs" / "decisions")
    assert not (tmp_path / "docs").exists()


def test_a_file_with_the_marks_of_a_merge_is_neither_written_over_nor_read(shipped, tmp_path):
    accepted(shipped)
    (path,) = export_all(shipped, tmp_path)
    path.write_text(path.read_text().replace("* vLLM\n", "<<<<<<< HEAD\n* vLLM\n=======\n* vllm\n>>>>>>> b\n", 1))
    with pytest.raises(NotAllowed, match="holds the marks of an unfinished merge"):
        export_all(shipped, tmp_path)
    (broken,) = import_path(shipped, CASE, tmp_path, "Kim").broken
    assert "holds the marks of an unfinished merge" in str(broken.error)


def test_ten_thousand_files_come_in_and_five_broken_ones_are_named_with_their_lines(shipped, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "0001-d.md").write_text("# Choose\n\n## Status\n\nAccepted\n\n## Decision\n\nYes.\n")
    for n in range(2, 9_996):
        os.link(folder / "0001-d.md", folder / f"{n:04d}-d.md")
    for n, body in enumerate(
        (b"", b"# T\n\xff\n", b"---\nstatus: x\n", b"# T\n<<<<<<< HEAD\n", b"---\na: b: c\n---\n# T\n"), 9_996
    ):
        (folder / f"{n}-broken.md").write_bytes(body)
    done = import_path(shipped, CASE, folder, "Kim")
    assert done.sentence == "9995 new, 5 broken."
    assert sorted(str(b.error).split(": ")[0] for b in done.broken) == [
        "10000-broken.md, line 2", "9996-broken.md, line 1", "9997-broken.md, line 2", "9998-broken.md, line 1",
        "9999-broken.md, line 2",
    ]  # fmt: skip


def test_an_archive_comes_in_like_its_folder(shipped, corpus, tmp_path):
    archive = tmp_path / "theirs.zip"
    with zipfile.ZipFile(archive, "w") as z:
        for path in sorted(corpus.iterdir()):
            z.write(path, path.name)
    assert len(import_path(shipped, CASE, archive, "Kim").new) == len(SHAPES)


@pytest.mark.parametrize(
    ("name", "body", "says"), [("a.zip", b"no", "cannot be opened"), ("none", None, "is not there")]
)
def test_what_is_no_folder_of_decisions_is_refused(shipped, tmp_path, name, body, says):
    if body is not None:
        (tmp_path / name).write_bytes(body)
    with pytest.raises(InputError, match=says):
        import_path(shipped, CASE, tmp_path / name, "Kim")


def zipped_decisions(path, files, change=lambda body: body):
    """An archive of texts by name, its bytes changed afterwards."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    path.write_bytes(change(path.read_bytes()))
    return path


def test_an_archive_that_unfolds_into_gigabytes_is_refused(shipped, tmp_path):
    page = f"# T\n\n## Status\n\naccepted\n{'x' * 2**20}"
    bomb = zipped_decisions(tmp_path / "bomb.zip", {f"{i:04d}-x.md": page for i in range(201)})
    assert bomb.stat().st_size < 2**20
    with pytest.raises(InputError, match=r"bomb\.zip: holds more than 200 MiB of Markdown"):
        import_path(shipped, "nortia", bomb, "Eve")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda body: body.replace("é".encode(), b"\xff\xff"), "holds a file whose name cannot be read"),
        (lambda body: body[:45] + bytes(8) + body[53:], "cannot be opened"),
    ],
    ids=["name", "damaged"],
)
def test_an_archive_that_is_spoiled_is_one_sentence(shipped, tmp_path, change, says):
    spoiled = zipped_decisions(tmp_path / "a.zip", {"0001-é.md": "# T\n\n## Status\n\naccepted\n" * 50}, change)
    with pytest.raises(InputError, match=rf"a\.zip: {says}"):
        import_path(shipped, "nortia", spoiled, "Eve")


def test_a_file_whose_name_is_no_text_comes_in(shipped, tmp_path):
    (tmp_path / os.fsdecode(b"0001-\xff.md")).write_text("# Nameless\n\n## Status\n\naccepted\n")
    done = import_path(shipped, "nortia", tmp_path, "Eve")
    assert [a.title for a in done.new] == ["Nameless"] and not done.broken
