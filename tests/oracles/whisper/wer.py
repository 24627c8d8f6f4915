"""The word error rate of an accuracy log by the steps and with the options of the reference's accuracy_eval.py of Whisper, with the normaliser of
openai-whisper.

    wer.py --log_dir DIR --dataset_dir DIR --manifest FILE --output_dtype int8|int64

With REGATTA_INFERENCE set to a checkout of mlcommons/inference, its accuracy_eval.py is run instead.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import word_errors
import words


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


normalize, _ = words.normalizer()
if not word_errors.runs_the_reference(["speech2text"]):
    word_errors.print_rate(" abcdefghijklmnopqrstuvwxyz'0123456789$%+-", normalize, joined)
