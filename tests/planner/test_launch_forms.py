"""Launches as files: golden texts, the Kubernetes schemas, systemd's own check, and a shell that runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.engine_facts import server
from planner.errors import InputError, UnknownName
from planner.launch_forms import FORMS, start_form
from planner.launch_place import Place, one_line
from planner.launch_recipes import RECIPES
from planner.launch_shell import container_arguments
from tests.planner import launch_cases
from tests.planner.launch_cases import ENGINES, GOLDEN, Golden, launches

KUBERNETES = "1.37"
ALL = list(launches())
BY_FORM = {form: [g for g in ALL if g.form.form == form] for form in FORMS}
DIGEST = "sha256:" + "ab" * 32


def named(g: Golden) -> str:
    return f"{g.server.id}-{g.purpose}-{g.form.form}"


def of(name: str, purpose: str, form: str) -> Golden:
    return next(g for g in ALL if (g.server.id, g.purpose, g.form.form) == (name, purpose, form))


def objects(g: Golden) -> dict[str, Any]:
    return {o["kind"]: o for o in yaml.load_all(g.form.text, Loader=yaml.CSafeLoader)}


def pod(g: Golden) -> dict[str, Any]:
    return objects(g)["Deployment"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("g", ALL, ids=named)
def test_a_launch_is_written_as_in_its_golden_file(g: Golden) -> None:
    assert g.form.text == g.file.read_text(encoding="utf-8"), "python -m tests.planner.launch_cases writes them anew"


def test_there_is_a_golden_file_for_every_engine_purpose_and_form_and_no_other() -> None:
    assert {g.file for g in ALL} == set(GOLDEN.iterdir())
    assert len(ALL) == len(RECIPES) * 2 * 4


@pytest.mark.parametrize("g", ALL, ids=named)
def test_every_form_says_of_each_setting_why_it_has_its_value(g: Golden) -> None:
    head = [line for line in g.form.text.splitlines() if line.startswith("#   ")]
    assert head == [f"#   {f'{f.flag} {f.value}'.strip()}: {f.why}" for f in g.form.launch.flags]
    assert all(f.why for f in g.form.launch.flags)


@pytest.mark.parametrize("g", BY_FORM["kubernetes"], ids=named)
def test_kubernetes_objects_are_valid_by_its_schemas(g: Golden) -> None:
    found = objects(g)
    assert {"Deployment", "Service", "NetworkPolicy"} <= set(found)
    for one in found.values():
        kubernetes_validate.validate(one, KUBERNETES, strict=True)


@pytest.mark.parametrize("g", BY_FORM["kubernetes"], ids=named)
def test_a_pod_has_no_more_rights_than_it_needs(g: Golden) -> None:
    # The "restricted" level of the Pod Security Standards, and a root that cannot be written.
    spec, (container,) = pod(g), pod(g)["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert not {"hostPath", "hostNetwork", "hostIPC"} & {*spec, *(k for v in spec["volumes"] for k in v)}


@pytest.mark.parametrize("g", BY_FORM["kubernetes"], ids=named)
def test_probes_ask_a_route_that_answers_without_a_key(g: Golden) -> None:
    (container,) = pod(g)["containers"]
    paths = {container[p]["httpGet"]["path"] for p in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert len(paths) == 1
    security = g.server.security
    assert security and (not security.keys or paths <= set(security.open_routes))
    startup = container["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] == 900  # as long as bench waits for a start


@pytest.mark.parametrize("g", BY_FORM["kubernetes"], ids=named)
def test_the_service_reaches_the_port_and_only_named_pods_get_in(g: Golden) -> None:
    found, (container,) = objects(g), pod(g)["containers"]
    (port,) = found["Service"]["spec"]["ports"]
    assert container["ports"][0]["containerPort"] == port["port"]
    assert found["Service"]["spec"]["type"] == "ClusterIP"
    assert found["Service"]["spec"]["selector"] == found["Deployment"]["spec"]["selector"]["matchLabels"]
    (rule,) = found["NetworkPolicy"]["spec"]["ingress"]
    assert rule["from"][0]["podSelector"]["matchLabels"]


def test_api_keys_come_from_a_secret_and_only_in_production() -> None:
    (container,) = pod(of("vllm", "production", "kubernetes"))["containers"]
    key = next(e for e in container["env"] if e["name"] == "VLLM_API_KEY")
    assert key["valueFrom"]["secretKeyRef"] == {"name": "vllm-api-key", "key": "VLLM_API_KEY"}
    (flagged,) = pod(of("sglang", "production", "kubernetes"))["containers"]
    assert flagged["args"][-4:] == ["--api-key", "$(SGLANG_API_KEY)", "--admin-api-key", "$(SGLANG_ADMIN_API_KEY)"]
    assert "API_KEY" not in of("vllm", "benchmark", "kubernetes").form.text


def test_two_gpus_are_two_in_every_form_that_asks_for_them() -> None:
    two = launch_cases.settings("vllm", "production").model_copy(update={"tensor_parallel": 2})
    arguments = container_arguments(ENGINES["vllm"], two, Place())
    assert arguments[arguments.index("--gpus") + 1] == "2"
    text = start_form(ENGINES["vllm"], two, "k8s").text
    assert "nvidia.com/gpu: 2" in text and "- --tensor-parallel-size\n        - '2'" in text


@pytest.mark.parametrize("g", BY_FORM["container"], ids=named)
def test_a_container_has_no_rights_and_no_secret(g: Golden) -> None:
    words = list(container_arguments(g.server, launch_cases.settings(g.server.id, g.purpose), Place()))
    assert words[:2] == ["docker", "run"]
    assert {"--read-only", "--cap-drop", "--security-opt"} <= set(words)
    assert words[words.index("--user") + 1] == "10001:10001"
    assert words[words.index("--security-opt") + 1] == "no-new-privileges"
    assert not any(w.startswith(f"{key}=") for key in g.form.launch.keys for w in words)
    if g.purpose == "benchmark":
        assert words[words.index("--cidfile") + 1] == f"{g.server.id.replace('_', '-')}.cid"
        assert words[words.index("--restart") + 1] == "no"
    else:
        port = g.server.launch.port
        assert words[words.index("--publish") + 1] == f"127.0.0.1:{port}:{port}"


def test_an_image_is_pinned_by_digest_or_the_form_says_that_it_is_not() -> None:
    open_case = launch_cases.settings("vllm", "production")
    for form in ("container", "kubernetes"):
        assert any(
            "Digest not known: pin it before use" in n for n in start_form(ENGINES["vllm"], open_case, form).notes
        )
        pinned = start_form(ENGINES["vllm"], open_case.model_copy(update={"image_digest": DIGEST}), form)
        assert f"vllm/vllm-openai:v0.33.0@{DIGEST}" in pinned.text
        assert not any("Digest" in n for n in pinned.notes)


def test_a_digest_of_ours_says_who_pulled_it_and_a_stated_one_goes_before_it() -> None:
    case = launch_cases.settings("ollama", "production")
    ours = start_form(ENGINES["ollama"], case, "container")
    assert f"ollama/ollama:0.33.0@{ENGINES['ollama'].launch.image_digest}" in ours.text
    assert "Digest as pulled by algernon28/vespera@0449b1eb, not pulled here." in ours.notes
    stated = start_form(ENGINES["ollama"], case.model_copy(update={"image_digest": DIGEST}), "container")
    assert f"ollama/ollama:0.33.0@{DIGEST}" in stated.text
    assert not any("Digest" in n for n in stated.notes)


def test_what_an_image_needs_before_it_starts_without_root_stands_in_the_forms_that_use_it() -> None:
    # text-generation-inference#3082, open: libpython3.11.so.1.0 lies under /root, which no other user may enter.
    for purpose in ("benchmark", "production"):
        assert all("starts as root only" in of("tgi", purpose, form).form.text for form in ("container", "kubernetes"))
        assert "starts as root only" not in of("tgi", purpose, "bare").form.text


@pytest.mark.parametrize(
    ("machine", "form", "says"),
    [
        # rocm.docs.amd.com: vLLM containers get /dev/kfd and /dev/dri; AMD's device plugin offers amd.com/gpu.
        ({"accelerator": "AMD"}, "container", "--device /dev/kfd"),
        ({"accelerator": "AMD"}, "kubernetes", "amd.com/gpu"),
        ({"accelerator": "AMD"}, "bare", ""),
        ({"accelerator": "Apple", "os": "macos"}, "container", "No container sees an Apple GPU"),
        ({"accelerator": "Apple", "os": "macos"}, "systemd", "macOS has launchd"),
        ({"accelerator": "CPU"}, "kubernetes", "leave out nvidia.com/gpu"),
        ({"os": "windows"}, "bare", "A script for a POSIX shell"),
        ({}, "container", ""),
    ],
)
def test_a_form_says_what_another_machine_than_linux_with_nvidia_needs(
    machine: dict[str, str], form: str, says: str
) -> None:
    case = launch_cases.settings("ollama", "production").model_copy(update=machine)
    written = start_form(server(ENGINES, "ollama"), case, form)
    told = [n for n in written.notes if "NVIDIA" in n or "POSIX" in n or "systemd is" in n]
    assert bool(told) == bool(says)
    assert all(says in n and n in written.text for n in told)


def test_every_image_names_a_version() -> None:
    for name in RECIPES:
        tag = server(ENGINES, name).launch.image.rpartition(":")[2]
        assert any(c.isdigit() for c in tag), f"{name}: the tag {tag} moves"


@pytest.mark.parametrize("g", BY_FORM["systemd"], ids=named)
def test_a_unit_is_accepted_by_systemd_itself(g: Golden, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / g.form.launch.argv[0]).write_text("#!/bin/sh\n")
    (programs / g.form.launch.argv[0]).chmod(0o755)
    made = start_form(g.server, launch_cases.settings(g.server.id, g.purpose), "systemd", Place(programs=str(programs)))
    path = tmp_path / made.file_name
    path.write_text(made.text)
    sections = {line for line in made.text.splitlines() if line.startswith("[")}
    assert sections == {"[Unit]", "[Service]", "[Install]"}
    assert {"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes"} <= set(
        made.text.splitlines()
    )
    assert ("Restart=no" if g.purpose == "benchmark" else "Restart=on-failure") in made.text.splitlines()
    if verify := shutil.which("systemd-analyze"):
        done = subprocess.run([verify, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False)
        ours = [line for line in done.stderr.splitlines() if made.file_name in line or str(path) in line]
        assert (done.returncode, ours) == (0, [])


@pytest.mark.parametrize("g", BY_FORM["bare"] + BY_FORM["container"], ids=named)
def test_scripts_are_shell(g: Golden) -> None:
    done = subprocess.run(["sh", "-n"], input=g.form.text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def stand_in(folder: Path, program: str) -> dict[str, str]:
    """An environment in which a program of that name prints its arguments and variables."""
    (folder / program).write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nenv\n")
    (folder / program).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"}


def test_the_bare_script_starts_the_server_only_with_its_key(tmp_path: Path) -> None:
    script = of("sglang", "production", "bare").form
    environment = stand_in(tmp_path, "sglang")
    refused = subprocess.run(["sh", "-c", script.text], env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "SGLANG_API_KEY: holds the API key" in refused.stderr
    keys = {"SGLANG_API_KEY": "a b", "SGLANG_ADMIN_API_KEY": "c"}
    done = subprocess.run(["sh", "-c", script.text], env=environment | keys, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    words = [*script.launch.argv[1:], "--api-key", "a b", "--admin-api-key", "c"]
    assert said[: len(words)] == words
    assert "HF_HUB_DISABLE_TELEMETRY=1" in said[len(words) :]


def test_the_bare_script_of_tensorrt_llm_writes_its_configuration(tmp_path: Path) -> None:
    script = of("tensorrt_llm", "benchmark", "bare").form
    subprocess.run(["sh", "-c", script.text], env=stand_in(tmp_path, "trtllm-serve"), cwd=tmp_path, check=True,
                   capture_output=True)  # fmt: skip
    assert (tmp_path / "tensorrt_llm.yaml").read_text() == script.launch.config


def test_a_configuration_file_goes_with_every_form_that_needs_one() -> None:
    assert "return_perf_metrics: true" in of("tensorrt_llm", "production", "container").form.files["tensorrt_llm.yaml"]
    assert "return_perf_metrics: true" in of("tensorrt_llm", "production", "systemd").form.files["tensorrt_llm.yaml"]
    settings_map = objects(of("tensorrt_llm", "production", "kubernetes"))["ConfigMap"]
    assert settings_map["data"]["tensorrt_llm.yaml"].endswith("return_perf_metrics: true\n")


HOSTILE = st.text(st.sampled_from("a$%(){}'\"\\ \n\r\t#;|&`:-~é\u2028"), min_size=1, max_size=12)


@settings(max_examples=25)
@given(name=HOSTILE)
def test_what_others_wrote_stays_one_argument_and_one_comment(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    said = launch_cases.CASE.model_copy(update={"served_name": name, "because": {"served_name": name}})
    forms = {form: start_form(ENGINES["vllm"], said, form).text for form in FORMS}
    for text in forms.values():
        comments = [line for line in text.splitlines() if line.startswith("#   --served-model-name")]
        assert comments == [f"#   {one_line(f'--served-model-name {name}')}: {one_line(name)}"]
    environment = stand_in(tmp_path_factory.mktemp("bin"), "vllm")
    run = subprocess.run(["sh", "-c", forms["bare"]], env=environment, capture_output=True, check=True)
    assert f"--served-model-name\n{name}\n--revision\n".encode() in run.stdout
    deployment = next(iter(yaml.load_all(forms["kubernetes"], Loader=yaml.CSafeLoader)))
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    # Kubernetes reads $$( as $(, and nothing else changes.
    assert arguments[arguments.index("--served-model-name") + 1] == name.replace("$(", "$$(")


def test_a_unit_writes_an_argument_so_that_systemd_reads_it_back() -> None:
    said = launch_cases.CASE.model_copy(update={"served_name": '50 % of "$HOME"'})
    assert '--served-model-name "50 %% of \\"$$HOME\\""' in start_form(ENGINES["vllm"], said, "systemd").text


def test_a_form_that_is_not_there_and_a_server_that_cannot_be_probed_are_named() -> None:
    with pytest.raises(UnknownName, match="form of a launch"):
        start_form(ENGINES["vllm"], launch_cases.CASE, "helm")
    blind = ENGINES["vllm"].model_copy(update={"endpoints": {}})
    with pytest.raises(InputError, match=r"endpoints\.health"):
        start_form(blind, launch_cases.CASE, "kubernetes")
