"""Pack what a GPU box without network needs into one archive: python -m scripts.gpu_kit --arch arm64 --plan plan.yaml

Inside are bench with the rooms it stands on, the catalogue, the plan, wheels of their few dependencies for the box's
processor, and a README. Only the download of the wheels needs a network; --wheels takes a folder of them instead.
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
from pathlib import Path

from planner.errors import FliplineError, InputError, UnknownName
from planner.poc import plan_from_yaml

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("bench", "bundle", "planner", "catalog")
NEEDED = ("pydantic", "pyyaml", "pyarrow", "httptools", "rich")
# Reads the GPUs' memory and power; bench does without, so a missing wheel is no fault.
OPTIONAL = "nvidia-ml-py>=12"
PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
# pip takes every tag by name when it downloads for another machine; glibc 2.28 is Debian 10, Ubuntu 20.04, RHEL 8.
GLIBC_TAGS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
PYTHONS = ("3.11", "3.12", "3.13")

README = """# Flipline on a GPU box without network ({arch})

Needs Linux on {processor} with Python {pythons}. Engines are not in here: bring them as container images or as
environments of their own, as the plan names them.

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


def requirements() -> list[str]:
    """The lines of requirements.txt that bench needs."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if re.split(r"[<>=~! ]", line)[0].lower() in NEEDED]


def download_command(arch: str, python: str, target: Path, what: list[str]) -> list[str]:
    """pip's argument list that fetches wheels for a processor and a Python, whatever this machine is."""
    platforms = [f"{tag}_{PROCESSORS[arch]}" for tag in GLIBC_TAGS]
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--dest", str(target),
             "--implementation", "cp", "--python-version", python]  # fmt: skip
    return [*words, *(w for p in platforms for w in ("--platform", p)), *what]


def download(arch: str, pythons: tuple[str, ...], target: Path) -> None:
    """Fetch the wheels; raises InputError with pip's last line when that fails."""
    for python in pythons:
        done = subprocess.run(download_command(arch, python, target, requirements()), capture_output=True, text=True)
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


def contents(arch: str, plan: Path | None, wheels: Path, pythons: tuple[str, ...]) -> dict[str, bytes]:
    """Every file of the kit by its name; raises InputError for a plan that bench would refuse."""
    found = {
        str(p.relative_to(ROOT)): p.read_bytes()
        for room in ROOMS
        for p in sorted((ROOT / room).rglob("*"))
        if p.is_file() and "__pycache__" not in p.parts
    }
    found |= {f"wheels/{p.name}": p.read_bytes() for p in sorted(wheels.glob("*.whl"))}
    lines = requirements() + (["nvidia-ml-py"] if any("nvidia_ml_py" in name for name in found) else [])
    found["requirements.txt"] = "".join(f"{line}\n" for line in lines).encode()
    said = "The plan was not packed: copy it here as plan.yaml."
    if plan:
        try:
            text = plan.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise InputError(f"cannot be read: {e}.", where=str(plan)) from None
        read = plan_from_yaml(text, where=plan.name)
        found["plan.yaml"] = text.encode()
        said = f"The plan is {read.title!r} of case {read.case}, SHA-256 {read.sha256()}."
    found["README.md"] = README.format(arch=arch, processor=PROCESSORS[arch], plan=said,
                                       pythons=" or ".join(pythons)).encode()  # fmt: skip
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(found.items()))
    return found | {"SHA256SUMS": sums.encode()}


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
            download(arch, pythons, Path(scratch))
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
