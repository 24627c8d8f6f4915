"""Prompts of GPT-J, as dataset.py of the reference makes them with transformers.

    prompts.py ARTICLES TOKENIZER LONGEST OUT

ARTICLES is cnn_eval.json, and TOKENIZER a directory with vocab.json and merges.txt. Writes OUT, a JSON list of the token ids of each prompt.
"""

import json
import os
import sys

from transformers import GPT2Tokenizer

PROMPT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:"
)

articles, directory, longest, out = sys.argv[1:]
files = [os.path.join(directory, name) for name in ("vocab.json", "merges.txt")]
tokenizer = GPT2Tokenizer(*files, unk_token="<|end|>", model_max_length=2048, padding_side="left")
tokenizer.pad_token = tokenizer.unk_token
with open(articles, encoding="utf-8") as file:
    prompts = [PROMPT.format_map(article) for article in json.load(file)]
ids = [tokenizer(prompt, padding=True, truncation=True, max_length=int(longest)).input_ids for prompt in prompts]
with open(out, "w", encoding="utf-8") as file:
    json.dump(ids, file)
