"""Stops a server of ours when bench dies, even by kill -9: python -m bench.guard LEASE PID.

It waits for the end of the process that started it, in a session of its own, and then ends what the lease proves to
be ours. A word on its standard input lets it go without doing anything.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

from bench.lease import clean_up

GRACE_S = 10.0
LET_GO = b"done"


def main(arguments: list[str]) -> int:
    """Wait; returns 0 when it was let go, 1 when it had to clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lease, bench = Path(arguments[0]), int(arguments[1])
    if wait_for_end(bench):
        return 0
    clean_up(lease, GRACE_S)
    return 1


def wait_for_end(bench: int) -> bool:
    """True when bench let go, False when it died.

    Its standard input alone would not do: a forked child of bench holds the other end open as well.
    """
    waiting = [0]
    try:
        waiting.append(os.pidfd_open(bench))
    except (OSError, AttributeError):
        if os.getppid() != bench:
            return False
    if os.getppid() != bench:
        return False
    ready, _, _ = select.select(waiting, [], [])
    return 0 in ready and os.read(0, len(LET_GO)) == LET_GO


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
