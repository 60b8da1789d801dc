"""An OpenAI-compatible streaming server whose timing is known, with faults on demand.

    settings   what is emulated, and the faults
    fixed      TTFT and token gaps as stated
    batching   step times through a real batch policy (planner/batching.py), with KV blocks and preemption
    answer     how an answer is written, and how it breaks off
    metrics    the metrics page in the chosen engine's names
    server     HTTP
    command    the terminal command

It calls itself emulator/1 in /version and in every Server header, so that bench marks what it measures here as
simulated, whichever engine's names its metrics carry.
"""

from bench.emulator.server import Emulator
from bench.emulator.settings import Settings, count_tokens

__all__ = ["Emulator", "Settings", "count_tokens"]
