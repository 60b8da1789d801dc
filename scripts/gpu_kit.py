"""Pack what a GPU box without network needs into one archive: python -m scripts.gpu_kit --arch arm64 --plan plan.yaml

Inside are bench with the rooms it stands on, the catalogue, the plan with the files it names, wheels of their few
dependencies for the box's processor, and a README. Only the download of the wheels needs a network; --wheels takes a
folder of them instead.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from bench.inputs import read_inputs
from planner.errors import FliplineError, InputError, UnknownName
from planner.plan_file import plan_from_yaml
from planner.poc import Plan

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("bench", "bundle", "planner", "catalog")
NEEDED = ("pydantic", "pyyaml", "pyarrow", "httptools", "rich")
# Reads the GPUs' memory and power; bench does without, so a missing wheel is no fault.
OPTIONAL = "nvidia-ml-py>=12"
COUNTER = "tokenizers"  # reads the tokenizer.json of a plan with a tokenizer_dir
PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
# pip takes every tag by name when it downloads for another machine; glibc 2.28 is Debian 10, Ubuntu 20.04, RHEL 8.
GLIBC_TAGS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
PYTHONS = ("3.11", "3.12", "3.13")

README = """# Flipline on a GPU box without network ({arch})

Needs Linux on {processor} with glibc 2.28 or newer and Python {pythons}. Engines are not in here: bring them as
container images or as environments of their own, as the plan names them.

1. Check that the copy is whole: `sha256sum --check --quiet SHA256SUMS`
2. Install, from this folder alone:

       python3 -m venv venv
       venv/bin/python -m pip install --no-index --find-links wheels --no-compile -r requirements.txt

   Without the venv module: `python3 -m pip install --no-index --find-links wheels --target site -r requirements.txt`,
   and then `PYTHONPATH=site python3` in place of `venv/bin/python` below.
3. See what on this machine would spoil a measurement: `venv/bin/python -m bench doctor`
4. Try every server of the plan with one request: `venv/bin/python -m bench check plan.yaml`
5. Measure: `venv/bin/python -m bench run plan.yaml --out results`. The same command goes on after an interruption.
6. Look: `venv/bin/python -m bench summary results`. Bring the folder `results` back and take it in on the Measure page.

To rehearse without an engine, serve an emulated one: `venv/bin/python -m bench emulate --port 8000`.
{plan}
"""


def requirements(plan: Plan | None = None) -> list[str]:
    """The lines of requirements.txt that bench needs, and what the plan needs beside them."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needed = [line for line in lines if re.split(r"[<>=~! ]", line)[0].lower() in NEEDED]
    return needed + ([COUNTER] if plan and plan.tokenizer_dir else [])


def download_command(arch: str, python: str, target: Path, what: list[str]) -> list[str]:
    """pip's argument list that fetches wheels for a processor and a Python, whatever this machine is."""
    platforms = [f"{tag}_{PROCESSORS[arch]}" for tag in GLIBC_TAGS]
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(target),
             "--implementation", "cp", "--python-version", python]  # fmt: skip
    return [*words, *(w for p in platforms for w in ("--platform", p)), *what]


def download(arch: str, pythons: tuple[str, ...], target: Path, what: list[str]) -> None:
    """Fetch the wheels; raises InputError with pip's last line when that fails."""
    for python in pythons:
        done = subprocess.run(download_command(arch, python, target, what), capture_output=True, text=True)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise InputError(f"the wheels for Python {python} on {arch} did not come: {last}",
                             fix="Run it where a package index answers, or name a folder of wheels with --wheels.",
                             )  # fmt: skip
    optional = subprocess.run(
        download_command(arch, pythons[0], target, ["--no-deps", OPTIONAL]), capture_output=True, text=True
    )
    if optional.returncode != 0:
        print("gpu-kit: nvidia-ml-py did not come; GPU memory and power will not be read.", file=sys.stderr)


def read_plan(path: Path) -> Plan:
    """The plan to pack; raises InputError when bench would refuse it, or a file that it names beside itself."""
    try:
        plan = plan_from_yaml(path.read_text(encoding="utf-8"), where=path.name)
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"cannot be read: {e}.", where=str(path)) from None
    for name in _named(plan):
        if ".." in PurePosixPath(name).parts:
            raise InputError("lies outside the plan's folder, so it cannot come along.", where=name,
                             fix="Put it beside the plan, or name its full path on the box.")  # fmt: skip
    # Counting tokens is left to the box: it needs a package that this machine may lack.
    points = tuple(p for p in plan.load_points if not p.file or not _on_the_box(p.file))
    read_inputs(plan.model_copy(update={"load_points": points, "tokenizer_dir": ""}), path.parent)
    return plan


def _named(plan: Plan) -> list[str]:
    """Files that a plan names: traces, own prompts, quality sets, and the tokenizer's."""
    tokenizer = [f"{plan.tokenizer_dir}/tokenizer.json"] if plan.tokenizer_dir else []
    return sorted({p.file for p in plan.load_points if p.file} | set(tokenizer))


def _on_the_box(name: str) -> bool:
    return PurePosixPath(name).is_absolute()


def plan_files(plan: Plan, folder: Path) -> dict[str, bytes]:
    """The files beside a plan by the names under which it finds them; raises InputError when one is not there."""
    found = {}
    for name in (n for n in _named(plan) if not _on_the_box(n)):
        try:
            found[str(PurePosixPath(name))] = (folder / name).read_bytes()
        except OSError as e:
            raise InputError(f"cannot be read: {e.strerror}.", where=name,
                             fix="Its path is relative to the plan's folder.") from None  # fmt: skip
    return found


def contents(arch: str, plan: Path | None, wheels: Path, pythons: tuple[str, ...]) -> dict[str, bytes]:
    """Every file of the kit by its name; raises InputError for a plan that bench would refuse."""
    found = {
        str(p.relative_to(ROOT)): p.read_bytes()
        for room in ROOMS
        for p in sorted((ROOT / room).rglob("*"))
        if p.is_file() and "__pycache__" not in p.parts
    }
    found |= {f"wheels/{p.name}": p.read_bytes() for p in sorted(wheels.glob("*.whl"))}
    read = read_plan(plan) if plan else None
    lines = requirements(read) + (["nvidia-ml-py"] if any("nvidia_ml_py" in name for name in found) else [])
    found["requirements.txt"] = "".join(f"{line}\n" for line in lines).encode()
    said = "The plan was not packed: copy it here as plan.yaml, with the files that it names beside it."
    if plan and read:
        beside = plan_files(read, plan.parent) | {"plan.yaml": plan.read_bytes()}
        if taken := sorted(found.keys() & beside.keys()):
            raise InputError("is the name of a file of the kit.", where=taken[0], fix="Rename the plan's file.")
        found |= beside
        said = "\n".join(_said(read))
    found["README.md"] = README.format(arch=arch, processor=PROCESSORS[arch], plan=said,
                                       pythons=" or ".join(pythons)).encode()  # fmt: skip
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(found.items()))
    return found | {"SHA256SUMS": sums.encode()}


def _said(plan: Plan) -> list[str]:
    """What the README says about the plan."""
    named = _named(plan)
    packed, away = [n for n in named if not _on_the_box(n)], [n for n in named if _on_the_box(n)]
    lines = [f"The plan is {plan.title!r} of case {plan.case}, SHA-256 {plan.sha256()}."]
    lines += [f"Beside it lie the files that it names: {', '.join(packed)}."] if packed else []
    return lines + ([f"Not in here, as the plan names them on the box: {', '.join(away)}."] if away else [])


def pack(files: dict[str, bytes], archive: Path) -> None:
    """Write the archive in one rename; equal files give equal bytes. Not compressed: wheels are already."""
    part = archive.with_name(f"{archive.name}.part")
    with tarfile.open(part, "w") as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{archive.stem}/{name}")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    part.replace(archive)


def build(
    arch: str, out: Path, *, plan: Path | None = None, wheels: Path | None = None, pythons: tuple[str, ...] = PYTHONS
) -> Path:
    """Make the kit for a processor and return the archive; raises InputError."""
    if arch not in PROCESSORS:
        raise UnknownName.from_known("architecture", arch, PROCESSORS)
    out.mkdir(parents=True, exist_ok=True)
    archive = out / f"flipline-gpu-kit-{arch}.tar"
    if wheels and not any(wheels.glob("*.whl")):
        raise InputError("holds no wheels.", where=str(wheels), fix="Fill it with `pip download`.")
    with tempfile.TemporaryDirectory() as scratch:
        if wheels is None:
            download(arch, pythons, Path(scratch), requirements(read_plan(plan) if plan else None))
        pack(contents(arch, plan, wheels or Path(scratch), pythons), archive)
    return archive


def main(arguments: list[str] | None = None) -> int:
    """Build one kit from the command line; exit code 0, or 2 when something given is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.gpu_kit", description="Pack what a GPU box without network needs into one archive.",
        epilog="Example: python -m scripts.gpu_kit --arch arm64 --plan plan.yaml",
    )  # fmt: skip
    parser.add_argument("--arch", required=True, help=f"processor of the box: {' or '.join(PROCESSORS)}")
    parser.add_argument("--plan", type=Path, help="plan file to pack")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "gpu-kit", help="folder for the archive")
    parser.add_argument("--wheels", type=Path, help="folder of wheels to pack instead of downloading them")
    parser.add_argument("--python", action="append", default=[], metavar="3.12",
                        help=f"a Python of the box; otherwise {', '.join(PYTHONS)}")  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        archive = build(options.arch, options.out, plan=options.plan, wheels=options.wheels,
                        pythons=tuple(options.python) or PYTHONS)  # fmt: skip
    except FliplineError as e:
        print(f"gpu-kit: {e}", file=sys.stderr)
        return 2
    print(f"{archive} ({archive.stat().st_size / 1e6:.0f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
