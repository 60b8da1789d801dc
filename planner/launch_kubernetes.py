"""A launch as Kubernetes objects: Deployment with probes, Service, NetworkPolicy, and a ConfigMap where one is needed.

Schema: Kubernetes API v1, apps/v1, networking.k8s.io/v1. Not applied to a cluster here.
"""

from __future__ import annotations

from typing import Any

import yaml

from planner.errors import InputError
from planner.launch_place import (
    ANY_ADDRESS,
    READY_S,
    Packed,
    Place,
    Written,
    foot,
    head,
    image_notes,
    key_notes,
    machine_notes,
    model_notes,
    packed,
)
from planner.launch_settings import LaunchSettings
from planner.server_schema import Server

PROBE_PERIOD_S = 10
CLIENT = "llm.client"
IN_POD = "inside the pod, where only the Service and the pods that the policy names reach it"


def manifests(server: Server, settings: LaunchSettings, place: Place) -> Written:
    """One YAML text with every object.

    Raises InputError for a server without a health route, which could not be probed.
    """
    inside, name = packed(server, settings, ANY_ADDRESS, IN_POD), place.called(server)
    notes = (
        *machine_notes(settings, "kubernetes"),
        *image_notes(server, settings),
        *model_notes(server, inside.launch),
        *key_notes(server, inside.launch, f"lines NAME=key in a file, and kubectl create secret generic {name}-api-key "
                   "--from-env-file=FILE"),
        f"The claim {name}-models holds the models and must exist; only pods with the label {CLIENT}: {name} get in.",
        f"The start-up probe allows {READY_S} s: a model that is not in the claim has to be downloaded within it.",
        "CPU and memory requests follow from no figure here: state them from a measured run (rss_bytes).",
        *(("Kubernetes starts a crashed server again: read the restart count beside the result.",)
          if settings.purpose == "benchmark" else ()),
    )  # fmt: skip
    objects = [_deployment(server, settings, place, inside), _service(server, settings, place), _policy(server, place)]
    if inside.launch.config:
        data = {f"{server.id}.yaml": inside.launch.config}
        objects.insert(0, {**_object("v1", "ConfigMap", server, f"{name}-settings"), "data": data})
    body = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)
    text = "\n".join([*head(inside.launch, notes), body.rstrip(), *foot(inside.launch)]) + "\n"
    return Written(inside.launch, f"{name}.yaml", text, {}, notes)


class _Dumper(yaml.CSafeDumper):
    """Writes text of several lines as such, so that a person can read a configuration file."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _labels(server: Server, name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/version": server.version}


def _object(version: str, kind: str, server: Server, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": _labels(server, name)}}


def _deployment(server: Server, settings: LaunchSettings, place: Place, inside: Packed) -> dict[str, Any]:
    name, gpus = place.called(server), settings.tensor_parallel
    volumes: dict[str, tuple[str, dict[str, Any]]] = {
        "models": ("/models", {"persistentVolumeClaim": {"claimName": f"{name}-models"}}),
        "scratch": ("/tmp", {"emptyDir": {}}),
    }
    if server.launch.shared_memory_gb:
        size = f"{server.launch.shared_memory_gb:g}Gi"
        volumes["shared-memory"] = ("/dev/shm", {"emptyDir": {"medium": "Memory", "sizeLimit": size}})
    if inside.launch.config:
        volumes["settings"] = ("/settings", {"configMap": {"name": f"{name}-settings"}})
    read_only = {"settings"} | ({"models"} if inside.models_read_only else set())
    command, *arguments = inside.launch.argv
    secrets = [f for n, flag in inside.launch.keys.items() if flag for f in (flag, f"$({n})")]
    container = {
        "name": name,
        "image": inside.image,
        "command": [command],
        "args": [*(_literal(a) for a in arguments), *secrets],
        "env": [
            *({"name": n, "valueFrom": {"secretKeyRef": {"name": f"{name}-api-key", "key": n}}}
              for n in inside.launch.keys),
            *({"name": n, "value": _literal(v)} for n, v in inside.environment.items()),
        ],
        "ports": [{"name": "http", "containerPort": settings.port or server.launch.port}],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
        **_probes(server),
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": v, "mountPath": path, **({"readOnly": True} if v in read_only else {})}
                         for v, (path, _) in volumes.items()],
    }  # fmt: skip
    pod = {
        "automountServiceAccountToken": False,
        # A Service called vllm would set VLLM_PORT in every pod, which vLLM reads as its own.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": place.user_id, "runAsGroup": place.user_id, "fsGroup": place.user_id,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": v, **source} for v, (_, source) in volumes.items()],
    }  # fmt: skip
    return {
        **_object("apps/v1", "Deployment", server, name),
        "spec": {
            "replicas": 1,
            # A second pod would wait for the GPU that the first one holds, for ever.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "template": {"metadata": {"labels": _labels(server, name)}, "spec": pod},
        },
    }


def _probes(server: Server) -> dict[str, Any]:
    """Start-up gets the time that loading takes; afterwards traffic stops at once and a restart waits a minute."""
    health = server.endpoints.get("health")
    if health is None:
        raise InputError("endpoints.health: a probe needs a route.", where=f"{server.id} in the catalogue")
    failures = {"startupProbe": READY_S // PROBE_PERIOD_S, "readinessProbe": 2, "livenessProbe": 6}
    return {
        probe: {"httpGet": {"path": health.path, "port": "http"}, "periodSeconds": PROBE_PERIOD_S, "timeoutSeconds": 5,
                "failureThreshold": allowed}
        for probe, allowed in failures.items()
    }  # fmt: skip


def _service(server: Server, settings: LaunchSettings, place: Place) -> dict[str, Any]:
    name = place.called(server)
    port = {"name": "http", "port": settings.port or server.launch.port, "targetPort": "http"}
    selector = {"app.kubernetes.io/name": name}
    return {**_object("v1", "Service", server, name), "spec": {"type": "ClusterIP", "selector": selector,
                                                               "ports": [port]}}  # fmt: skip


def _policy(server: Server, place: Place) -> dict[str, Any]:
    """Only pods that are named as clients reach the port, since a key does not cover every route."""
    name = place.called(server)
    return {
        **_object("networking.k8s.io/v1", "NetworkPolicy", server, name),
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "policyTypes": ["Ingress"],
            "ingress": [{
                "from": [{"podSelector": {"matchLabels": {CLIENT: name}}}],
                "ports": [{"protocol": "TCP", "port": "http"}],
            }],
        },
    }  # fmt: skip


def _literal(text: str) -> str:
    """Text that Kubernetes must not expand: $(NAME) would be replaced."""
    return text.replace("$(", "$$(")
