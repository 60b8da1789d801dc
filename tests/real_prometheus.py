"""A real Prometheus on loopback: over days that were written beforehand, or scraping a server now."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.engine.server import free_port

ONE_BLOCK = "1440h"  # promtool writes a block each two hours unless told otherwise: 336 for four weeks
UP_WITHIN_S = 120.0


def write_days(folder: Path, lines: Iterable[str]) -> Path:
    """Blocks of a Prometheus from samples in OpenMetrics text, each series in the order of time."""
    text, data = folder / "days.om", folder / "data"
    text.write_text("\n".join((*lines, "# EOF\n")), encoding="utf-8")
    _run("promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", f"--max-block-duration={ONE_BLOCK}",
         str(text), str(data))  # fmt: skip
    return data


@contextmanager
def prometheus(folder: Path, *, scraping: str = "", every_s: int = 1) -> Iterator[str]:
    """Its address, over the data in `folder`/data; `scraping` is a host:port with a page at /metrics."""
    config = folder / "prometheus.yml"
    jobs = f"[{{job_name: vllm, scrape_interval: {every_s}s, static_configs: [{{targets: ['{scraping}']}}]}}]"
    config.write_text(f"scrape_configs: {jobs if scraping else '[]'}\n", encoding="utf-8")
    url = f"http://127.0.0.1:{free_port()}"
    log = folder / "prometheus.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            (_installed("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
             "--storage.tsdb.retention.time=400d", f"--web.listen-address={url.removeprefix('http://')}"),
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            _wait(f"{url}/-/ready", server, log)
            yield url
        finally:
            server.terminate()
            server.wait(timeout=120)


def _wait(ready: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + UP_WITHIN_S
    while server.poll() is None and time.monotonic() < until:
        try:
            with urlopen(ready, timeout=10):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    pytest.fail(f"Prometheus did not start: {log.read_text(errors='replace')[-2000:]}", pytrace=False)


def _run(*command: str) -> None:
    done = subprocess.run((_installed(command[0]), *command[1:]), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _installed(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is missing: install the package prometheus (apt-get install prometheus).", pytrace=False)
    return found
