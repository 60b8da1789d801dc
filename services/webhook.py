"""A chat hears when a condition fires: one JSON POST each, sent after it is stored, never in anybody's way.

FLIPLINE_WEBHOOK_URL names where to (http or https), FLIPLINE_BASE_URL how people reach this app, for the link. What is
to be sent waits in a folder of the workspace until it was taken, so that neither a server that is down nor the end of
this process loses it. No proxy is used and no redirect followed.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

from db.cases import Case
from db.ids import new_id
from decisions.flip_condition import FlipCondition
from decisions.flips import FlipVerdict
from decisions.record import Adr
from planner.frozen import canonical_json
from services.workspace import VERSION, Workspace, now

URL, BASE_URL = "FLIPLINE_WEBHOOK_URL", "FLIPLINE_BASE_URL"
TIMEOUT_S = 3.0  # for connecting, and for the answer
PAUSES_S = (0.5, 1.5)  # before the second and the third try
MESSAGE, FAILING = "*.json", "failing"


class Announcement(NamedTuple):
    """A condition that fired: of which decision, how it stands, and the bundles that did it."""

    case: Case
    adr: Adr
    flip: FlipCondition
    verdict: FlipVerdict
    runs: tuple[str, ...]


class Failing(NamedTuple):
    """The webhook does not work: since when, what happens, where (the host alone), how many messages wait."""

    since: datetime
    why: str
    host: str
    waiting: int


def message(a: Announcement) -> dict[str, object]:
    """What is posted; `text` is what chats show."""
    base = os.environ.get(BASE_URL, "").rstrip("/")
    link = f"{base}/adr_log?{urlencode({'case': a.case.slug, 'adr': a.adr.id})}" if base else ""
    v = a.verdict
    sentence = v.sentence.removeprefix("Fired. ")
    text = f"{a.case.title}, {a.adr.name}: {a.flip.id} fired. {sentence}"
    return {
        "event": "condition_fired", "text": f"{text} {link}".rstrip(),
        "case": {"slug": a.case.slug, "title": a.case.title},
        "adr": {"id": a.adr.id, "number": a.adr.number, "title": a.adr.title},
        "condition": {"id": a.flip.id, "line": a.flip.in_words(), "consequence": a.flip.consequence},
        "sentence": sentence, "value": v.value, "distance": v.distance, "unit": v.unit, "runs": list(a.runs),
        "at": now().isoformat(),
    } | ({"link": link} if link else {})  # fmt: skip


def announce(ws: Workspace, fired: Sequence[Announcement]) -> None:
    """Send what fired once the open transaction is stored; without a webhook nothing is kept."""
    if fired and os.environ.get(URL):
        bodies = [canonical_json(message(a)) for a in fired]
        ws.store.when_stored(lambda: _put_and_send(ws, bodies))


def send_waiting(ws: Workspace) -> None:
    """Try again, in the background, what could not be sent."""
    if os.environ.get(URL) and any(_outbox(ws).glob(MESSAGE)):
        _in_background(ws)


def failing(ws: Workspace) -> Failing | None:
    """Why messages wait, if they do."""
    url = os.environ.get(URL)
    box = _outbox(ws)
    try:
        told = json.loads((box / FAILING).read_text(encoding="utf-8")) if url else None
    except (OSError, ValueError):
        return None
    if told is None:
        return None
    try:
        return Failing(datetime.fromisoformat(told["since"]), told["why"], told["host"], len(list(box.glob(MESSAGE))))
    except (KeyError, TypeError, ValueError):  # not as it was written; the next message writes it anew
        return None


def _put_and_send(ws: Workspace, bodies: Sequence[str]) -> None:
    try:
        box = _outbox(ws)
        box.mkdir(exist_ok=True)
        for body in bodies:
            name = new_id(now())
            part = box / f"{name}.part"
            part.write_text(body, encoding="utf-8")
            part.rename(box / f"{name}.json")
    except OSError:  # a full disk must not undo an arrival; the event stands in the log
        return
    _in_background(ws)


def _outbox(ws: Workspace) -> Path:
    return ws.home / "webhook"


def _in_background(ws: Workspace) -> None:
    # No daemon: a command of the terminal ends when the message is out, or was given up after some ten seconds.
    threading.Thread(target=_send_all, args=(_outbox(ws), os.environ[URL]), name="webhook").start()


def _send_all(box: Path, url: str) -> None:
    """Send all that waits, one sender at a time; what was put there while another one ended is seen by it."""
    try:
        while any(box.glob(MESSAGE)) and _sent(box, url):
            pass
    except OSError:  # the folder is gone, or full: the next message tries again
        return


def _sent(box: Path, url: str) -> bool:
    """Whether to look again. The first that cannot be sent ends it, since the next would wait as long for nothing."""
    with (box / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        for waiting in sorted(box.glob(MESSAGE)):
            why = _deliver(url, waiting.read_bytes())
            if why:
                _note(box, url, why)
                return False
            waiting.unlink()
            (box / FAILING).unlink(missing_ok=True)
    return True


def _note(box: Path, url: str, why: str) -> None:
    since = now().isoformat()
    with suppress(OSError, ValueError, KeyError, TypeError):
        since = json.loads((box / FAILING).read_text(encoding="utf-8"))["since"]
    told = {"since": since, "why": why, "host": urlsplit(url).hostname or "?"}
    part = box / f"{FAILING}.part"
    part.write_text(json.dumps(told), encoding="utf-8")
    part.rename(box / FAILING)


def _deliver(url: str, body: bytes) -> str:
    """Post with two more tries; why it failed, or nothing. No word of the address is in it: it may hold a secret."""
    try:
        target = urlsplit(url)
        port = target.port
    except ValueError:
        return "the address cannot be read"
    if target.scheme not in ("http", "https") or not target.hostname:
        return "the address does not begin with http:// or https://"
    why = ""
    for pause in (0.0, *PAUSES_S):
        time.sleep(pause)
        why = _post(target, port, body)
        if not why:
            return ""
    return why


def _post(target: SplitResult, port: int | None, body: bytes) -> str:
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    connection = kind(target.hostname or "", port, timeout=TIMEOUT_S)
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": f"Flipline/{VERSION}"}
    try:
        connection.request("POST", path, body, headers)
        status = _status(connection.sock)
        return "" if 200 <= status < 300 else f"it answers with status {status}"
    except TimeoutError:
        return "it does not answer"
    except ConnectionRefusedError:
        return "nothing listens there"
    except ssl.SSLError:
        return "its certificate is not trusted"
    except (OSError, http.client.HTTPException, ValueError, IndexError):
        return "it cannot be reached, or breaks off"
    finally:
        connection.close()


def _status(sock: socket.socket) -> int:
    """The status out of an answer's first line; a socket's own timeout is per read, and a server may drip bytes."""
    until, line = time.monotonic() + TIMEOUT_S, b""
    while b"\n" not in line:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        part = sock.recv(4096)
        if not part:
            raise ConnectionResetError
        line += part
    return int(line.split(None, 2)[1].decode("ascii"))
