"""How a model may be shared out: tensor parallel by heads and vocabulary, pipeline parallel by layers."""

from __future__ import annotations

from planner.errors import InputError
from planner.model_schema import Model

# Engines pad the vocabulary to a multiple of this before they share it out (vllm vocab_parallel_embedding.py).
VOCABULARY_PADDING = 64
LARGEST_SPLIT = 64


def padded_vocabulary(model: Model) -> int:
    """Rows of the embedding table as engines store it."""
    return -(-model.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING


def _objection(model: Model, devices: int) -> str | None:
    """What keeps the model from being shared over that many devices, None when nothing does."""
    kv_heads = {model.num_key_value_heads}
    if model.global_attention:
        kv_heads.add(model.global_attention.num_key_value_heads)
    if devices < 1:
        return f"{devices} devices are not a split."
    if model.num_attention_heads % devices:
        return f"{model.num_attention_heads} attention heads do not divide over {devices} devices."
    # A latent cache has no KV heads to share; elsewhere heads divide, or each is copied to equally many devices.
    for heads in kv_heads if model.mla is None else ():
        if heads % devices and devices % heads:
            return f"{heads} KV heads do not divide over {devices} devices."
    if padded_vocabulary(model) % devices:
        return f"a vocabulary of {model.vocab_size:,} does not divide over {devices} devices."
    return None


def valid_tensor_parallel(model: Model) -> tuple[int, ...]:
    """Numbers of devices up to 64 that can share each layer of the model."""
    return tuple(n for n in range(1, LARGEST_SPLIT + 1) if _objection(model, n) is None)


def check_tensor_parallel(model: Model, tensor_parallel: int) -> None:
    """Raise InputError unless attention heads, KV heads and vocabulary divide over the devices."""
    objection = _objection(model, tensor_parallel)
    if objection:
        raise InputError(
            objection,
            where=model.id,
            fix=f"Tensor parallel can be {', '.join(map(str, valid_tensor_parallel(model)))}.",
        )


def check_pipeline(model: Model, pipeline_parallel: int) -> None:
    """Raise InputError unless every stage gets a layer."""
    if not 1 <= pipeline_parallel <= model.num_hidden_layers:
        raise InputError(
            f"{model.num_hidden_layers} layers do not make {pipeline_parallel} stages.",
            where=model.id,
            fix=f"Pipeline parallel can be 1 to {model.num_hidden_layers}.",
        )


def stage_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage, the last few spread from the one before last backwards.

    As vLLM does it (vllm/distributed/utils.py get_pp_indices): the last stage also holds the output projection.
    """
    each, left = divmod(layers, stages)
    return tuple(each + (stages - 1 - left <= s < stages - 1) for s in range(stages))
