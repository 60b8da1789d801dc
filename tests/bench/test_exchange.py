"""The address of a server as others read it, and what of an answer is a failure at first sight."""

from __future__ import annotations

import pytest

from bench.exchange import Exchange, Origin
from bench.outcome import failed_at_first_sight
from bench.transport import request_bytes


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://gpu.example:8000", "gpu.example:8000"),
        ("http://[::1]:8000", "[::1]:8000"),  # RFC 3986, 3.2.2: without brackets it is not known where the port begins
        ("http://bücher.example:8000", "xn--bcher-kva.example:8000"),  # RFC 3492's own word
    ],
)
def test_the_host_header_is_the_urls_authority(url: str, host: str) -> None:
    origin = Origin.of(url)
    assert f"\r\nHost: {host}\r\n".encode() in request_bytes(origin, "GET", "/")
    assert str(origin) == f"http://{host}"


@pytest.mark.parametrize(
    ("event", "failed"),
    [
        (b'data: {"error": {"message": "out of memory"}}\n\n', True),
        (b'error: {"error":{"code":500}}\n\n', True),
        (b'data: {"choices": [], "error": null}\n\n', False),  # a field that says that there was none
        (b'data: {"choices": [], "error":false}\n\n', False),
        (b'data: {"choices": [], "error": ""}\n\n', False),
        (b'data: {"choices": [], "error": {}}\n\n', False),
        (b'data: {"error": "out of memory"}\n\n', True),
        (b'data: {"choices":[{"delta":{"content":"\\"error\\": 5"}}]}\n\n', False),  # the answer is about errors
    ],
)
def test_an_error_field_without_an_error_stops_no_load(event: bytes, failed: bool) -> None:
    assert failed_at_first_sight(Exchange(0.0, status=200, wire=[(0.0, event)])) is failed
