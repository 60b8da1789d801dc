"""Write a model of a stated geometry with random weights and a small tokenizer, for scripts/gpu_check.py.

Run with a Python that has torch and transformers: `python scripts/random_model.py 8b DIR`. Speed and memory are those
of a real model of that shape; the text is noise, but whole characters (tests/engine/tiny_model.py says why).
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.engine.tiny_model import SEED, make, write_tokenizer, writes_text  # noqa: E402

MAX_POSITIONS = 8192
# Shape of Llama 3.1 8B (catalog/models.yaml): hidden, feed-forward, layers, heads, KV heads, vocabulary.
GEOMETRIES = {"8b": (4096, 14336, 32, 32, 8, 128256)}


def make_random(geometry: str, folder: Path) -> None:
    """Write the model in bfloat16, complete or not at all; the weights are drawn on the GPU where there is one."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    write_tokenizer(part, MAX_POSITIONS)
    known = json.loads((part / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    hidden, feed_forward, layers, heads, kv_heads, vocabulary = GEOMETRIES[geometry]
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=hidden, intermediate_size=feed_forward, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=MAX_POSITIONS,
        bos_token_id=0, eos_token_id=1, tie_word_embeddings=False, dtype="bfloat16",
    )  # fmt: skip
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = LlamaForCausalLM(config)
    written = torch.tensor([i for token, i in known.items() if writes_text(token)])
    with torch.no_grad():  # every other row scores 0, and among hundreds of random scores the best is above that
        head = model.lm_head.weight
        kept = head[written.to(head.device)].clone()
        head.zero_()
        head[written.to(head.device)] = kept
    model.save_pretrained(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


if __name__ == "__main__":
    if sys.argv[1] == "tiny":
        make(Path(sys.argv[2]))
    else:
        make_random(sys.argv[1], Path(sys.argv[2]))
