"""A model to serve that is made, not downloaded: a four-layer Llama with random weights from a fixed seed.

Run with the engine's own Python (it has torch, transformers and tokenizers): `python tests/engine/tiny_model.py DIR`.
Scheduling, KV blocks and metrics of the server are real; the text that it writes is noise, but whole characters: some
servers hold back the bytes of half a character, which would be measured as a late token.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from pathlib import Path

SEED = 20261129
NAME = "tiny-llama-4x256"
MAX_POSITIONS = 4096
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# The tokenizer learns its merges from these words alone, so that it is the same on every machine.
WORDS = """
a about after again all also an and any are as at back batch be because been before being between both but by cache
can change come could day decide decode did different do down each engine even every evidence find first follow for
from gate get give go good great had hand has have help here high home how if important in into is it just keep know
last latency life line little live load long look machine made make many may measure memory might model more most move
much must name near need never new next no not now number of off often old on one only or other our out over own page
part people place plan point prefill prompt queue real request right run said same say score second see seed serve
server set she should show side small so some sound still study such system take tell than that the their them then
there these they thing think this three through time to token too turn two under until up us use very want was water
way we well were what when where which while who why will with word work world would write year you your
"""


def corpus() -> list[str]:
    """Two thousand lines of twelve seeded words, the text that the tokenizer is trained on."""
    words, rng = WORDS.split(), random.Random(SEED)
    return [" ".join(rng.choices(words, k=12)).capitalize() + "." for _ in range(2000)]


def revision_of(folder: Path) -> str:
    """SHA-256 over the names and contents of the model's files, in name order."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def make(folder: Path) -> str:
    """Write the model and its tokenizer into `folder`, complete or not at all, and return the revision."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    write_tokenizer(part, MAX_POSITIONS)
    _weights(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return revision_of(folder)


def write_tokenizer(folder: Path, max_positions: int) -> None:
    """Write the byte-level tokenizer with its chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1024, special_tokens=[START, END], initial_alphabet=sorted(alphabet), show_progress=False
    )
    bpe.train_from_iterator(corpus(), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token=START, eos_token=END, chat_template=TEMPLATE)
    fast.model_max_length = max_positions
    fast.save_pretrained(folder)


def writes_text(token: str) -> bool:
    """Printable ASCII in the byte-level alphabet, where "\u0120" is a blank; the two special tokens are none."""
    return token not in (START, END) and all("!" <= c <= "~" or c == "\u0120" for c in token)


def _weights(folder: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(vocab), hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=MAX_POSITIONS, bos_token_id=0, eos_token_id=1,
        tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(torch.float32)
    with torch.no_grad():  # a zero row scores 0, and among hundreds of random scores the best is above that
        model.lm_head.weight[[i for token, i in vocab.items() if not writes_text(token)]] = 0
    model.save_pretrained(folder)


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
