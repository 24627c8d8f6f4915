"""Runs the reference's evaluation.py of Llama 3.1, which is that of GPT-J but for its dataset, or repeats its steps.

    REGATTA_INFERENCE=CHECKOUT evaluation.py OPTIONS...

It is taken from the checkout of mlcommons/inference that the variable names; without one, its steps are repeated.
The script's libraries that are on no registry or unused are replaced: `evaluate` fetches its metric from the network and calls rouge_score,
as here; of torch and datasets it uses nothing.
"""
import argparse
import json
import os
import runpy
import sys
import types

import nltk
import numpy as np
import transformers
from rouge_score import rouge_scorer

import common  # noqa: F401 sets the data of nltk

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


class Metric:
    def compute(self, predictions, references, use_stemmer, use_aggregator):
        assert not use_aggregator
        scorer = rouge_scorer.RougeScorer(KINDS, use_stemmer=use_stemmer)
        scores = [scorer.score(reference, prediction) for reference, prediction in zip(references, predictions)]
        return {kind: [score[kind].fmeasure for score in scores] for kind in KINDS}


def module(name, **contents):
    found = types.ModuleType(name)
    vars(found).update(contents)
    sys.modules[name] = found


def repeat():
    parser = argparse.ArgumentParser()
    for option in ["mlperf-accuracy-file", "dataset-file", "dtype", "model-name"]:
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model_name, use_fast=False)
    with open(args.dataset_file, encoding="utf-8") as file:
        targets = [record["output"] for record in json.load(file)]
    first = {}
    with open(args.mlperf_accuracy_file) as file:
        for entry in json.load(file):
            first.setdefault(entry["qsl_idx"], entry)
    tokens = [np.frombuffer(bytes.fromhex(entry["data"]), args.dtype) for entry in first.values()]
    lines = lambda texts: ["\n".join(nltk.sent_tokenize(text.strip())) for text in texts]
    found = lines(tokenizer.batch_decode(tokens, skip_special_tokens=True))
    expected = lines([targets[index] for index in first])
    result = Metric().compute(found, expected, True, False)
    result = {kind: f"{round(np.mean(values) * 100, 4)}" for kind, values in result.items()}
    result["gen_len"] = np.sum([len(text) for text in found])
    result["gen_num"] = len(found)
    print(result)


nltk.download = lambda *_: True
checkout = os.environ.get("REGATTA_INFERENCE")
if checkout is None:
    repeat()
else:
    script = os.path.join(checkout, "language/llama3.1-8b/evaluation.py")
    module("evaluate", load=lambda name: {"rouge": Metric()}[name])
    module("torch")
    module("torch.nn")
    module("torch.nn.functional", pad=None)
    module("torch.utils")
    module("torch.utils.data", DataLoader=None)
    module("datasets", load_dataset=None, load_from_disk=None)
    sys.path.insert(0, os.path.dirname(script))
    runpy.run_path(script, run_name="__main__")
