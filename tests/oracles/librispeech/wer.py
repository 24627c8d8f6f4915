"""The word error rate of an accuracy log by the steps and with the options of the reference's accuracy_eval.py of RNN-T.

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

LABELS = " abcdefghijklmnopqrstuvwxyz'"


def differences(found, expected):
    row = list(range(len(expected) + 1))
    for place, word in enumerate(found, 1):
        before, row[0] = row[0], place
        for at, other in enumerate(expected, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1]


def main():
    parser = argparse.ArgumentParser()
    for option in ["--log_dir", "--dataset_dir", "--manifest"]:
        parser.add_argument(option, required=True)
    parser.add_argument("--output_dtype", default="int64", choices=["int8", "int64"])
    options = parser.parse_args()
    with open(f"{options.log_dir}/mlperf_log_accuracy.json") as file:
        entries = json.load(file)
    with open(options.manifest) as file:
        transcripts = [one["transcript"] for one in json.load(file)]
    errors = words = 0
    for entry in entries:
        symbols = array.array({"int8": "b", "int64": "q"}[options.output_dtype], bytes.fromhex(entry["data"]))
        expected = transcripts[entry["qsl_idx"]].split()
        errors += differences("".join(LABELS[symbol] for symbol in symbols).split(), expected)
        words += len(expected)
    wer = errors / words
    print(f"Word Error Rate: {wer * 100}%, accuracy={(1 - wer) * 100}%")


checkout = os.environ.get("REGATTA_INFERENCE")
if checkout:
    places = ["speech_recognition/rnnt", "retired_benchmarks/speech_recognition/rnnt"]
    scripts = [pathlib.Path(checkout) / place / "accuracy_eval.py" for place in places]
    script = next(script for script in scripts if script.is_file())
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
else:
    main()
