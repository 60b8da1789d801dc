"""What can go wrong between Flipline and a Prometheus, each as one sentence with its way out."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from planner.errors import FliplineError, InputError, ServerError
from services.prometheus import ADDRESS, TOKEN, Prometheus
from tests.engine.server import free_port

Answer = Callable[[BaseHTTPRequestHandler], None]
NOTHING = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server on loopback that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def says(status: int, body: bytes, **headers: str) -> Answer:
    def answer(h: BaseHTTPRequestHandler) -> None:
        h.send_response(status)
        for name, value in headers.items():
            h.send_header(name, value)
        h.end_headers()
        h.wfile.write(body)

    return answer


def asking(url: str, timeout_s: float = 60.0) -> str:
    with pytest.raises(FliplineError) as raised:
        Prometheus(url, timeout_s=timeout_s).at("up", 0)
    return str(raised.value)


def refused(message: str) -> bytes:
    return json.dumps({"status": "error", "errorType": "bad_data", "error": message}).encode()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (says(200, b"<html>Grafana</html>"), "is not Prometheus: it answers 200 without its JSON"),
        (says(200, b'["success"]'), "is not Prometheus"),
        (says(404, b"404 page not found"), "is not Prometheus: it answers 404"),
        (says(400, refused('parse error: unexpected "}"')), 'refuses the query: parse error: unexpected "}"'),
        (says(401, b"Unauthorized"), r"wants to know who asks \(401\). Write user:password@ before the host"),
        (says(302, b"", Location="http://login.example/"), r"sends elsewhere \(302\)"),
    ],
    ids=["another page", "another JSON", "another server", "a bad query", "no credentials", "a login page"],
)  # fmt: skip
def test_an_answer_that_is_none_is_named(answer: Answer, message: str) -> None:
    with answering(answer) as url, pytest.raises(ServerError, match=message):
        Prometheus(url).at("up", 0)


def test_a_server_that_is_not_there_is_named_without_a_password() -> None:
    said = asking(f"http://lee:geheim@127.0.0.1:{free_port()}")
    assert "cannot be reached: Connection refused" in said
    assert "geheim" not in said


def test_a_server_that_takes_the_connection_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = asking(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
    assert "did not answer within 0.2 s" in said


def test_a_server_that_trickles_is_given_up_too() -> None:
    """Each single read is quick; the whole never ends."""

    def trickle(h: BaseHTTPRequestHandler) -> None:
        says(200, b"{")(h)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                h.wfile.write(b" ")
                time.sleep(0.02)
            except OSError:
                return

    with answering(trickle) as url:
        assert "did not answer within 0.3 s" in asking(url, timeout_s=0.3)


def test_what_speaks_no_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        said = asking(f"http://127.0.0.1:{other.getsockname()[1]}")
        thread.join()
    assert "what answers is no HTTP" in said


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://prometheus", "http://", "http://a b", "http://h:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        Prometheus(url)


def test_credentials_go_where_they_belong_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is for the installation's own Prometheus: a page takes any address, and must not give it away."""
    seen: list[str | None] = []

    def remember(h: BaseHTTPRequestHandler) -> None:
        seen.append(h.headers["Authorization"])
        says(200, NOTHING)(h)

    monkeypatch.setenv(TOKEN, "t0ken")
    with answering(remember) as own, answering(remember) as other:
        monkeypatch.setenv(ADDRESS, f"{own}/")
        for url in (own, other, other.replace("//", "//lee:a%40b@")):
            Prometheus(url).at("up", 0)
    assert seen == ["Bearer t0ken", None, "Basic bGVlOmFAYg=="]  # base64 of lee:a@b
