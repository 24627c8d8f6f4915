"""Tokens of texts, as the tokenizers library and transformers' slow tokenizer of GPT-2 make them.

    tokens.py TEXTS DIRECTORY

TEXTS is a JSON list of texts. Trains a byte-level tokenizer on them for each known way to divide texts, and writes DIRECTORY/NAME/tokenizer.json and
DIRECTORY/NAME/tokens.json, the tokens of each text.
"""

import json
import os
import sys

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from transformers import GPT2Tokenizer

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIVISIONS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "llama3": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    ),
}

with open(sys.argv[1], encoding="utf-8") as file:
    texts = json.load(file)
for name, division in DIVISIONS.items():
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    tokenizer.pre_tokenizer = division
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    directory = os.path.join(sys.argv[2], name)
    os.makedirs(directory, exist_ok=True)
    tokenizer.save(os.path.join(directory, "tokenizer.json"))
    tokens = [tokenizer.encode(text).ids for text in texts]
    if name == "gpt2":
        tokenizer.model.save(directory)
        slow = GPT2Tokenizer(os.path.join(directory, "vocab.json"), os.path.join(directory, "merges.txt"), unk_token="<|end|>")
        assert [slow(text).input_ids for text in texts] == tokens
    with open(os.path.join(directory, "tokens.json"), "w", encoding="utf-8") as file:
        json.dump(tokens, file)
