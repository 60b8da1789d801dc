"""What git says of a folder that decisions are written to: an unfinished merge, and who edited a file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from planner.errors import NotAllowed

# Files of git's own folder that stand there while something is unfinished, and what it is called.
_UNFINISHED = {
    "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert", "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}  # fmt: skip
_PATIENCE_S = 20


class Commit(NamedTuple):
    """Who last changed a file in a git tree, and the first line of what they wrote about it."""

    author: str
    subject: str


def must_be_finished(folder: Path) -> None:
    """Raise NotAllowed while a merge, rebase or the like is under way in the git tree around a folder."""
    git_folder = _git(folder, "rev-parse", "--absolute-git-dir")
    if git_folder is None:
        return
    under_way = next((words for name, words in _UNFINISHED.items() if (Path(git_folder) / name).exists()), None)
    if under_way:
        raise NotAllowed(f"is in the middle of a {under_way}.", where=str(folder),
                         fix="Finish or abort it, then export again.")  # fmt: skip


def last_commit(path: Path) -> Commit | None:
    """Who last committed a file; None outside a git tree, or where the file has changes that nobody committed yet."""
    if _git(path.parent, "status", "--porcelain", "--", path.name) != "":
        return None
    told = _git(path.parent, "log", "-1", "--format=%an%x00%s", "--", path.name)
    author, _, subject = (told or "").partition("\0")
    return Commit(author, subject) if author else None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers in a folder; None where it fails, is not installed, or the folder is in no tree."""
    at = next((p for p in (folder, *folder.absolute().parents) if p.is_dir()), None)
    try:
        ran = subprocess.run(
            ["git", "-C", str(at), *arguments], capture_output=True, encoding="utf-8", errors="replace",
            timeout=_PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None
