"""The kit for a box without network: packed here, unpacked and run where there is nothing but loopback."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from itertools import pairwise
from pathlib import Path

import pytest

from bundle.folder import open_bundle
from planner.errors import UnknownName
from planner.plan_file import plan_to_yaml
from scripts.gpu_kit import PROCESSORS, ROOT, build, download_command, main, requirements
from tests.bench.helpers import candidate, plan, point

# What the five requirements bring along, as pip lists it.
CLOSURE = ("pydantic", "pydantic_core", "annotated-types", "typing_extensions", "typing-inspection", "pyyaml",
           "pyarrow", "httptools", "rich", "markdown-it-py", "mdurl", "pygments")  # fmt: skip
# The files of a plan: own prompts, a trace, a quality set.
BESIDE: list[tuple[str, str, dict[str, object], list[dict[str, object]]]] = [
    ("own/prompts.jsonl", "prompts_file", {"in_flight": 2}, [{"prompt": f"Sum {i} and {i}."} for i in range(4)]),
    ("trace.jsonl", "trace_file", {"shape": "trace"},
     [{"t_s": i / 10, "input_tokens": 40, "output_tokens": 6} for i in range(4)]),
    ("set.jsonl", "quality_file", {"shape": "quality", "in_flight": 2},
     [{"id": f"q{i}", "prompt": f"Say w{i}.", "contains": "w"} for i in range(2)]),
]  # fmt: skip
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
ARCH = {processor: arch for arch, processor in PROCESSORS.items()}[os.uname().machine]


def wheel_of(installed: Distribution, folder: Path) -> None:
    """Pack an installed package as the wheel that it came from, so that the test needs no index."""
    name = str(installed.metadata["Name"]).replace("-", "_")
    tag = (installed.read_text("WHEEL") or "").partition("Tag: ")[2].split()[0]
    info = next(f for f in installed.files or () if f.name == "METADATA").parent
    with zipfile.ZipFile(folder / f"{name}-{installed.version}-{tag}.whl", "w") as z:
        record = f"{info}/RECORD,,\n"
        for file in installed.files or ():
            if ".." in file.parts or file.name in ("RECORD", "INSTALLER", "REQUESTED") or file.suffix == ".pyc":
                continue
            if file.parts[1:2] and file.parts[1] in ("include", "tests"):  # half of pyarrow, and never imported
                continue
            z.write(Path(str(file.locate())), str(file))
            record += f"{file},,\n"
        z.writestr(f"{info}/RECORD", record)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive for this machine's processor, with a plan that starts the emulator."""
    folder = tmp_path_factory.mktemp("kit")
    wheels = folder / "wheels"
    wheels.mkdir()
    for name in CLOSURE:
        wheel_of(distribution(name), wheels)
    (folder / "own").mkdir()
    points = [point(requests=4, warmup_requests=0)]
    for name, field, more, rows in BESIDE:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / name).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        points.append({"name": field.partition("_")[0], "input_tokens": 40, "output_tokens": 6, "requests": len(rows),
                       "warmup_requests": 0, field: name, "file_sha256": digest} | more)  # fmt: skip
    made = plan(candidate(8000, "--slots", "4"), points=points)
    (folder / "poc.yaml").write_text(plan_to_yaml(made))
    return build(ARCH, folder, plan=folder / "poc.yaml", wheels=wheels, pythons=(HERE,))


def commands_of(readme: str) -> list[str]:
    """What the README tells to type, in its order, up to the summary."""
    install = [line.strip() for line in readme.splitlines() if line.startswith("       ")]
    typed = [p for p in readme.split("`") if p.startswith(("sha256sum", "venv/bin/python -m bench"))]
    check, doctor, *rest = (t for t in typed if "emulate" not in t)
    return [check, *install, f"{doctor} || test $? -eq 1", *rest]


UP = """
import fcntl, socket, struct, sys, os
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING (netdevice(7))
os.execvp("sh", ["sh", "-e", "-c", sys.argv[1]])
"""


def without_network(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a network namespace of its own whose only interface is loopback."""
    enter = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_COMPILE": "1"}
    done = subprocess.run([*enter, sys.executable, "-c", UP, script], cwd=folder, env=clean, capture_output=True,
                          text=True, timeout=240)  # fmt: skip
    assert "unshare: " not in done.stderr, f"This test needs network namespaces, which are not permitted: {done.stderr}"
    return done


def test_the_kit_installs_and_measures_where_there_is_no_network(kit: Path, tmp_path: Path) -> None:
    with tarfile.open(kit) as tar:
        tar.extractall(tmp_path, filter="data")
    box = tmp_path / f"flipline-gpu-kit-{ARCH}"
    typed = commands_of((box / "README.md").read_text())
    assert len(typed) == 7
    only_loopback = """test "$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')" = lo"""
    script = "\n".join([only_loopback, *typed])
    done = without_network(script.replace("python3 ", f"{sys.executable} "), box)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "emu: ok" in done.stdout and "ok     results/emu-A-start1" in done.stdout
    assert "ttft_ms" in done.stdout
    measured = open_bundle(box / "results" / "emu-A-start1")
    assert [(r.load_point, r.ok) for r in measured.repeats] == [
        ("parallel-2", 4), ("prompts", 4), ("trace", 4), ("quality", 2)]  # fmt: skip


def test_the_readme_says_what_is_inside(kit: Path) -> None:
    with tarfile.open(kit) as tar:
        files = {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    told = files["README.md"].decode()
    assert f"and Python {HERE}" in told and "The plan is 'Test' of case test" in told
    sums = dict(line.split("  ")[::-1] for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"}
    assert {name.partition("/")[0] for name in files if "/" in name} == {
        "bench", "bundle", "planner", "catalog", "wheels", "own"}  # fmt: skip
    assert "Beside it lie the files that it names: own/prompts.jsonl, set.jsonl, trace.jsonl." in told
    assert {name for name in files if "/" not in name} == {
        "README.md", "SHA256SUMS", "requirements.txt", "plan.yaml", "trace.jsonl", "set.jsonl"}  # fmt: skip
    assert {"catalog/quality/example.jsonl", "catalog/NOTICE", "catalog/models.yaml"} <= files.keys()
    assert not any("__pycache__" in name for name in files)


def test_the_same_files_give_the_same_archive(kit: Path, tmp_path: Path) -> None:
    again = build(ARCH, tmp_path, plan=kit.parent / "poc.yaml", wheels=kit.parent / "wheels", pythons=(HERE,))
    with kit.open("rb") as a, again.open("rb") as b:
        assert hashlib.file_digest(a, "sha256").digest() == hashlib.file_digest(b, "sha256").digest()


def test_wheels_are_those_of_the_box_and_not_of_this_machine() -> None:
    words = download_command("arm64", "3.12", Path("wheels"), requirements())
    platforms = [after for word, after in pairwise(words) if word == "--platform"]
    assert platforms and all(p.endswith("_aarch64") for p in platforms)
    assert words[words.index("--python-version") + 1] == "3.12"
    assert sorted(w.partition(">")[0] for w in words[-5:]) == ["httptools", "pyarrow", "pydantic", "pyyaml", "rich"]


def test_another_architecture_is_told_the_near_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'arm64'"):
        build("arm46", tmp_path)
    assert main(["--arch", "x86", "--out", str(tmp_path)]) == 2
    assert "gpu-kit: unknown architecture 'x86'. Known: amd64, arm64." in capsys.readouterr().err


def test_a_wrong_plan_is_not_packed(kit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "plan.yaml"
    wrong.write_text("schema_version: 1\n")
    arguments = ["--arch", ARCH, "--out", str(tmp_path), "--plan", str(wrong), "--wheels", str(kit.parent / "wheels")]
    assert main(arguments) == 2
    assert "plan.yaml: case: field required" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.tar*"))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"prompts_file": "../prompts.jsonl"}, "../prompts.jsonl: lies outside the plan's folder"),
        ({"prompts_file": "gone.jsonl"}, "gone.jsonl: cannot be read: No such file or directory."),
        ({"prompts_file": "own.jsonl"}, "is not the file that the plan means"),
    ],
)
def test_a_file_that_the_plan_names_comes_along_or_is_refused(
    kit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, object], sentence: str
) -> None:
    (tmp_path / "own.jsonl").write_text('{"prompt": "changed since"}\n')
    named = point(requests=1, warmup_requests=0, file_sha256="0" * 64, **more)
    (tmp_path / "plan.yaml").write_text(plan_to_yaml(plan(candidate(1), points=[named])))
    arguments = ["--arch", ARCH, "--out", str(tmp_path), "--wheels", str(kit.parent / "wheels")]
    assert main([*arguments, "--plan", str(tmp_path / "plan.yaml")]) == 2
    assert sentence in capsys.readouterr().err


def test_a_plans_tokenizer_comes_along_with_the_package_that_reads_it(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    on_the_box = point(requests=1, warmup_requests=0, prompts_file="/data/own.jsonl", file_sha256="0" * 64)
    made = plan(candidate(1), points=[on_the_box], tokenizer_dir="model")
    (tmp_path / "poc.yaml").write_text(plan_to_yaml(made))
    archive = build(ARCH, tmp_path, plan=tmp_path / "poc.yaml", wheels=kit.parent / "wheels")
    with tarfile.open(archive) as tar:
        files = {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]
    assert files["model/tokenizer.json"] == b"{}"
    assert "tokenizers" in files["requirements.txt"].decode().splitlines()
    assert "Not in here, as the plan names them on the box: /data/own.jsonl." in files["README.md"].decode()


def test_make_names_the_kit() -> None:
    told = subprocess.run(["make", "-n", "gpu-kit", "ARCH=arm64", "PLAN=poc.yaml"], cwd=ROOT, capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    assert "-m scripts.gpu_kit --arch arm64 --plan poc.yaml" in told
