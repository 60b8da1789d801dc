"""Read bandwidth of this machine's memory in GB/s: every core sums arrays far larger than its cache; best of five.

    python scripts/memory_bandwidth.py [--threads N]

What the catalogue states for the "two cores" machine was measured with this; a decode step reads memory the same way.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

MIB = 512  # per thread, far beyond any cache
ROUNDS = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    threads = parser.parse_args().threads
    arrays = [np.ones(MIB * 2**20 // 8) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            list(pool.map(np.sum, arrays))
            best = max(best, threads * MIB * 2**20 / (time.perf_counter() - began) / 1e9)
    print(f"{best:.1f} GB/s read by {threads} threads, best of {ROUNDS}, {MIB} MiB each")


if __name__ == "__main__":
    main()
