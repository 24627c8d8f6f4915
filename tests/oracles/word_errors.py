"""Word errors of accuracy logs, by the steps and with the options of the reference's accuracy_eval.py. The oracles of RNN-T and Whisper use it."""
import argparse
import array
import json
import os
import pathlib
import runpy
import sys


def differences(found, expected):
    row = list(range(len(expected) + 1))
    for place, word in enumerate(found, 1):
        before, row[0] = row[0], place
        for at, other in enumerate(expected, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1]


def print_rate(labels, normalize=lambda text: text, aligned=lambda expected, found: (expected, found)):
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
        found = normalize("".join(labels[symbol] for symbol in symbols)).split()
        expected = normalize(transcripts[entry["qsl_idx"]]).split()
        words += len(expected)
        errors += differences(*aligned(expected, found))
    wer = errors / words
    print(f"Word Error Rate: {wer * 100}%, accuracy={(1 - wer) * 100}%")


def runs_the_reference(directories):
    """Runs the reference's own script, if REGATTA_INFERENCE names a checkout. It is in one of the directories, by round."""
    checkout = os.environ.get("REGATTA_INFERENCE")
    if not checkout:
        return False
    scripts = [pathlib.Path(checkout) / directory / "accuracy_eval.py" for directory in directories]
    script = next(script for script in scripts if script.is_file())
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    return True
