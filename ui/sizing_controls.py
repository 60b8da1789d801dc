"""What the Sizing page lets a person change on the spot, and what it asks for where the facts have a gap."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.capacity import SizingSettings
from planner.model_schema import Model
from planner.quantization import KV_BYTES
from planner.request_rate import DEFAULT_UTILISATION, offered_rate
from planner.requirements import Requirements
from planner.speculation import Speculation
from planner.splits import valid_tensor_parallel
from planner.stated import FACTS, Fact, Stated
from planner.units import format_duration
from services.what_if import Question, with_context
from ui.parts import plain
from ui.text import t

CONTEXTS = tuple(1024 * 2**i for i in range(11))
STAGES = (1, 2, 4, 8)
SLOTS = (16, 32, 64, 128, 256, 512, 1024)
MONEY = ("unit_price", "years", "electricity_per_kwh")


def changed_question(asked: Question, model: Model, key: str) -> Question:
    """The question with what the controls say; they begin at what the requirements say."""
    r, plan = asked.requirements, asked.plan
    a, b, c = st.columns(3)
    users = a.slider(t("Users at once"), 1, max(200, 4 * r.peak_users_max), r.peak_users_max, key=f"{key}-users")
    contexts = [n for n in sorted({*CONTEXTS, r.context_tokens})
                if r.output_tokens < n <= max(model.max_position_embeddings, r.context_tokens)]  # fmt: skip
    context = b.select_slider(
        t("Context (tokens)"), contexts, r.context_tokens, format_func=lambda n: f"{n:,}", key=f"{key}-context"
    )
    cache = c.segmented_control(
        t("KV cache"), list(KV_BYTES), default=plan.kv_cache_dtype, required=True, key=f"{key}-kv"
    )
    unit = asked.settings.tensor_parallel
    splits = [n for n in valid_tensor_parallel(model) if n <= max(8, unit)]
    devices = a.segmented_control(
        t("Devices that share every layer"), splits, default=unit,
        required=True, key=f"{key}-tp", help=t("Tensor parallel. One unit is all devices that share one model."),
    )  # fmt: skip
    stages = b.segmented_control(
        t("Stages that share the layers"), [n for n in STAGES if n <= model.num_hidden_layers], default=1,
        required=True, key=f"{key}-pp", help=t("Pipeline parallel: memory for larger models, no speed for one user."),
    )  # fmt: skip
    slots = c.select_slider(
        t("Largest batch"), [0, *SLOTS], 0, format_func=lambda n: f"{n:,}" if n else t("as many as users"),
        key=f"{key}-slots", help=t("The engine's limit of requests at once; it takes memory before the first request."),
    )  # fmt: skip
    utilisation = a.slider(
        t("Utilisation (%)"), 10, 100, round(100 * DEFAULT_UTILISATION), 5, key=f"{key}-utilisation",
        help=t("How far a unit is loaded at most; the rest absorbs bursts. Counts for requests per second and cost."),
    )  # fmt: skip
    rate = b.number_input(
        t("Requests per second at the peak"), min_value=0.001, max_value=100_000.0, value=None, key=f"{key}-rate",
        placeholder=f"{offered_rate(r):.3g}",
        help=t("Left empty: users x requests per user and minute of the requirements."),
    )  # fmt: skip
    share = c.slider(
        t("Bandwidth that others use (%)"), 0, 80, 0, 5, key=f"{key}-share",
        help=t("An embedding model or reranker on the same GPU reads memory too."),
    )  # fmt: skip
    tenants = a.number_input(
        t("Memory that others hold (GB)"), 0.0, 10_000.0, asked.hardware.other_tenants_gb, 1.0, key=f"{key}-tenants",
        help=t("Other programs on the same GPU: an embedding model, a reranker. Decimal GB."),
    )  # fmt: skip
    settings = SizingSettings(
        tensor_parallel=devices or 1, pipeline_parallel=stages or 1, max_num_seqs=slots or None,
        utilisation=utilisation / 100, peak_rate_per_s=rate, tenant_bandwidth_share=share / 100,
        speculation=_draft(b, c, key), stated=stated_so_far(key),
    )  # fmt: skip
    asked_for = with_context(r, context).model_copy(
        update={"peak_users_max": users, "peak_users_min": min(r.peak_users_min, users)}
    )
    return asked._replace(
        requirements=asked_for, plan=plan.model_copy(update={"kv_cache_dtype": cache}), settings=settings,
        hardware=asked.hardware.model_copy(update={"other_tenants_gb": tenants}),
    )  # fmt: skip


def _draft(left: DeltaGenerator, right: DeltaGenerator, key: str) -> Speculation | None:
    """Speculative decoding; what it needs is asked for only once it is wanted."""
    tokens = left.select_slider(
        t("Tokens guessed ahead"), range(9), 0, format_func=lambda n: f"{n}" if n else t("no draft"),
        key=f"{key}-draft",
        help=t("Speculative decoding: a draft guesses, the model verifies all guesses in one step."),
    )  # fmt: skip
    if not tokens:
        return None
    accepted = right.slider(
        t("Guesses accepted (%)"), 0, 100, 70, 5, key=f"{key}-acceptance",
        help=t("Measure it: code is guessed more often than prose."),
    )  # fmt: skip
    size = left.number_input(
        t("Draft model (GB)"), 0.0, 10_000.0, 0.0, 0.5, key=f"{key}-draft-gb",
        help=t("Weights of a draft model of its own; 0 for draft layers of the model or look-up in the prompt."),
    )  # fmt: skip
    cost = right.slider(
        t("One guess, of a step (%)"), 0, 50, 5, key=f"{key}-draft-cost",
        help=t("0 for look-up in the prompt, about 5 for draft layers."),
    )  # fmt: skip
    return Speculation(draft_tokens=tokens, acceptance=accepted / 100, draft_cost=cost / 100, draft_gb=size)


def changes_in_words(before: Question, after: Question) -> list[str]:
    """What differs from the requirements, each as `name: now instead of before`."""
    pairs = (
        (t("users"), before.requirements.peak_users_max, after.requirements.peak_users_max),
        (t("context"), f"{before.requirements.context_tokens:,}", f"{after.requirements.context_tokens:,}"),
        (t("KV cache"), before.plan.kv_cache_dtype, after.plan.kv_cache_dtype),
        (t("devices"), before.settings.tensor_parallel, after.settings.tensor_parallel),
        (t("stages"), before.settings.pipeline_parallel, after.settings.pipeline_parallel),
        (t("largest batch"), before.settings.max_num_seqs, after.settings.max_num_seqs),
        (t("utilisation"), before.settings.utilisation, after.settings.utilisation),
        (t("requests per second"), before.settings.peak_rate_per_s, after.settings.peak_rate_per_s),
        (t("bandwidth of others"), before.settings.tenant_bandwidth_share, after.settings.tenant_bandwidth_share),
        (t("memory of others"), before.hardware.other_tenants_gb, after.hardware.other_tenants_gb),
        (t("draft"), _draft_words(before.settings.speculation), _draft_words(after.settings.speculation)),
    )
    unset = t("as required")
    return [
        t("{name} {now} instead of {before}", name=name, now=now or unset, before=old or unset)
        for name, old, now in pairs if now != old
    ]  # fmt: skip


def _draft_words(guess: Speculation | None) -> str | None:
    if guess is None:
        return None
    return t("{n} tokens at {share:.0%}", n=guess.draft_tokens, share=guess.acceptance)


def stated_so_far(key: str) -> Stated:
    """What a person has written into the fields for gaps, on this page."""
    written = {f.field: st.session_state.get(f"{key}-{f.field}") for f in FACTS}
    return Stated.model_validate({k: v for k, v in written.items() if v})


def _most(fact: Fact) -> float | None:
    """The largest value that a stated fact may have; the field says so itself."""
    return next((float(m.le) for m in Stated.model_fields[fact.field].metadata if hasattr(m, "le")), None)


def ask_for(facts: Iterable[Fact], key: str, currency: str) -> None:
    """A field for each missing fact; what is written counts at once and is marked as stated by the user."""
    wanted = list(facts)
    for column, fact in zip(st.columns(max(3, len(wanted))), wanted, strict=False):
        unit = f"{currency}{fact.unit}" if fact.field in ("unit_price", "electricity_per_kwh") else fact.unit
        column.number_input(
            f"{t(fact.title)[:1].upper()}{t(fact.title)[1:]}" + (f" ({unit})" if unit else ""),
            min_value=0.0, max_value=_most(fact), value=None, key=f"{key}-{fact.field}",
            placeholder=t("not known"), help=t(fact.fix),
        )  # fmt: skip


def stated_in_words(stated: Stated) -> str:
    """Which figures of the page rest on what a person stated here."""
    named = [t(f.title) for f in FACTS if getattr(stated, f.field) is not None]
    return t("Stated by you, not by the catalogue: {facts}.", facts=plain(", ".join(named))) if named else ""


def required_first_token(r: Requirements) -> str:
    """The promise for the first token, beside the figures that leave the queue out."""
    return t("Required: {x} at p{p}, queue included. Nobody waits in these figures; waiting comes on top.",
             x=format_duration(r.ttft_s), p=r.ttft_percentile)  # fmt: skip
