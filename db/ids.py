"""New ids: 26 characters that sort by time (the form of a ULID, github.com/ulid/spec)."""

from __future__ import annotations

import secrets
from datetime import datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id(at: datetime) -> str:
    """48 bits of milliseconds since 1970, then 80 random bits, in Crockford's base 32."""
    number = int(at.timestamp() * 1000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
