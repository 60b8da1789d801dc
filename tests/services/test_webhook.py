"""A chat hears of what fired: over real sockets, with servers that answer, refuse, hang, drip, or are not there."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from services import webhook
from services.arrivals import bring_in_usage
from services.webhook import failing, send_waiting
from tests.services.made import CASE, accepted, days

SECRET = "T0K3N-in-the-path"


class Chat:
    """A server that keeps what is posted and answers with `status`."""

    def __init__(self) -> None:
        self.posted: list[dict] = []
        self.paths: list[str] = []
        self.answers = threading.Event()  # cleared, it takes what comes and answers later
        self.answers.set()
        self.status = 200
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                chat.paths.append(self.path)
                chat.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                chat.answers.wait(60)
                self.send_response(chat.status)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/{SECRET}?thread=7"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    chat = Chat()
    monkeypatch.setenv(webhook.URL, chat.url)
    yield chat
    chat.server.shutdown()
    chat.server.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_S", 60.0)  # a busy machine is no server that hangs
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01, 0.02))


def sent() -> None:
    """Wait for the senders that are under way."""
    for thread in threading.enumerate():
        if thread.name == "webhook":
            thread.join(60)
            assert not thread.is_alive()


def fires(ws) -> str:
    """Accept Nortia's decision and bring in 28 days with a peak of 5: few-users fires."""
    adr = accepted(ws)
    arrived = bring_in_usage(ws, CASE, days(28, 5), by="Kim", source="monitoring")
    assert [v.condition for v in arrived.fired] == ["few-users"]
    return adr.id


def test_what_fired_is_posted_once_with_a_link(shipped, chat, monkeypatch):
    monkeypatch.setenv(webhook.BASE_URL, "https://flipline.example/")
    adr = fires(shipped)
    sent()
    bring_in_usage(shipped, CASE, days(29, 5)[28:], by="Kim", source="monitoring")  # still fired: nothing new to say
    sent()
    (told,) = chat.posted
    assert chat.paths == [f"/hooks/{SECRET}?thread=7"]
    assert told["event"] == "condition_fired"
    assert told["case"]["slug"] == "nortia"
    assert (told["adr"]["id"], told["adr"]["number"]) == (adr, 1)
    assert told["condition"]["line"] == "peak_in_flight max <= 5 over 28 days"
    assert (told["value"], told["distance"], told["unit"]) == (5, 0, "count")
    assert told["link"] == f"https://flipline.example/adr_log?case=nortia&adr={adr}"
    assert "few-users fired" in told["text"]
    assert failing(shipped) is None


def test_an_arrival_that_was_undone_is_not_told(shipped, chat):
    accepted(shipped)
    with pytest.raises(RuntimeError), shipped.store.transaction():
        bring_in_usage(shipped, CASE, days(28, 5), by="Kim", source="monitoring")
        raise RuntimeError
    sent()
    assert chat.posted == []


@pytest.mark.parametrize("dripping", [False, True])
def test_a_webhook_that_hangs_holds_nobody_up_and_is_said(shipped, monkeypatch, dripping):
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.15)
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def hang() -> None:
        server.settimeout(0.02)
        clients: list[socket.socket] = []
        while not over.is_set():
            with suppress(TimeoutError):
                clients.append(server.accept()[0])
            for client in clients if dripping else ():
                with suppress(OSError):
                    client.send(b"H")
        for client in clients:
            client.close()

    hanging = threading.Thread(target=hang)
    hanging.start()
    monkeypatch.setenv(webhook.URL, f"http://127.0.0.1:{server.getsockname()[1]}/hooks/{SECRET}")
    adr = fires(shipped)
    assert [f.condition for f in shipped.store.adrs.get(adr).fires] == ["few-users"]  # while it still hangs
    sent()
    over.set()
    hanging.join()
    server.close()
    told = failing(shipped)
    assert told is not None
    assert (told.why, told.host, told.waiting) == ("it does not answer", "127.0.0.1", 1)
    assert SECRET not in repr(told)


def test_what_could_not_be_sent_is_sent_once_it_can(shipped, chat):
    chat.status = 503
    fires(shipped)
    sent()
    assert len(chat.posted) == 3  # two more tries
    assert failing(shipped).why == "it answers with status 503"
    chat.status = 204
    send_waiting(shipped)
    sent()
    assert len(chat.posted) == 4
    assert failing(shipped) is None
    assert not list((shipped.home / "webhook").glob("*.json"))


def test_two_that_send_at_once_send_it_once(shipped, chat):
    chat.answers.clear()
    fires(shipped)
    first = {thread for thread in threading.enumerate() if thread.name == "webhook"}
    send_waiting(shipped)
    for second in {thread for thread in threading.enumerate() if thread.name == "webhook"} - first:
        second.join(60)
        assert not second.is_alive()  # it leaves the message to the first
    chat.answers.set()
    sent()
    assert len(chat.posted) == 1


def test_a_redirect_is_not_followed(shipped, chat):
    chat.status = 302
    fires(shipped)
    sent()
    assert failing(shipped).why == "it answers with status 302"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://files.example/x", "the address does not begin with http:// or https://"),
        ("http://", "the address does not begin with http:// or https://"),
        ("http://h.example:99999/", "the address cannot be read"),
        ("http://127.0.0.1:1/x", "nothing listens there"),
        ("http://127.0.0.1:1/a b", "it cannot be reached, or breaks off"),
    ],
)
def test_an_address_that_is_none_is_said_and_nothing_is_lost(shipped, monkeypatch, url, why):
    monkeypatch.setenv(webhook.URL, url)
    adr = fires(shipped)
    sent()
    assert failing(shipped).why == why
    assert shipped.store.adrs.get(adr).fires


def test_without_a_webhook_nothing_is_kept(shipped, monkeypatch):
    monkeypatch.delenv(webhook.URL, raising=False)
    fires(shipped)
    assert not (shipped.home / "webhook").exists()
    assert failing(shipped) is None


@pytest.mark.parametrize("text", ["[]", "{}", '{"since": 1}', "nothing"])
def test_a_note_that_is_not_as_it_was_written_is_none(shipped, chat, text):
    (shipped.home / "webhook").mkdir(exist_ok=True)
    (shipped.home / "webhook" / "failing").write_text(text)
    assert failing(shipped) is None
