"""The templates of hypotheses as one table, and the hypotheses that a case's requirements ask for.

H1 to H6 are the seed's (its section 9), H6 one a regime. The others test what the seed leaves to the conditions of a
case: prefix cache, structured output, interference, quality, KV capacity over restarts, a neighbour on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from planner.condition_line import parse_condition
from planner.errors import NotAllowed, UnknownName
from planner.hypothesis_case import (
    ASSUMED_SHARE,
    INTERFERENCE,
    JSON,
    QUALITY,
    SHARED,
    Case,
    Regime,
    interference_point,
    json_point,
    quality_point,
    shared_prefix_point,
)
from planner.hypothesis_schema import Stakes
from planner.loads import LoadPoint
from planner.metrics import quantity
from planner.poc import Hypothesis

RATIO_OVER_BASELINE = 3  # seed, hypothesis 2
NEAR = 10  # percent of the threshold that counts as near
# Where measured/bound fell on public runs of one GB10, by regime: prompts up to 1k .64-.87, 8k prompts down to .42,
# beyond 8 in flight up to .98 of the coverage bound (llama.cpp dgx-spark.md@4c7e9893, dgx-spark-benchmarks@5636536).
BAND_SINGLE = (0.4, 0.95)
BAND_PARALLEL = (0.3, 1.1)
CHUNK_TOKENS = 8192  # what vLLM's default budget of one step takes of prompts; a longer one spans several steps
PREFILL_HEAVY = 4  # planner.calibration.MIXES: from here on prompts take a visible part of every decode step
PAUSE_TOKENS = 4  # a gap as long as so many tokens at the promised speed is seen as a pause
HIT_OF_SHARE = 0.8  # blocks are cached whole and the first request of a repeat finds nothing
STRUCTURED_COST = 1.2
MAX_SPREAD = 10  # percent; 20 % between starts were seen on small cards (seed 002: 22,048 to 27,504 tokens)
PASS_RATE, QUALITY_LOSS = 90, 5  # percent
SIXTEEN_BITS = frozenset({"bf16", "fp16", "fp32"})

Use = Literal["in the plan", "offered", "not asked"]


class Template(NamedTuple):
    """A sort of hypothesis: when it is asked, what it says, and what it needs.

    `when` says in words what `use` decides. Lines and words are filled with the names of `_names`; a line with {c} is
    written once for each candidate. `points` are load points to add, `each` writes one hypothesis a regime.
    """

    id: str
    title: str
    when: str
    use: Callable[[Case], Use]
    statement: str
    lines: tuple[str, ...]
    method: str
    if_rejected: str
    stakes: Stakes
    depends_on: tuple[str, ...] = ("H1",)
    points: Callable[[Case], tuple[LoadPoint, ...]] = lambda case: ()
    each: Literal["", "regime"] = ""


def _always(case: Case) -> Use:
    return "in the plan"


def _if(
    asked: Callable[[Case], object], hinted: Callable[[Case], object] = lambda case: False
) -> Callable[[Case], Use]:
    """In the plan where the requirements ask for it, offered where they only hint at it."""
    return lambda case: "in the plan" if asked(case) else "offered" if hinted(case) else "not asked"


def _pair_of_precisions(case: Case) -> bool:
    return bool(case.precise and case.quality)


def _below_sixteen(case: Case) -> bool:
    return case.r.favourite_plan.quantization not in SIXTEEN_BITS


TEMPLATES: tuple[Template, ...] = (
    Template(
        "H1", "starts and answers", "always", _always,
        "Each candidate starts on this machine and answers.",
        ("{c}: started is true", "{c}: completed_share is 1 at single"),
        "Smallest configuration, one request at a time.",
        "Back to the choice of hardware; keep llama.cpp for the baseline only.",
        "ends the plan", depends_on=(),
    ),
    Template(
        "H2", "against the baseline", "if a baseline is measured too", _if(lambda case: case.baseline),
        "At {n} in flight {f} gives {ratio} times the tokens of {b}.",
        ("{f} over {b}: output_tok_s >= {ratio} x at {regular} near {near} %",),
        "Same model, lengths and prompts on both; contract differences declared beforehand.",
        "Suspect the settings before the engine, and measure again.",
        "changes the plan",
    ),
    Template(
        "H3", "speed per user", "always", _always,
        "At {n} in flight each user gets at least {speed} tok/s.",
        ("{f}: user_tok_s p{speed_p} >= {speed} tok/s at {regular} near {near} %",),
        "Raise the requests in flight from 1 to the peak and record the speed per user.",
        "Lower --max-num-seqs and make up for it with units.",
        "changes the plan",
    ),
    Template(
        "H4", "first token at peak", "always", _always,
        "At peak the first token comes within {ttft} s for {ttft_p} % of the requests.",
        ("{f}: ttft p{ttft_p} <= {ttft} s at every of {top}, peak near {near} %",),
        "Open loop at the peak rate and closed loop with all users in flight, queue included.",
        "Solve it with units, shorter prompts, prefix caching, chunk size or another model plan.",
        "changes the plan",
    ),
    Template(
        "H5", "overload", "always", _always,
        "Twice the limit waits in the queue and does not run out of memory.",
        (
            "{f}: oom <= 0 at overload", "{f}: restarts <= 0 at overload",
            "{f}: completed_share >= 95 % at overload", "{f}: waiting max >= 1 at overload",
        ),
        "Offer twice the batch limit and watch the queue, memory and restarts.",
        "Size the memory settings again.",
        "changes a setting",
    ),
    Template(
        "H6", "measured over coverage bound", "always, once for each regime of the sweep", _always,
        "{regime}: measured throughput is {low} to {high} of the coverage bound.",
        ("{f}: measured_over_bound between {low} and {high} x at {regime_point}",),
        "Compare with the coverage bound of the sizing at the same load.",
        "Question the premise that decode is bound by memory bandwidth.",
        "changes the plan", each="regime",
    ),
    Template(
        "H-prefix", "prefix-cache gain", "if prompts share a beginning; offered while nobody knows whether they do",
        _if(lambda case: case.r.shared_prefix_share, lambda case: case.r.shared_prefix_share is None),
        "With {share} of the prompt in common the cache is hit, and {n} users get their first token in time.",
        (
            "{f}: prefix_hit >= {hit} % at {shared}",
            "{f}: ttft p{ttft_p} <= {ttft} s at {shared} near {near} %",
        ),
        "Prompts with a common beginning, new in each repeat; hits are the server's own counters.",
        "Prefix caching does not carry the promise: shorter prompts or more units.",
        "changes the plan", points=shared_prefix_point,
    ),
    Template(
        "H-json", "structured-output cost", "if answers have to fit a schema; else offered for chat",
        _if(lambda case: case.r.structured_output, lambda case: case.r.api != "openai-completions"),
        "A JSON schema costs at most {json_cost} times the time per token, and the answers fit it.",
        ("{f}: structured_cost <= {json_cost} x at " + JSON, "{f}: json_valid >= 99 % at " + JSON),
        "The same prompts with and without the schema, in the same start.",
        "Try another grammar backend, or check the answers outside the server.",
        "changes a setting", points=json_point,
    ),
    Template(
        "H-gap", "interference gap",
        f"if prompts are longer than {CHUNK_TOKENS:,} tokens; offered if {PREFILL_HEAVY} times the answer or more",
        _if(
            lambda case: case.r.peak_users_max > 1 and case.r.input_tokens > CHUNK_TOKENS,
            lambda case: case.r.peak_users_max > 1 and case.r.input_tokens >= PREFILL_HEAVY * case.r.output_tokens,
        ),
        "While long prompts are read, nobody who is being answered waits longer than {pause} for a token.",
        ("{f}: itl_disturbed p99 <= {pause} at " + INTERFERENCE + " near {near} %",),
        "Users decode, then prompts as long as the context come in; their gaps before and during it are compared.",
        "Lower the prompt tokens a step may take (chunk size), or keep long prompts on a unit of their own.",
        "changes a setting", points=interference_point,
    ),
    Template(
        "H-quality", "quality loss", "if the same model is measured in more bits too", _if(_pair_of_precisions),
        "{f} in {precision} answers as well as {precise}.",
        ("{f} over {precise}: quality_loss <= {loss} % at " + QUALITY,),
        "The same quality set on both at temperature 0, paired item by item.",
        "Change the model plan: more bits or another model, not another engine.",
        "changes the plan", points=quality_point,
    ),
    Template(
        "H-answers", "answers that are good enough", "by hand; offered for weights below 16 bits",
        _if(lambda case: False, lambda case: case.quality and not _pair_of_precisions(case) and _below_sixteen(case)),
        "What {f} answers in {precision} is good enough.",
        ("{f}: pass_rate >= {passes} % at " + QUALITY,),
        "Quality set at temperature 0, item by item.",
        "Change the model plan: more bits or another model, not another engine.",
        "changes the plan", points=quality_point,
    ),
    Template(
        "H-kv", "restart spread of KV capacity", "always: each start states it", _always,
        "The KV capacity of {f} differs by at most {spread} % between starts.",
        ("{f}: kv_capacity_spread <= {spread} %",),
        "Read at each start from the server's log or metrics; nothing is run for it.",
        "Fix the KV size by hand: figures of two starts are of two machines until then.",
        "changes a setting",
    ),
    Template(
        "H-beside", "embedding model beside it", "if other programs hold memory of the GPU; else offered",
        _if(lambda case: case.r.hardware[0].other_tenants_gb > 0, _always),
        "With the embedding model at work beside it, {f} keeps memory for {users} users and their speed.",
        (
            "{f}: kv_capacity >= {kv_needed} tokens",
            "{f}: oom <= 0 at overload",
            "{f}: user_tok_s p{speed_p} >= {speed} tok/s at {regular} near {near} %",
        ),
        "Start the embedding model first, and keep it under its usual load through every run of the plan.",
        "Give the embedding model a device of its own, or lower the share of memory that the engine takes.",
        "changes the plan",
    ),
)  # fmt: skip
BY_ID: Mapping[str, Template] = {t.id: t for t in TEMPLATES}


class Written(NamedTuple):
    """A hypothesis from a template with the load points that a plan needs for it."""

    template: Template
    use: Use
    hypothesis: Hypothesis
    points: tuple[LoadPoint, ...]


def generate(case: Case) -> tuple[Written, ...]:
    """Every hypothesis that the case's requirements ask for, in the order of the table."""
    return tuple(w for t in TEMPLATES if (use := t.use(case)) == "in the plan" for w in _written(t, use, case))


def offer(case: Case) -> tuple[Written, ...]:
    """What the requirements only hint at."""
    return tuple(w for t in TEMPLATES if (use := t.use(case)) == "offered" for w in _written(t, use, case))


def written(id: str, case: Case) -> tuple[Written, ...]:
    """The hypotheses of one template whatever the requirements say.

    Raises UnknownName, and NotAllowed when it compares with a candidate that the case lacks.
    """
    if id not in BY_ID:
        raise UnknownName.from_known("template", id, BY_ID, where="hypothesis")
    return tuple(_written(BY_ID[id], BY_ID[id].use(case), case))


def _written(t: Template, use: Use, case: Case) -> Iterator[Written]:
    if t.each != "regime":
        yield Written(t, use, _filled(t, t.id, case, _names(case)), t.points(case))
        return
    regimes = case.regimes()
    for i, (regime, point) in enumerate(regimes.items(), 1):
        id = f"{t.id}-{i}" if len(regimes) > 1 else t.id
        yield Written(t, use, _filled(t, id, case, _names(case) | _regime_names(regime, point)), ())


def _filled(t: Template, id: str, case: Case, names: Mapping[str, object]) -> Hypothesis:
    for name in ("b", "precise"):
        if names[name] is None and any(f"{{{name}}}" in line for line in t.lines):
            raise NotAllowed(f"{t.title} compares with a candidate that the plan lacks.", where=f"hypothesis {t.id}",
                             fix="Add that candidate to the plan file first.")  # fmt: skip
    lines = [
        line.format(**names, c=c)
        for line in t.lines
        for c in (case.candidates if "{c}" in line else ("",))
    ]  # fmt: skip
    return Hypothesis(
        id=id, statement=t.statement.format(**names), conditions=tuple(parse_condition(x) for x in lines),
        method=t.method.format(**names), if_rejected=t.if_rejected, depends_on=t.depends_on, origin=t.id,
        stakes=t.stakes,
    )  # fmt: skip


def _names(case: Case) -> dict[str, object]:
    """What words and lines are filled with. Lengths in tokens, pauses with their unit."""
    r = case.r
    share = r.shared_prefix_share or ASSUMED_SHARE
    return {
        "f": case.favourite, "b": case.baseline, "n": case.regular_point.in_flight, "regular": case.regular,
        "top": case.top, "near": NEAR, "ratio": RATIO_OVER_BASELINE,
        "speed": f"{r.user_tok_s_promise:g}", "speed_p": r.user_tok_s_percentile,
        "ttft": f"{r.ttft_s:g}", "ttft_p": r.ttft_percentile,
        "share": f"{100 * share:.0f} %", "hit": f"{100 * HIT_OF_SHARE * share:.0f}",
        "shared": case.regular if r.shared_prefix_share else SHARED,
        "json_cost": STRUCTURED_COST, "pause": quantity(round(PAUSE_TOKENS * 1000 / r.user_tok_s_promise), "ms"),
        "precision": r.favourite_plan.quantization, "precise": case.precise, "loss": QUALITY_LOSS,
        "passes": PASS_RATE, "spread": MAX_SPREAD,
        "users": r.peak_users_min, "kv_needed": r.peak_users_min * r.context_tokens,
    }  # fmt: skip


def _regime_names(regime: Regime, point: str) -> dict[str, object]:
    low, high = BAND_SINGLE if regime.batches == "1" else BAND_PARALLEL
    return {"regime": regime.words, "low": low, "high": high, "regime_point": point}
