"""Writes a small Llama with random weights as a GGUF file, and its tokenizer as transformers reads it. Its tokens are words.

    make_model.py FILE TOKENIZER

The server keeps back bytes that do not end a character. Here each token ends one, so that none is kept back.
"""

import sys

import small

TOKENS = small.words()
SPECIAL = ["<|begin|>", "<|end|>"]

small.write(sys.argv[1], TOKENS, SPECIAL, context=4096)
small.tokenizer(sys.argv[2], TOKENS, SPECIAL)
