"""The word error rate of an accuracy log by the steps and with the options of the reference's accuracy_eval.py of Whisper, with the normaliser of
openai-whisper.

    wer.py --log_dir DIR --dataset_dir DIR --manifest FILE --output_dtype int8|int64

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its accuracy_eval.py is run instead.
"""
import argparse
import array
import json
import os
import pathlib
import runpy
import sys

import words

LABELS = " abcdefghijklmnopqrstuvwxyz'0123456789$%+-"


def differences(found, expected):
    row = list(range(len(expected) + 1))
    for place, word in enumerate(found, 1):
        before, row[0] = row[0], place
        for at, other in enumerate(expected, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1]


def joined(expected, found):
    """compute_wer_with_concatenation up to its distance: words that are joined or separated become equal."""
    pairs, place, other = [], 0, 0
    while place < len(expected) and other < len(found):
        counts = 1, 1
        for count in range(1, 4):
            if place + count <= len(expected) and "".join(expected[place : place + count]) == found[other]:
                counts = count, 1
                break
            if other + count <= len(found) and "".join(found[other : other + count]) == expected[place]:
                counts = 1, count
                break
        pairs.append(("".join(expected[place : place + counts[0]]), "".join(found[other : other + counts[1]])))
        place, other = place + counts[0], other + counts[1]
    return [one for one, _ in pairs] + expected[place:], [one for _, one in pairs] + found[other:]


def main(normalize):
    parser = argparse.ArgumentParser()
    for option in ["--log_dir", "--dataset_dir", "--manifest"]:
        parser.add_argument(option, required=True)
    parser.add_argument("--output_dtype", default="int64", choices=["int8", "int64"])
    options = parser.parse_args()
    with open(f"{options.log_dir}/mlperf_log_accuracy.json") as file:
        entries = json.load(file)
    with open(options.manifest) as file:
        transcripts = [one["transcript"] for one in json.load(file)]
    errors = count = 0
    for entry in entries:
        symbols = array.array({"int8": "b", "int64": "q"}[options.output_dtype], bytes.fromhex(entry["data"]))
        found = normalize("".join(LABELS[symbol] for symbol in symbols)).split()
        expected = normalize(transcripts[entry["qsl_idx"]]).split()
        count += len(expected)
        errors += differences(*joined(expected, found))
    wer = errors / count
    print(f"Word Error Rate: {wer * 100}%, accuracy={(1 - wer) * 100}%")


normalize, _ = words.normalizer()
checkout = os.environ.get("REGATTA_INFERENCE")
if checkout:
    script = pathlib.Path(checkout) / "speech2text/accuracy_eval.py"
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
else:
    main(normalize)
