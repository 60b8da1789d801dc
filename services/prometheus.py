"""Prometheus by its HTTP API: what is asked of it, and everything that can go wrong as one sentence.

Routes and answers: prometheus.io/docs/prometheus/latest/querying/api.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from planner.errors import InputError, ServerError

# The Prometheus of this installation: the address that is offered first, and the only one that gets the token.
ADDRESS, TOKEN = "FLIPLINE_PROMETHEUS_URL", "FLIPLINE_PROMETHEUS_TOKEN"
TIMEOUT_S = 30.0
LARGEST_ANSWER = 64 * 2**20
WHO_ASKS = f"Write user:password@ before the host, or set {ADDRESS} and {TOKEN} where Flipline runs."


class Series(NamedTuple):
    """One series: its labels, and its samples as seconds since 1970 and value, which may be NaN."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class _StayHere(HTTPRedirectHandler):
    """A redirect is an answer: followed, it could take the credentials to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Prometheus:
    """A server that is asked; every request raises ServerError with one sentence when it fails.

    Raises InputError for what is no address.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._base, self.name, self._authorization = _parts(url)
        self._timeout_s = timeout_s
        self._opener = build_opener(_StayHere)

    def names(self, selector: str, begin_s: float, end_s: float) -> tuple[str, ...]:
        """Names of the series that match a selector and have samples in between."""
        match = f'{{__name__=~".+"{f",{selector}" if selector else ""}}}'
        asked = {"match[]": match, "start": f"{begin_s:.3f}", "end": f"{end_s:.3f}"}
        return tuple(map(str, self._ask("/api/v1/label/__name__/values", asked)))

    def at(self, expression: str, at_s: float) -> tuple[Series, ...]:
        """An expression at one moment; a range selector gives its samples as they were scraped."""
        return _series(self._ask("/api/v1/query", {"query": expression, "time": f"{at_s:.3f}"}))

    def between(self, expression: str, first_s: float, last_s: float, step_s: float) -> tuple[Series, ...]:
        """An expression at every step from the first moment to the last."""
        asked = {"query": expression, "start": f"{first_s:.3f}", "end": f"{last_s:.3f}", "step": f"{step_s:.3f}"}
        return _series(self._ask("/api/v1/query_range", asked))

    def _ask(self, path: str, asked: Mapping[str, str]) -> Any:
        status, body = self._fetch(f"{self._base}{path}?{urlencode(asked)}")
        if status in (401, 403):
            raise ServerError(f"wants to know who asks ({status}).", where=self.name, fix=WHO_ASKS)
        if 300 <= status < 400:
            raise ServerError(f"sends elsewhere ({status}).", where=self.name, fix="Write the address it sends to.")
        try:
            answer = json.loads(body)
            if answer["status"] == "success":
                return answer["data"]
            said = str(answer["error"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ServerError(f"is not Prometheus: it answers {status} without its JSON.", where=self.name,
                              fix="Write the address under which /api/v1/query answers.") from None  # fmt: skip
        raise ServerError(f"refuses the query: {said[:300]}.", where=self.name, fix="Check selector and window.")

    def _fetch(self, url: str) -> tuple[int, bytes]:
        headers = {"Accept": "application/json"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        until = time.monotonic() + self._timeout_s
        try:
            try:
                answer = self._opener.open(Request(url, headers=headers), timeout=self._timeout_s)
            except HTTPError as e:
                answer = e
            with answer:
                return answer.status, self._whole(answer, until)
        except TimeoutError:
            raise self._late() from None
        except URLError as e:
            if isinstance(e.reason, TimeoutError):
                raise self._late() from None
            if isinstance(e.reason, ssl.SSLCertVerificationError):
                raise ServerError(
                    "shows a certificate that this machine does not trust.", where=self.name,
                    fix="Add its authority to the machine, or name it by SSL_CERT_FILE.",
                ) from None  # fmt: skip
            raise self._away(str(getattr(e.reason, "strerror", None) or e.reason)) from None
        except HTTPException:
            raise self._away("what answers is no HTTP") from None
        except OSError as e:
            raise self._away(e.strerror or str(e)) from None

    def _whole(self, answer: HTTPResponse | HTTPError, until: float) -> bytes:
        """The body, read piece by piece: a server that trickles never trips the timeout of a single read."""
        body = bytearray()
        while piece := answer.read1(2**16):
            body += piece
            if time.monotonic() > until:
                raise self._late()
            if len(body) > LARGEST_ANSWER:
                raise ServerError(f"answers with more than {LARGEST_ANSWER >> 20} MiB.", where=self.name,
                                  fix="Narrow the selector.")  # fmt: skip
        return bytes(body)

    def _late(self) -> ServerError:
        return ServerError(f"did not answer within {self._timeout_s:g} s.", where=self.name,
                           fix="Ask for fewer days, or narrow the selector.")  # fmt: skip

    def _away(self, why: str) -> ServerError:
        return ServerError(f"cannot be reached: {why}.", where=self.name, fix="Check the address from this machine.")


def _parts(url: str) -> tuple[str, str, str]:
    """Base address without credentials, the name to call it by, and the Authorization header."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in url.strip()):
        raise InputError("is no address.", where="Prometheus", fix="Write it as http://prometheus:9090.")
    bare = f"[{host}]" if ":" in host else host
    place = f"{bare}:{port}" if port else bare
    base = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    return base, f"{place}{parts.path.rstrip('/')}", _authorization(base, parts.username, parts.password)


def _authorization(base: str, user: str | None, password: str | None) -> str:
    if user is not None:
        pair = f"{unquote(user)}:{unquote(password or '')}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    token = os.environ.get(TOKEN, "").strip()
    return f"Bearer {token}" if token and base == os.environ.get(ADDRESS, "").strip().rstrip("/") else ""


def _series(data: Any) -> tuple[Series, ...]:
    """Series of a vector or matrix."""
    return tuple(
        Series(dict(one["metric"]), tuple((float(at), float(v)) for at, v in one.get("values") or [one["value"]]))
        for one in data["result"]
    )
