"""What a container is started with, whoever starts it: people with a saved launch, or bench with a plan.

A user of its own, a root that nobody can write, no capabilities: both ways get the same, so that what was measured is
what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

USER_ID = 10001
# A compiler cache is written under /tmp and loaded from there as code, so that folder must allow it.
SCRATCH = "/tmp:rw,exec,nosuid,nodev"
# The image knows no user of that number, and PyTorch asks for its name while it is loaded: without USER vLLM ends there
# (vllm#44548, llm-d-benchmark#1573).
INSIDE = {"HOME": "/tmp", "USER": "llm"}


def run_words(
    *, gpus: str, shared_memory_gb: float | None, user_id: int, volumes: Iterable[str], environment: Mapping[str, str],
    env_file: str = "",
) -> list[str]:  # fmt: skip
    """Options of `docker run` and `podman run` that say what the container may use and what it may not.

    `volumes` are written as "OUTSIDE:INSIDE" or "OUTSIDE:INSIDE:ro"; `environment` may state HOME and USER otherwise.
    """
    words = ["--gpus", gpus] if gpus != "none" else []
    words += ["--ulimit", "memlock=-1"]
    if shared_memory_gb:
        words += ["--ipc", "private", "--shm-size", f"{shared_memory_gb:g}g"]
    words += ["--user", f"{user_id}:{user_id}", "--read-only", "--tmpfs", SCRATCH,
              "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]  # fmt: skip
    words += [w for volume in volumes for w in ("--volume", volume)]
    words += ["--env-file", env_file] if env_file else []
    return words + [w for name, value in (INSIDE | dict(environment)).items() for w in ("--env", f"{name}={value}")]
