"""F1 and exact match of a log, with the options and the printed line of the reference's accuracy-squad.py.

With REGATTA_INFERENCE set to a checkout of mlcommons/inference with its submodule DeepLearningExamples, runs that script itself.
Otherwise the functions come from the transformers library, which took them from the same source.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import sys

import features

bert = features.bert_directory()
if bert:
    os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path[1:3], os.environ.get("PYTHONPATH", "")])
    os.execv(sys.executable, [sys.executable, str(bert / "accuracy-squad.py"), *sys.argv[1:]])

import numpy as np
from transformers.data.metrics import squad_metrics
from transformers.models.bert.tokenization_bert import BasicTokenizer

SPECIAL = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")
squad_metrics.BasicTokenizer = functools.partial(BasicTokenizer, never_split=SPECIAL)


def logits(data, dtype):
    pairs = np.frombuffer(bytes.fromhex(data), dtype).reshape(-1, 2)
    padded = np.full((features.SEQUENCE, 2), -10000.0)
    padded[: len(pairs)] = pairs
    return padded[:, 0].tolist(), padded[:, 1].tolist()


def answer(example, own, responses):
    best = None
    for feature, response in ((feature, responses.get(number)) for number, feature in own):
        if response is None:
            continue
        starts, ends = response
        for start in squad_metrics._get_best_indexes(starts, 20):
            for end in squad_metrics._get_best_indexes(ends, 20):
                inside = start in feature.token_to_orig_map and end in feature.token_to_orig_map
                if not inside or not feature.token_is_max_context[start] or not start <= end < start + 30:
                    continue
                if best is None or starts[start] + ends[end] > best[0]:
                    best = (starts[start] + ends[end], feature, start, end)
    if best is None:
        return "empty"
    _, feature, start, end = best
    tokens = " ".join(feature.tokens[start : end + 1]).replace(" ##", "").replace("##", "")
    first, last = feature.token_to_orig_map[start], feature.token_to_orig_map[end]
    original = " ".join(example.doc_tokens[first : last + 1])
    return squad_metrics.get_final_text(" ".join(tokens.split()), original, True)


def main():
    parser = argparse.ArgumentParser()
    for option in ("--log_file", "--val_data", "--vocab_file", "--features_cache_file", "--out_file"):
        parser.add_argument(option, required=True)
    parser.add_argument("--output_dtype", default="float32", choices=["float16", "float32"])
    options = parser.parse_args()
    examples, made = features.load(options.val_data, options.vocab_file)
    with open(options.log_file) as file:
        responses = {entry["qsl_idx"]: logits(entry["data"], options.output_dtype) for entry in json.load(file)}
    own = collections.defaultdict(list)
    for number, feature in enumerate(made):
        own[feature.example_index].append((number, feature))
    answers = {example.qas_id: answer(example, own[index], responses) for index, example in enumerate(examples)}
    with open(options.out_file, "w") as file:
        json.dump(answers, file)
    with open(options.val_data, encoding="utf-8") as file:
        data = json.load(file)["data"]
    f1 = exact = total = 0
    for qa in (qa for article in data for paragraph in article["paragraphs"] for qa in paragraph["qas"]):
        total += 1
        accepted = [found["text"] for found in qa["answers"]]
        exact += max(squad_metrics.compute_exact(one, answers[qa["id"]]) for one in accepted)
        f1 += max(compute_f1(one, answers[qa["id"]]) for one in accepted)
    print(json.dumps({"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}))


def compute_f1(accepted, answered):
    # The library counts two empty answers as equal; the official script does not.
    if not squad_metrics.get_tokens(accepted) or not squad_metrics.get_tokens(answered):
        return 0
    return squad_metrics.compute_f1(accepted, answered)


main()
