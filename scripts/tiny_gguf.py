"""Write the tiny model of tests/engine as GGUF, for llama-server: same weights, same tokenizer, same chat template.

Run with the engines' Python: `.venv-vllm/bin/python scripts/tiny_gguf.py MODEL_DIR FILE.gguf [Q4_0]`. With Q4_0 every
matrix whose rows are whole blocks of 32 is written in four bits; ffn_down, with rows of 688, stays in 16.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

# Names of a layer's tensors here and in GGUF.
LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
REST = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a q or k projection from half-split to interleaved rotary order, which is llama.cpp's for this family."""
    rows, width = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def write(model: Path, target: Path, *, four_bits: bool = False) -> None:
    """Write `target`; every tensor stays float32, or its matrices become Q4_0."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(str(target), "llama")
    writer.add_name(model.name)
    _shape(writer, config)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0 if four_bits else gguf.LlamaFileType.ALL_F32)
    _tokenizer(writer, model)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, weight in sorted(load_file(model / "model.safetensors").items()):
        stem = name.removesuffix(".weight")
        if stem in REST:
            to = REST[stem]
        else:
            _, _, number, part = stem.split(".", 3)
            weight = interleaved(weight, heads[LAYER[part]]) if LAYER[part] in heads else weight
            to = f"blk.{number}.{LAYER[part]}"
        kept = _in_four_bits(weight) if four_bits and weight.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(f"{to}.weight", gguf.quants.quantize(weight, kept), raw_dtype=kept)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _in_four_bits(weight: np.ndarray) -> gguf.GGMLQuantizationType:
    whole = weight.shape[-1] % gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q4_0][0] == 0
    return gguf.GGMLQuantizationType.Q4_0 if whole else gguf.GGMLQuantizationType.F16


def _shape(writer: gguf.GGUFWriter, config: dict[str, object]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])


def _tokenizer(writer: gguf.GGUFWriter, model: Path) -> None:
    bpe = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    special = {t["id"] for t in bpe["added_tokens"] if t["special"]}
    tokens = sorted(bpe["model"]["vocab"], key=bpe["model"]["vocab"].__getitem__)
    kinds = [gguf.TokenType.CONTROL if i in special else gguf.TokenType.NORMAL for i in range(len(tokens))]
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(m) if isinstance(m, list) else m for m in bpe["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
    writer.add_chat_template((model / "chat_template.jinja").read_text(encoding="utf-8"))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]), four_bits=sys.argv[3:] == ["Q4_0"])
