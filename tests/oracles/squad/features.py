"""The reference's preprocessing of SQuAD with its own tokenizer, as the yardstick of `regatta prep bert-99`.

    features.py DIR    writes input_ids.npy, input_mask.npy and segment_ids.npy of dev-v1.1.json and vocab.txt to DIR/reference

With REGATTA_INFERENCE set to a checkout of mlcommons/inference with its submodule DeepLearningExamples, the functions of its
create_squad_data.py are used. Otherwise their steps are repeated here.
"""

import collections
import functools
import json
import os
import pathlib
import sys

import numpy as np
from transformers import BertTokenizer

SEQUENCE, STRIDE, QUESTION = 384, 128, 64

Example = collections.namedtuple("Example", "qas_id question_text doc_tokens")
Feature = collections.namedtuple(
    "Feature", "example_index tokens token_to_orig_map token_is_max_context input_ids input_mask segment_ids"
)


def bert_directory():
    """Returns language/bert of the checkout with its imports ready, or None."""
    checkout = os.environ.get("REGATTA_INFERENCE")
    if not checkout:
        return None
    bert = pathlib.Path(checkout) / "language/bert"
    sys.path[:0] = [str(bert), str(bert / "DeepLearningExamples/PyTorch/LanguageModeling/BERT")]
    return bert


def read_examples(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)["data"]
    examples = []
    for paragraph in (paragraph for article in data for paragraph in article["paragraphs"]):
        words, is_open = [], False
        for c in paragraph["context"]:
            if c in " \t\r\n\u202f":
                is_open = False
            elif is_open:
                words[-1] += c
            else:
                words.append(c)
                is_open = True
        examples += [Example(qa["id"], qa["question"], words) for qa in paragraph["qas"]]
    return examples


def spans_of(tokens, longest):
    spans, start = [], 0
    while start < tokens:
        length = min(longest, tokens - start)
        spans.append((start, length))
        if start + length == tokens:
            break
        start += min(length, STRIDE)
    return spans


def has_most_context(spans, own, position):
    scores = [
        (min(position - start, start + length - 1 - position) + 0.01 * length, -number)
        for number, (start, length) in enumerate(spans)
        if start <= position < start + length
    ]
    return -max(scores)[1] == own


def features_of(examples, tokenizer):
    features = []
    for index, example in enumerate(examples):
        question = tokenizer.tokenize(example.question_text)[:QUESTION]
        pieces = [(piece, number) for number, word in enumerate(example.doc_tokens) for piece in tokenizer.tokenize(word)]
        spans = spans_of(len(pieces), SEQUENCE - len(question) - 3)
        for own, (start, length) in enumerate(spans):
            part = pieces[start : start + length]
            tokens = ["[CLS]", *question, "[SEP]", *(piece for piece, _ in part), "[SEP]"]
            offset, padding = len(question) + 2, [0] * (SEQUENCE - len(tokens))
            features.append(
                Feature(
                    index,
                    tokens,
                    {offset + at: number for at, (_, number) in enumerate(part)},
                    {offset + at: has_most_context(spans, own, start + at) for at in range(length)},
                    tokenizer.convert_tokens_to_ids(tokens) + padding,
                    [1] * len(tokens) + padding,
                    [0] * offset + [1] * (length + 1) + padding,
                )
            )
    return features


def load(questions, vocabulary):
    tokenizer = BertTokenizer(str(vocabulary))
    # Every question of a text tokenizes all its words again.
    tokenizer.tokenize = functools.cache(tokenizer.tokenize)
    if bert_directory() is None:
        examples = read_examples(questions)
        return examples, features_of(examples, tokenizer)
    import create_squad_data as reference

    examples, features = reference.read_squad_examples(str(questions), is_training=False), []
    reference.convert_examples_to_features(examples, tokenizer, SEQUENCE, STRIDE, QUESTION, False, features.append)
    return examples, features


if __name__ == "__main__":
    directory = pathlib.Path(sys.argv[1])
    _, features = load(directory / "dev-v1.1.json", directory / "vocab.txt")
    (directory / "reference").mkdir(exist_ok=True)
    for name in ("input_ids", "input_mask", "segment_ids"):
        np.save(directory / "reference" / f"{name}.npy", np.array([getattr(feature, name) for feature in features], np.int32))
    print(len(features))
