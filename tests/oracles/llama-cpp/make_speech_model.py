"""Writes a small Llama with random weights that chats and hears, as a GGUF file, its tokenizer, and its encoder of speech. Its tokens are words.

    make_speech_model.py FILE TOKENIZER

The encoder of speech is beside FILE, with the ending `.projector`, where serve.py finds it.
"""

import sys

import small

SPECIAL = ["<|begin|>", "<|start|>", "<|end|>"]
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>{% endif %}"
)

small.write(sys.argv[1], small.words(), SPECIAL, context=8192, template=TEMPLATE, pre="llama-bpe")
small.tokenizer(sys.argv[2], small.words(), SPECIAL, ignore_merges=True)
small.write_projector(sys.argv[1] + ".projector")
