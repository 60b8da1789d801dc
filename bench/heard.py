"""Standard output whose reader may leave early, as `| head` does: the command goes on and what it found stays found."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, TextIO


class Heard:
    """A text stream that drops what nobody reads any more; everything else is the stream's own."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """As the stream's, for as long as somebody reads."""
        with suppress(BrokenPipeError):
            return self._out.write(text)
        self._drop()
        return len(text)

    def flush(self) -> None:
        """As the stream's, for as long as somebody reads."""
        try:
            self._out.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._out.fileno())
        os.close(nowhere)
