"""Writes a small Llama with random weights that takes any text and has a chat template, and its tokenizer. Its tokens are bytes.

    make_chat_model.py FILE TOKENIZER
"""

import sys

import small

SPECIAL = ["<|begin|>", "<|start|>", "<|end|>"]
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)

small.write(sys.argv[1], small.byte_characters(), SPECIAL, context=131072, template=TEMPLATE)
small.tokenizer(sys.argv[2], small.byte_characters(), SPECIAL)
