"""The word error rate of an accuracy log by the steps and with the options of the reference's accuracy_eval.py of RNN-T.

    wer.py --log_dir DIR --dataset_dir DIR --manifest FILE --output_dtype int8|int64

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its accuracy_eval.py is run instead.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import word_errors

if not word_errors.runs_the_reference(["speech_recognition/rnnt", "retired_benchmarks/speech_recognition/rnnt"]):
    word_errors.print_rate(" abcdefghijklmnopqrstuvwxyz'")
