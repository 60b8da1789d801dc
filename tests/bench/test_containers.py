"""Servers in containers, with a stand-in for docker: what is asked of it, and what is refused before it is asked."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.consent import check_allowed
from bench.containers import Image, check_files, known_repositories, run_arguments
from bench.runner import check_plan
from bundle.folder import open_bundle
from bundle.records import read_telemetry
from planner.errors import InputError, NotAllowed, ServerError
from planner.launch_place import Place
from planner.launch_shell import container_arguments
from planner.plan_file import plan_from_yaml, plan_to_yaml
from planner.poc import Launch, Plan
from tests.bench.helpers import candidate, free_port, plan, point, run_started
from tests.bench.stand_in_docker import DIGEST, IMAGE_ID, install
from tests.bench.test_lifecycle import LONG, answers, standing, started_bench, wait_until
from tests.planner import launch_cases

IMAGE = "vllm/vllm-openai:v0.33.0"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return install(folder)


def contained(port: int, *emulate: str, points: list[dict[str, Any]] | None = None, **container: Any) -> Plan:
    made = candidate(port, "--slots", "8", *emulate, environment={"VLLM_LOGGING_LEVEL": "INFO"},
                     container={"image": IMAGE} | container)  # fmt: skip
    return plan(made, points=points)


def recorded(calls: Path) -> list[list[str]]:
    return [json.loads(line) for line in calls.read_text().splitlines()]


def test_a_container_is_started_by_argument_list_and_stopped_by_its_id(tmp_path: Path, calls: Path) -> None:
    port = free_port()
    made = contained(port, digest=DIGEST, mounts={"/models": "/data/models"}, shared_memory_gb=16)
    result = run_started(made, tmp_path / "out")
    manifest = open_bundle(result.bundles[0])
    assert (manifest.status, manifest.repeats[0].ok) == ("complete", 6)
    cid = (result.bundles[0] / "server.cid").read_text()
    (run,) = [c for c in recorded(calls) if c[0] == "run"]
    label = run[run.index("--label") + 1]
    assert re.fullmatch(r"flipline\.lease=[0-9a-f]{32}", label)
    assert run == [
        "run", "--pull", "never", "--cidfile", str(result.bundles[0] / "server.cid"), "--label", label,
        "--network", "host", "--restart", "no", "--gpus", "all", "--ulimit", "memlock=-1",
        "--ipc", "private", "--shm-size", "16g", "--user", "10001:10001", "--read-only",
        "--tmpfs", "/tmp:rw,exec,nosuid,nodev", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--volume", "/data/models:/models:ro", "--env", "HOME=/tmp", "--env", "USER=llm",
        "--env", "VLLM_LOGGING_LEVEL=INFO", "--entrypoint", "python", IMAGE_ID,
        "-m", "bench", "emulate", "--port", str(port), "--ttft-ms", "20", "--itl-ms", "2", "--slots", "8",
    ]  # fmt: skip
    assert [c for c in recorded(calls) if c[0] in ("stop", "rm")] == [["stop", "-t", "15", cid], ["rm", "-f", cid]]
    assert not answers(port)


def test_what_bench_and_a_saved_launch_allow_a_container_is_one_list(tmp_path: Path) -> None:
    def rights(words: Sequence[str]) -> Sequence[str]:
        return words[words.index("--gpus") : words.index("--volume")]

    launched = Launch.model_validate({"command": ["vllm", "serve"], "container": {
        "image": IMAGE, "gpus": "1", "shared_memory_gb": 2, "mounts": {"/models": "/srv/models"},
    }})  # fmt: skip
    by_bench = run_arguments(launched, Image(IMAGE_ID, ()), tmp_path / "server.cid", "0" * 32, {})
    saved = container_arguments(launch_cases.ENGINES["vllm"], launch_cases.settings("vllm", "benchmark"), Place())
    assert rights(by_bench) == list(rights(saved))


def test_another_user_may_be_stated_and_changes_the_plan() -> None:
    stated = contained(1, user_id=0)
    assert stated.sha256() != contained(1).sha256()
    words = run_arguments(stated.candidates[0].launch, Image(IMAGE_ID, ()), Path("server.cid"), "0" * 32, {})
    assert words[words.index("--user") + 1] == "0:0"


TGI = (Path(__file__).resolve().parents[2] / "catalog" / "engines" / "tgi.yaml").read_text()


def with_settings(**more: Any) -> Plan:
    return plan(candidate(free_port(), "--engine", "tgi.yaml", engine="tgi", config_files={"tgi.yaml": TGI}, **more))


def test_a_configuration_file_of_the_plan_is_written_before_the_start_and_kept(tmp_path: Path) -> None:
    # The emulator is started with a file that exists nowhere else, reads it and answers as TGI does.
    (folder,) = run_started(with_settings(), tmp_path / "out").bundles
    assert open_bundle(folder).files["server.settings/tgi.yaml"] == hashlib.sha256(TGI.encode()).hexdigest()
    assert open_bundle(folder).repeats[0].ok == 6


def test_a_container_finds_its_configuration_file_under_settings(tmp_path: Path, calls: Path) -> None:
    run_started(with_settings(container={"image": IMAGE}), tmp_path / "out")
    kept = tmp_path / "out" / "emu-A-start1" / "server.settings" / "tgi.yaml"
    (run,) = [c for c in recorded(calls) if c[0] == "run"]
    assert run[run.index("--volume") + 1] == f"{kept}:/settings/tgi.yaml:ro"
    assert run[-2:] == ["--engine", "/settings/tgi.yaml"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"../tgi.yaml": ""}, r"config_files.*string should match"),
        ({"/etc/cron.d/x": ""}, r"config_files.*string should match"),
        ({"other.yaml": ""}, "other.yaml is no word of the command"),
        ({"tgi.yaml": "x" * 70_000}, "at most 65536 characters"),
    ],
)
def test_a_configuration_file_cannot_leave_its_folder_or_fill_the_disk(files: dict[str, str], sentence: str) -> None:
    body = yaml.safe_load(plan_to_yaml(with_settings()))
    body["candidates"][0]["launch"]["config_files"] = files
    with pytest.raises(InputError, match=sentence):
        plan_from_yaml(yaml.safe_dump(body))


def test_the_bundle_of_a_container_holds_its_log_image_and_memory(tmp_path: Path, calls: Path) -> None:
    folder = run_started(contained(free_port()), tmp_path / "out").bundles[0]
    manifest = open_bundle(folder)
    assert "emulator: listening on" in (folder / "server.log").read_text()
    assert manifest.contract.candidate["image"] == f"{IMAGE} {IMAGE_ID}"
    assert manifest.settings_resolved["image.id"] == IMAGE_ID
    seen = read_telemetry(folder / str(manifest.repeats[0].telemetry))
    # The emulator is a Python of more than 10 MB; the client beside it is not counted.
    assert max(s.value for s in seen if s.name == "rss_bytes") > 10e6


def test_a_container_does_not_outlive_a_killed_bench(tmp_path: Path, calls: Path) -> None:
    port = free_port()
    running = started_bench(contained(port, points=[point(**LONG)]), tmp_path)
    wait_until(lambda: standing(tmp_path / "out").get("phase") in ("warm-up", "measuring"), running)
    assert answers(port)
    running.kill()
    running.communicate()
    wait_until(lambda: not answers(port))
    assert any(c[0] == "stop" for c in recorded(calls))


def test_an_image_without_digest_is_named_in_the_result(tmp_path: Path, calls: Path) -> None:
    result = run_started(contained(free_port()), tmp_path / "out")
    assert f"image: candidate emu names no digest; {IMAGE} is {IMAGE_ID}." in result.notes


def test_another_digest_is_refused_before_anything_starts(tmp_path: Path, calls: Path) -> None:
    with pytest.raises(NotAllowed, match=f"candidate emu: .* has the digest {DIGEST}, and the plan names sha256:333"):
        run_started(contained(free_port(), digest="sha256:" + "3" * 64), tmp_path / "out")
    assert not [c for c in recorded(calls) if c[0] == "run"]


def test_the_id_of_an_image_that_came_as_a_file_is_as_good_as_a_digest(tmp_path: Path, calls: Path) -> None:
    assert run_started(contained(free_port(), digest=IMAGE_ID), tmp_path / "out").state == "finished"


def test_an_image_that_is_not_there_is_not_pulled(tmp_path: Path, calls: Path) -> None:
    with pytest.raises(ServerError, match=r"vllm/vllm-openai:v9 is not on this machine. Bring it with `docker pull`"):
        run_started(contained(free_port(), image="vllm/vllm-openai:v9"), tmp_path / "out")
    assert not [c for c in recorded(calls) if c[0] in ("run", "pull")]


def test_a_machine_without_docker_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match=r"docker cannot be run: No such file or directory\. Install docker here"):
        run_started(contained(free_port()), tmp_path / "out")


def test_images_of_the_catalogue_are_known_and_others_need_consent() -> None:
    assert {"vllm/vllm-openai", "ollama/ollama", "lmsysorg/sglang"} <= known_repositories()
    made = contained(1, image="somebody.example:5000/vllm:latest")
    with pytest.raises(NotAllowed, match=r"not that of a known engine.*--allow-command"):
        check_plan(made, allow_command=False)
    check_plan(made, allow_command=True)
    check_plan(contained(1, image="vllm/vllm-openai:nightly"), allow_command=False)


def test_a_known_image_does_not_make_another_command_allowed() -> None:
    made = Launch.model_validate({"command": ["sh", "-c", "id"], "container": {"image": IMAGE}})
    with pytest.raises(NotAllowed, match="not the command of a known engine"):
        check_allowed(made, allow=False, where="test")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image": "--privileged"}, "image: string should match pattern"),
        ({"image": IMAGE, "gpus": "all --privileged"}, "gpus: string should match"),
        ({"image": IMAGE, "mounts": {"/a": "/b:rw"}}, "write both as whole paths without a colon"),
        ({"image": IMAGE, "mounts": {"models": "/b"}}, "write both as whole paths without a colon"),
        ({"image": IMAGE, "digest": "sha256:12"}, "digest: string should match"),
    ],
)
def test_a_container_is_described_in_a_plan_without_room_for_options(change: dict[str, Any], sentence: str) -> None:
    text = plan_to_yaml(contained(1)).replace(f"image: {IMAGE}", json.dumps(change)[1:-1])
    text = re.sub(r"container:\n +(.*)", r"container: {\1}", text)
    with pytest.raises(InputError, match=sentence):
        plan_from_yaml(text)


def test_model_files_are_compared_with_the_plan_before_anything_starts(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    right = hashlib.sha256(b"weights").hexdigest()
    check_files(Launch(files={str(weights): right}), where="test")
    made = plan(candidate(free_port(), "--slots", "4", files={str(weights): "0" * 64}))
    with pytest.raises(NotAllowed, match=rf"candidate emu: .*model.safetensors has the SHA-256 {right[:16]}"):
        run_started(made, tmp_path / "out")
    assert not (tmp_path / "out" / "emu-A-start1").exists()
    with pytest.raises(NotAllowed, match=r"gone\.bin cannot be read: No such file or directory"):
        check_files(Launch(files={str(tmp_path / "gone.bin"): right}), where="test")


def test_plans_without_these_fields_keep_their_hash() -> None:
    # Taken from the program before containers, files and budgets existed.
    made = plan(candidate(1, "--slots", "4", ready_timeout_s=20))
    assert made.sha256() == "8a217392f138c123394ad7b18e57685c390b6baa8619dffdacbde7347bdcc603"
    assert contained(1).sha256() != plan(candidate(1, "--slots", "8")).sha256()
    assert plan_from_yaml(plan_to_yaml(contained(1, digest=DIGEST))) == contained(1, digest=DIGEST)


def test_the_launch_in_the_guide_is_one_that_a_plan_may_hold() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "gpu-box.md").read_text()
    block = guide.partition("```yaml\n")[2].partition("```")[0]
    made = Launch.model_validate(yaml.load(block, Loader=yaml.CSafeLoader))
    assert made.container and made.container.gpus == "all"
    check_allowed(made, allow=False, where="guide")
