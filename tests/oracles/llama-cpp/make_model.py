"""Writes a small Llama with random weights as a GGUF file, and its tokenizer as transformers reads it. Its tokens are words.

    make_model.py FILE TOKENIZER

The server keeps back bytes that do not end a character. Here each token ends one, so that none is kept back.
"""

import sys

import small

# As the tokenizers of GPT-2 and Llama 3 write them: a space is Ġ. 128 of these words have as many characters as a summary of the benchmark.
words = ["Ġ" + first + "a" + second + "e" for first in "bdfghklmnp" for second in "bdfghklmnprst"]
TOKENS = [".", *words[:93]]
SPECIAL = ["<|begin|>", "<|end|>"]

small.write(sys.argv[1], TOKENS, SPECIAL, context=4096)
small.tokenizer(sys.argv[2], TOKENS, SPECIAL)
