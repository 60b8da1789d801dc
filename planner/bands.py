"""Known error of each kind of estimate, as data: what was compared, on how many rows, and how far off it was."""

from __future__ import annotations

from planner.frozen import Frozen
from planner.memory import RESERVE_BAND

ALL_FAMILIES = ""


class Band(Frozen):
    """The error of one figure for one family of models; percentages of the measured value, None where not counted."""

    figure: str
    family: str = ALL_FAMILIES
    words: str
    mean_error: float | None = None
    within_30: float | None = None
    n: int | None = None
    source: str


_SILICON = "ai-dynamo/aiconfigurator silicon_sample.csv (H100, H200, B200)"
_VLLM_LOGS = "start-up logs of vLLM 0.19 on H100 (jgchn/llm-d-planner@d3121e0)"
_SHIPPED = "perf/truth/throughput.csv (python -m perf.prediction)"
_ARITHMETIC = "arithmetic"

_ROWS = (
    Band(figure="weights", words="text-only within 1 % of vLLM's log (mean 0.4 %); a vision tower that is not stated "
         "adds 1-1.5 GB", mean_error=0.4, n=38, source=_VLLM_LOGS),
    Band(figure="kv_per_token", words="exact for the modelled architectures", source=_ARITHMETIC),
    Band(figure="kv_per_request", words="exact for the modelled architectures", source=_ARITHMETIC),
    Band(figure="reserve", words=RESERVE_BAND, n=38, source=_VLLM_LOGS),
    Band(figure="kv_pool", words="follows the reserve: 2-6 GiB by engine version; 20 % between starts were seen on "
         "small cards", n=38, source=_VLLM_LOGS),
    Band(figure="requests_that_fit", words="0.1 % from a known pool, hybrids and windows included; else as the pool",
         mean_error=0.1, n=33, source=_VLLM_LOGS),
    Band(figure="largest_context", words="as the requests that fit: 0.1 % from a known pool; else as the pool",
         mean_error=0.1, n=33, source=_VLLM_LOGS),
    Band(figure="bound", family="dense", words="optimistic: measured time per token at the median of public server "
         "runs (dense) is 3 times as long; for one user alone 1.2-1.5 times", n=998, source=_SILICON),
    Band(figure="bound", family="moe", words="optimistic: measured time per token at the median of public server runs "
         "(mixture of experts) is 14 times as long; for one user alone 1.2-1.5 times", n=1352, source=_SILICON),
    Band(figure="coverage", words="measured time per token at the median of public server runs is 3 times as long",
         n=2350, source=_SILICON),
    Band(figure="planning", family="dense", words="mean error 18 %, 85 % of 178 public rows within 30 %",
         mean_error=18, within_30=85, n=178, source=_SHIPPED),
    Band(figure="planning", family="moe", words="mean error 19 %, 81 % of 232 public rows within 30 %",
         mean_error=19, within_30=81, n=232, source=_SHIPPED),
    Band(figure="interference", words="as the planning value, of which it is a part; prompts of 8,000 tokens take up "
         "to half of the bound's speed", n=2350, source=_SILICON),
    Band(figure="prompt_gap", words="not checked on public runs; it follows the MFU of prompts, published a third "
         "around it", source=_ARITHMETIC),
    Band(figure="speculation", words="not checked on public runs; acceptance decides and differs by text: measure it",
         source=_ARITHMETIC),
    Band(figure="waiting", words="simulated: held to queueing theory, not to measured servers; it follows the error of "
         "the step times and of the assumed load", source="docs/queueing.md"),
    Band(figure="first_token", family="dense", words="planning value: mean error 24 % on 24 vLLM rows with up to 8 in "
         "flight", mean_error=24, within_30=67, n=24, source=_SHIPPED),
    Band(figure="first_token", family="moe", words="planning value: mean error 41 % on 41 vLLM rows with up to 8 in "
         "flight", mean_error=41, within_30=46, n=41, source=_SHIPPED),
    Band(figure="completion", words="optimistic, as the bound", source=_SILICON),
    Band(figure="units", words="as the speed that it rests on; rounding up hides small errors and shows large ones",
         source=_SILICON),
    Band(figure="request_rate", words="as the planning value; arrivals in bursts need the queue model",
         source=_SILICON),
    Band(figure="pipeline", words="not checked on public runs: stages that wait for each other make it slower",
         source=_ARITHMETIC),
    Band(figure="energy", words="as the planning value; a board seldom draws its limit while decoding, idle hours "
         "raise the figure in proportion", source=_SILICON),
    Band(figure="cost", words="as the planning value; idle hours raise it in proportion", source=_SILICON),
)  # fmt: skip
BANDS: dict[tuple[str, str], Band] = {(b.figure, b.family): b for b in _ROWS}


def band(figure: str, family: str = ALL_FAMILIES) -> str:
    """The known error in words; a figure whose error does not hang on the family has one row for all."""
    found = BANDS.get((figure, family)) or BANDS[figure, ALL_FAMILIES]
    return found.words
