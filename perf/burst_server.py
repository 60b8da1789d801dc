"""A server that writes one event to every stream in the same tick, as a decode step does, and stamps every write.

    python perf/burst_server.py --streams 256 --chunks 150 --every-ms 20

It prints its port, waits until all streams have asked, and writes on absolute deadlines. GET /truth gives, for each
stream by the number in its prompt, when its request arrived (the kernel's stamp) and when each of its events was
written, in nanoseconds of CLOCK_MONOTONIC, and the share of the asked rate that was really offered. With --streams 0
every request is answered at once. One thread and no library, so that the truth costs as little as it can.
"""

from __future__ import annotations

import argparse
import json
import re
import selectors
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.arrivals import CONTROL_BYTES, Arrivals, ask_for_stamps

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_NUMBER = re.compile(rb"stream (\d+)")
_PADDING = "chatcmpl-" + "0" * 32  # brings an event to some 230 bytes, as vLLM's are


def framed(payload: dict[str, object] | str) -> bytes:
    """One server-sent event as an HTTP chunk."""
    text = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
    data = f"data: {text}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def token_event(i: int, last: bool) -> bytes:
    """The event of token `i`."""
    choice = {"index": 0, "delta": {"content": f" token{i}"}, "logprobs": None,
              "finish_reason": "length" if last else None}  # fmt: skip
    return framed({"id": _PADDING, "object": "chat.completion.chunk", "created": 1764450000, "model": "emulated",
                   "choices": [choice]})  # fmt: skip


def ending(chunks: int) -> bytes:
    """Usage, [DONE] and the end of the body."""
    usage = {"prompt_tokens": 8, "completion_tokens": chunks, "total_tokens": 8 + chunks}
    return framed({"id": _PADDING, "choices": [], "usage": usage}) + framed("[DONE]") + b"0\r\n\r\n"


class BurstServer:
    """Serves until killed."""

    def __init__(self, streams: int, chunks: int, every_s: float) -> None:
        self._streams, self._chunks, self._every_s = streams, chunks, every_s
        self._events = [token_event(i, i == chunks - 1) for i in range(chunks)]
        self._ending = ending(chunks)
        self._selector = selectors.DefaultSelector()
        self._arrivals = Arrivals()
        self._buffers: dict[socket.socket, bytearray] = {}
        self._waiting: list[tuple[int, socket.socket]] = []
        self._received: dict[int, int] = {}
        self._written: dict[int, list[int]] = {}
        self._offered = 1.0

    def serve(self) -> None:
        """Listen on a free port of loopback, print it, and answer."""
        listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._selector.register(listening, selectors.EVENT_READ)
        print(listening.getsockname()[1], flush=True)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is listening:
                    self._accept(listening)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._read(key.fileobj)
            if self._streams and len(self._waiting) == self._streams:
                waiting, self._waiting = self._waiting, []
                self._burst(waiting)

    def _accept(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_for_stamps(connection)
        self._buffers[connection] = bytearray()
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        try:
            data, control, _, _ = connection.recvmsg(65536, CONTROL_BYTES)
        except ConnectionError:
            data, control = b"", []
        if not data:
            self._selector.unregister(connection)
            del self._buffers[connection]
            connection.close()
            return
        arrived, _ = self._arrivals.time_of(control, self._arrivals.epoch)
        buffer = self._buffers[connection]
        buffer += data
        head, found, body = bytes(buffer).partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or len(body) < (int(length[1]) if length else 0):
            return
        buffer.clear()
        if head.startswith(b"GET"):
            self._tell(connection)
            return
        number = _NUMBER.search(body)
        stream = int(number[1]) if number else -1
        self._received[stream] = round(arrived * 1e9)
        if self._streams:
            connection.sendall(HEAD)
            self._waiting.append((stream, connection))
        else:
            connection.sendall(HEAD + b"".join(self._events) + self._ending)

    def _burst(self, waiting: list[tuple[int, socket.socket]]) -> None:
        """Write every token to every stream; a stream that cannot take more ends the server with an error."""
        streams = [(connection, self._written.setdefault(stream, [])) for stream, connection in waiting]
        now = time.monotonic_ns
        begin = now() / 1e9 + 2 * self._every_s
        for i, event in enumerate(self._events):
            left = begin + i * self._every_s - now() / 1e9
            if left > 0:
                time.sleep(left)
            for connection, written in streams:
                written.append(now())
                connection.send(event)
        asked, took = (self._chunks - 1) * self._every_s, (streams[0][1][-1] - streams[0][1][0]) / 1e9
        self._offered = min(1.0, asked / took) if took else 1.0
        for connection, _ in streams:
            connection.sendall(self._ending)

    def _tell(self, connection: socket.socket) -> None:
        body = json.dumps({"received": self._received, "written": self._written, "offered_share": self._offered})
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode()))
        self._received, self._written = {}, {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--every-ms", type=float, default=20.0)
    args = parser.parse_args()
    BurstServer(args.streams, args.chunks, args.every_ms / 1000).serve()
