"""Explanations of the speed side: bound, coverage, planning value, prompts of others, first token."""

from __future__ import annotations

from planner.bands import band
from planner.conditions import Kind
from planner.derivation import REQUIREMENTS, Derivation, DerivedInput, given
from planner.gpu_schema import Gpu
from planner.pipeline import staged_row
from planner.prefill import FEW_IN_FLIGHT, FIRST_TOKEN, FirstToken, interference
from planner.requirements import Requirements
from planner.speculation import Speculation
from planner.stated import BY_USER, Stated
from planner.throughput import (
    MFU,
    ROUTING_INDEPENDENCE,
    ThroughputInputs,
    layer_overhead_us,
    running_batch,
    step_s,
    weights_read_gb,
)
from planner.units import format_duration, format_tok_s

OWN_RUNS = "the team's own runs: the planning value follows them"
CHECKED = "checked on public runs"
SETTING = "setting"
INDEPENDENT = "each guess is accepted whatever came before it; measured acceptance falls with the position"
TITLES = {Kind.BOUND: "Bound", Kind.COVERAGE: "Bound with the experts touched", Kind.PLANNING: "Planning value"}


def _guesses(guess: Speculation | None) -> tuple[DerivedInput, ...]:
    if guess is None:
        return ()
    return (
        given("guessed ahead", f"{guess.draft_tokens} tokens, {guess.acceptance:.0%} accepted", SETTING),
        given("tokens of one verification", f"{guess.tokens_per_step:.2f}", "(1 - a^(k+1)) / (1 - a)"),
        given("one guess", f"{guess.draft_cost:.0%} of a step", SETTING),
    )


class Speed:
    """What every explanation of a speed names as its inputs, written once."""

    def __init__(
        self, inputs: ThroughputInputs, gpu: Gpu, rate: tuple[float, str] | None, r: Requirements, stated: Stated,
        stages: int = 1, chunk_tokens: int = 8192,
    ) -> None:  # fmt: skip
        self.inputs, self.requirements, self.stages, self.chunk_tokens = inputs, r, stages, chunk_tokens
        by_user = stated.bandwidth_gb_s is not None
        bandwidth = given("bandwidth", f"{inputs.bandwidth_gb_s:g} GB/s a device", BY_USER if by_user else gpu.source)
        cache = given("KV per request", f"{inputs.kv_gb_per_request:.3f} GB", "computed at the full context")
        read = given("always read", f"{inputs.always_read_gb:.2f} GB", "counted by module")
        routed = given(
            "experts", f"{inputs.experts_per_token} of {inputs.n_experts}, {inputs.experts_gb:.1f} GB in all",
            "model's config",
        )  # fmt: skip
        active = given("active weights", f"{inputs.active_weight_gb:.2f} GB", "maker's figure where there is one")
        self.tflops: DerivedInput | None = None
        if rate:
            how = BY_USER if stated.matrix_tflops is not None else f"{rate[1]}; {gpu.source}"
            self.tflops = given("matrix rate", f"{rate[0]:g} TFLOPS", how)
        self.guess = guess = _guesses(inputs.speculation)
        touched = (read, *((routed,) if inputs.n_experts else ()), cache, bandwidth, *guess)
        self.given: dict[Kind, tuple[DerivedInput, ...]] = {
            Kind.BOUND: (active, cache, bandwidth, *guess),
            Kind.COVERAGE: touched,
            Kind.PLANNING: (
                *touched,
                given("share of the bandwidth", f"{inputs.efficiency:g}", CHECKED),
                given("overhead", f"{layer_overhead_us(inputs):g} us a layer", CHECKED),
                given("prompt and answer", f"{r.input_tokens:,} and {r.output_tokens:,} tokens", REQUIREMENTS),
                given("MFU", f"{MFU[inputs.family]:g}", CHECKED),
                *((self.tflops,) if self.tflops else ()),
                *(given(f"measured / coverage at {m.batch:,}", f"{m.ratio:.2f} (n = {m.n})", OWN_RUNS)
                  for m in inputs.measured),
            ),
        }  # fmt: skip

    def formula(self, kind: Kind) -> str:
        """The formula of a kind of speed, in words."""
        drafted = f"; with a draft: (step of {self.inputs.step_tokens(1)} x batch tokens + guesses) / tokens of it"
        return self._plain_formula(kind) + (drafted if self.inputs.speculation else "")

    def _plain_formula(self, kind: Kind) -> str:
        return {
            Kind.BOUND: "batch x bandwidth / (active weights read once + batch x KV per request)",
            Kind.COVERAGE: "experts read = E x (1 - (1 - k/E)^batch); the rest as in the bound",
            Kind.PLANNING: f"longest of coverage step, step with {_routed(self.inputs)} / "
            f"{self.inputs.efficiency:g} and operations / MFU, + layers x overhead + batch x prefill / (MFU x answer)",
        }[kind]

    def assumptions(self, kind: Kind) -> tuple[str, ...]:
        """What dominates the error of a kind of speed."""
        routed = bool(self.inputs.n_experts)
        guesses = (INDEPENDENT,) if self.inputs.speculation else ()
        own = {
            Kind.BOUND: ("only bytes count", *(("the whole batch uses the experts of one token",) if routed else ())),
            Kind.COVERAGE: ("tokens pick experts uniformly; correlated routing was measured up to 1.5 times faster",),
            Kind.PLANNING: (
                "steady state",
                "every request fills its context",
                *(() if self.tflops else ("prefill left out: the matrix rate is unknown",)),
            ),
        }
        return (*guesses, *own[kind])

    def explain(self, kind: Kind, key: str, title: str, value: str) -> Derivation:
        """A figure that is this kind of speed."""
        own = self.inputs.measured if kind is Kind.PLANNING else ()
        known = band(kind.value, self.inputs.family)
        if own:
            known = f"own runs differ by up to {max(m.spread / m.ratio for m in own):.0%}; without them: {known}"
        return Derivation(
            key=key, title=title, value=value, formula=self.formula(kind), inputs=self.given[kind],
            assumptions=self.assumptions(kind), band=known,
        )  # fmt: skip

    def row(self, kind: Kind, batch: int) -> Derivation:
        """One cell of the batch table: the speed of one batch, with what its step reads."""
        inputs, r = self.inputs, self.requirements
        cell = staged_row(inputs, self.stages, kind, batch, r.user_tok_s_promise, r.user_tok_s_target)
        running, step, total = -(-cell.running // self.stages), 1 / cell.user_tok_s, cell.total_tok_s
        tokens = inputs.step_tokens(running)
        weights, cache = weights_read_gb(inputs, kind, tokens), running * inputs.kv_gb_per_request
        found = self.explain(
            kind, f"{kind.value}@{batch}", f"{TITLES[kind]}, {batch:,} in flight",
            f"{format_tok_s(total)} in total, {format_tok_s(1 / step)} each",
        )  # fmt: skip
        seen = (
            given("running at once", f"{cell.running:,}", "batch, at most what the KV cache holds"),
            *(
                (given("in one part", f"{running:,}", f"the batch is cut into {self.stages} parts"),)
                if self.stages > 1
                else ()
            ),
            given("read per step", f"{weights + cache:.1f} GB = {weights:.1f} weights + {cache:.1f} KV", "computed"),
            given("time per token", format_duration(step), "computed"),
        )
        return found.model_copy(update={"inputs": (*seen, *found.inputs)})


def speed_derivations(speed: Speed, first: FirstToken | None) -> tuple[Derivation, ...]:
    """The three speeds for one user alone, the share of other users' prompts at the peak, and the first token."""
    inputs, tflops = speed.inputs, speed.tflops
    result = [
        speed.explain(kind, kind.value, title, f"{format_tok_s(1 / step_s(inputs, kind, 1))} for one user alone")
        for kind, title in TITLES.items()
    ]
    if speed.stages > 1:
        result.append(pipeline_derivation(speed))
    if inputs.speculation:
        result.append(_speculation(speed, inputs.speculation))
    if first and tflops:
        result += [*_first_token(speed, first, tflops), *_interference(speed, tflops)]
    return tuple(result)


def _speculation(speed: Speed, guess: Speculation) -> Derivation:
    """What guessing ahead does to one user alone and to the peak: a draft helps while the step is mostly reading."""
    inputs, users = speed.inputs, speed.requirements.peak_users_max
    without = inputs.model_copy(update={"speculation": None})
    running = -(-running_batch(inputs, users) // speed.stages)
    alone, full = (
        step_s(without, Kind.PLANNING, n) / step_s(inputs, Kind.PLANNING, n) for n in (1, running)
    )  # fmt: skip
    return Derivation(
        key="speculation", title=f"A draft of {guess.draft_tokens} tokens",
        value=f"{alone:.2f} times as fast alone, {full:.2f} times at the peak",
        formula="plain step / ((step that verifies all guesses + guesses x cost of one) / tokens of one verification)",
        inputs=(*speed.guess, given("at the peak", f"{running:,} running", REQUIREMENTS)),
        assumptions=(INDEPENDENT, "guesses of all requests are verified together"), band=band("speculation"),
    )  # fmt: skip


def _routed(inputs: ThroughputInputs) -> str:
    return f"the experts of batch^{ROUTING_INDEPENDENCE:g} tokens" if inputs.n_experts else "all weights"


def _first_token(speed: Speed, first: FirstToken, tflops: DerivedInput) -> tuple[Derivation, Derivation]:
    prompt = given("prompt", f"{speed.requirements.input_tokens:,} tokens", REQUIREMENTS)
    at_peak = given("prefill at peak", format_duration(first.prefill_ms_at_peak / 1000), "operations / matrix rate")
    fixed_ms, share = FIRST_TOKEN[speed.inputs.family]
    alike = {"assumptions": ("nobody waits; with more than 8 in flight the wait is queueing", "no prefix is cached"),
             "band": band("first_token", speed.inputs.family)}  # fmt: skip
    return (
        Derivation(
            key="first_token_floor", title="First token, at least", value=format_duration(first.floor_ms / 1000),
            formula="the longer of (2 x active parameters x prompt + attention pairs) / matrix rate, and one reading "
                    "of the weights",
            inputs=(prompt, tflops, at_peak), **alike,
        ),
        Derivation(
            key="first_token", title="First token without a queue", value=format_duration(first.planning_ms / 1000),
            formula=f"{FEW_IN_FLIGHT} in flight x {fixed_ms:g} ms + prefill at peak / {share:g}",
            inputs=(prompt, tflops, at_peak), **alike,
        ),
    )  # fmt: skip


def pipeline_derivation(speed: Speed) -> Derivation:
    """What spreading the layers over stages does to one user and to all."""
    r, stages = speed.requirements, speed.stages
    users = r.peak_users_max
    cell = staged_row(speed.inputs, stages, Kind.PLANNING, users, r.user_tok_s_promise, r.user_tok_s_target)
    return Derivation(
        key="pipeline", title=f"{users:,} users on one unit of {stages} stages",
        value=f"{format_tok_s(cell.user_tok_s)} each, {format_tok_s(cell.total_tok_s)} in total",
        formula="step of one part of the batch on one stage's devices; the total is that of all parts",
        inputs=(given("stages", f"{stages}", "setting"),
                given("in one part", f"{-(-cell.running // stages):,}", "batch / stages, rounded up")),
        assumptions=("stages are even and never wait for each other", "one user alone gains nothing",
                     "handing on to the next stage takes no time"),
        band=band("pipeline"),
    )  # fmt: skip


def _interference(speed: Speed, tflops: DerivedInput) -> tuple[Derivation, Derivation]:
    inputs, r = speed.inputs, speed.requirements
    running = -(-running_batch(inputs, r.peak_users_max) // speed.stages)
    found = interference(inputs, running, r.input_tokens, speed.chunk_tokens)
    assert found is not None  # the matrix rate is known here
    step = (found.undisturbed_ms + found.averaged_ms) / 1000
    lengths = given("prompt and answer", f"{r.input_tokens:,} and {r.output_tokens:,} tokens", REQUIREMENTS)
    mfu = given("MFU", f"{MFU[inputs.family]:g}", CHECKED)
    return (
        Derivation(
            key="interference", title=f"Share of a step that other users' prompts take, {r.peak_users_max:,} at once",
            value=f"{found.share:.0%}",
            formula="batch x prefill of one prompt / (MFU x answer) / step: each answer's lifetime carries one prompt "
                    "of every other request",
            inputs=(given("step", format_duration(step), "planning value"), lengths, mfu, tflops),
            assumptions=("prompts are spread evenly over time", "no prefix is cached"),
            band=band("interference"),
        ),
        Derivation(
            key="prompt_gap", title=f"Longest gap between two tokens while another's prompt is computed, "
                                    f"{r.peak_users_max:,} at once",
            value=format_duration(found.spike_ms / 1000),
            formula="step of those who decode + operations of one chunk of the prompt / (MFU x matrix rate)",
            inputs=(given("step without prompts", format_duration(found.undisturbed_ms / 1000), "planning value"),
                    given("chunk", f"{min(found.chunk_tokens, r.input_tokens):,} tokens",
                          f"the prompt, at most {found.chunk_tokens:,} of a step: max_num_batched_tokens"),
                    lengths, mfu, tflops),
            assumptions=("one prompt at a time", "no prefix is cached", "prompts and decoding share the step"),
            band=band("prompt_gap"),
        ),
    )  # fmt: skip
