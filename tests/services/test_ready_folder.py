"""The folder for the GPU box: what is in it, scripts that a shell runs, and what a README must not promise."""

from __future__ import annotations

import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.loads import LoadPoint
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Container, Launch
from services.gpu_kit import gpu_kit
from services.plan_files import shipped_beside
from services.quality_set import SHIPPED_SET, shipped_quality_set
from services.ready_folder import as_zip, ready_folder, script
from tests.planner.planned import candidate, closed, plan


def shell(text: str, folder: Path) -> str:
    """Run a script whose server is `echo` or a stand-in in PATH, and return what it prints."""
    (folder / "start.sh").write_text(text)
    done = subprocess.run(["/bin/sh", "start.sh"], cwd=folder, capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{folder}:/usr/bin:/bin"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def launched(**fields: object):
    return candidate("fast", "favourite", launch=Launch.model_validate({"command": ("echo", "up")} | fields))


def test_the_zip_holds_plan_scripts_request_and_the_commands_to_type():
    body = plan_to_yaml(plan()).encode()
    files = ready_folder(plan(), body, {"request.md": "# Request", "request.html": "<h1>Request</h1>"})
    with zipfile.ZipFile(io.BytesIO(as_zip(files, "c-poc"))) as packed:
        assert sorted(packed.namelist()) == [
            f"c-poc/{n}" for n in ("README.md", "plan.yaml", "request.html", "request.md", "start-fast.sh",
                                   "start-slow.sh")
        ]  # fmt: skip
        assert plan_from_yaml(packed.read("c-poc/plan.yaml").decode()) == plan()
        assert packed.getinfo("c-poc/start-fast.sh").external_attr >> 16 == 0o755
    said = files["README.md"].decode()
    for command in ("bench check plan.yaml", "bench run plan.yaml --out results", "bench summary results",
                    "make gpu-kit ARCH=arm64 PLAN=plan.yaml"):  # fmt: skip
        assert command in said
    assert plan().sha256() in said


def test_equal_contents_give_equal_bytes():
    files = ready_folder(plan(), b"x", {})
    assert as_zip(files, "c") == as_zip(dict(reversed(files.items())), "c")


def test_a_script_starts_the_server_with_the_words_and_the_environment_of_the_plan(tmp_path):
    text = script(
        launched(command=("sh", "-c", 'echo "$GREETING" "$0"', "a b"), environment={"GREETING": "it's $HOME"})
    )
    assert shell(text, tmp_path) == "it's $HOME a b\n"


def test_configuration_files_are_written_before_the_start(tmp_path):
    settings = "a: 'x'\nEOF\nSETTINGS\n$(exit 1)\n"
    text = script(launched(command=("cat", "s.yaml"), config_files={"s.yaml": settings}))
    assert shell(text, tmp_path) == settings


def test_a_container_runs_as_the_instrument_runs_it(tmp_path):
    (tmp_path / "docker").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "docker").chmod(0o755)
    own = launched(command=("serve", "s.yaml"), config_files={"s.yaml": "a: 1"}, environment={"A": "1"},
                   container=Container(image="org/engine:1", mounts={"/models": "/data/models"}))  # fmt: skip
    words = shell(script(own), tmp_path).splitlines()
    assert words[0] == "run" and words[-4:] == ["--entrypoint", "serve", "org/engine:1", "/settings/s.yaml"]
    assert "/data/models:/models:ro" in words and f"{tmp_path}/s.yaml:/settings/s.yaml:ro" in words
    assert {"--read-only", "A=1", "no-new-privileges", "never"} <= set(words)


def test_a_name_from_outside_stays_a_comment(tmp_path):
    own = launched().model_copy(update={"model_name": "m\ntouch hurt"})
    assert shell(script(own), tmp_path) == "up\n"
    assert not (tmp_path / "hurt").exists()


def test_a_variable_that_no_shell_takes_is_refused():
    with pytest.raises(InputError, match=r"candidate fast: environment: 'A;touch x' is no name"):
        script(launched(environment={"A;touch x": "1"}))


def test_a_server_to_attach_to_has_no_script_and_missing_files_are_told():
    attached = candidate("slow", "baseline", launch=Launch(url="http://127.0.0.1:9000"))
    own = closed(2, "own", prompts_file="prompts.jsonl")
    p = plan(candidates=(candidate("fast", "favourite"), attached), load_points=(*plan().load_points, own))
    files = ready_folder(p, b"x", {})
    said = files["README.md"].decode()
    assert "start-slow.sh" not in files
    assert "attached to at http://127.0.0.1:9000" in said
    assert "- `prompts.jsonl`" in said


def test_the_packed_instrument_and_the_shipped_quality_set_come_along():
    set_ = shipped_quality_set()
    point = LoadPoint(name="quality", shape="quality", in_flight=1, quality_file=set_.file, file_sha256=set_.sha256,
                      input_tokens=20, output_tokens=32, requests=set_.items, warmup_requests=0)  # fmt: skip
    p = plan().model_copy(update={"load_points": (*plan().load_points, point)})
    files = ready_folder(p, b"x", {}, {"flipline-gpu-kit-arm64.tar": b"packed"})
    assert files[set_.file] == SHIPPED_SET.read_bytes()
    assert files["flipline-gpu-kit-arm64.tar"] == b"packed"
    said = files["README.md"].decode()
    assert "`flipline-gpu-kit-arm64.tar`, with this plan" in said
    assert f"| `{set_.file}` | named by the plan |" in said and "not in here" not in said
    theirs = point.model_copy(update={"file_sha256": "0" * 64})  # their own set under the same name
    assert shipped_beside(p.model_copy(update={"load_points": (theirs,)})) == {}


def test_what_packing_says_is_the_sentence(monkeypatch):
    monkeypatch.setattr("services.gpu_kit.sys.executable", "/bin/false")
    with pytest.raises(InputError, match="the instrument cannot be packed: it said nothing"):
        gpu_kit("arm64", b"", {})
