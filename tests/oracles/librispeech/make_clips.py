"""Makes utterances of two sets in the tree of LibriSpeech, and the clips that the reference of Whisper makes of them.

    make_clips.py DIR

DIR/LibriSpeech is the tree. DIR/reference/fp32.npy and length.npy are what librosa.load returns for the clips, padded with zeros, and
transcripts.txt has their texts. The steps of repackage_librispeech.py are repeated with soundfile, which writes the clips. With REGATTA_INFERENCE
set to a checkout of mlcommons/inference, the program itself is run, with soundfile in the place of librosa.
"""
import json
import os
import pathlib
import runpy
import sys
import types

import numpy as np
import soundfile

LONGEST, PAUSE, RATE = 480000, 8000, 16000
# Seconds of each utterance, as numbers of values: one too long, clips that are exactly full and one value too long, and a single one.
CHAPTERS = {
    "dev-clean/2277/149896": [160000, 200000, 104000, 160000, 200000, 104001, 480001, 3],
    "dev-other/116/288045": [480000, 16000, 17, 479999],
    "dev-clean/84/121123": [240000, 232000, 240000, 232001],
}


def values(generator, length):
    """Loud noise, so that all values occur, around the middle of the range, too."""
    value = generator.integers(-32768, 32768, length)
    value[::3] = generator.choice([-16385, -16384, -16383, 16383, 16384, 16385, 16386, 16387, 32767, -32768, 0, 1], len(value[::3]))
    return value.astype(np.int16)


def read(path):
    return soundfile.read(path, dtype="float32")[0]


def repackage(entries, directory, output):
    """What the program does with entries in the form of convert_librispeech.py's manifest."""
    chapters, clips = {}, []
    for entry in entries:
        name = pathlib.Path(entry["files"][0]["fname"]).stem
        chapters.setdefault("-".join(name.split("-")[:2]), []).append((read(f"{directory}/{entry['files'][0]['fname']}"), entry["transcript"]))
    for key, utterances in chapters.items():
        parts = []
        for audio, transcript in utterances:
            if len(audio) > LONGEST:
                continue
            if not parts or sum(len(part) + PAUSE for part, _ in parts[-1]) + len(audio) > LONGEST:
                parts.append([])
            parts[-1].append((audio, transcript))
        for index, part in enumerate(parts):
            pieces = [part[0][0]] + [piece for audio, _ in part[1:] for piece in [np.zeros(PAUSE), audio]]
            path = f"{output}/{key}_{index}.wav"
            soundfile.write(path, np.concatenate(pieces), RATE)
            clips.append({"transcript": " ".join(text for _, text in part), "files": [{"fname": path}]})
    return clips


def main(directory):
    generator = np.random.default_rng(11)
    reference = f"{directory}/reference"
    os.makedirs(f"{reference}/clips")
    entries = []
    # The order of the program's input; the chapters themselves are in alphabetical order.
    for chapter, lengths in sorted(CHAPTERS.items(), key=lambda item: item[0].split("/", 1)[1]):
        place = pathlib.Path(directory) / "LibriSpeech" / chapter
        place.mkdir(parents=True)
        prefix = "-".join(chapter.split("/")[1:])
        lines = []
        for number, length in enumerate(lengths):
            name, text = f"{prefix}-{number:04}", f"UTTERANCE OF CHAPTER {'ABCDEFGH'[number]}"
            data = values(generator, length)
            soundfile.write(place / f"{name}.flac", data, RATE, subtype="PCM_16")
            soundfile.write(f"{reference}/{name}.wav", data, RATE, subtype="PCM_16")
            lines.append(f"{name} {text}\n")
            entries.append({"files": [{"fname": f"{name}.wav"}], "transcript": text.lower()})
        (place / f"{prefix}.trans.txt").write_text("".join(lines))
    checkout = os.environ.get("REGATTA_INFERENCE")
    if checkout:
        sys.modules["librosa"] = types.SimpleNamespace(load=lambda path, sr: (read(path), sr))
        with open(f"{reference}/all.json", "w") as file:
            json.dump(entries, file)
        program = f"{checkout}/speech2text/utils/repackage_librispeech.py"
        options = ["--manifest", f"{reference}/all.json", "--data_dir", reference]
        sys.argv = [program, *options, "--output_dir", f"{reference}/clips", "--output_json", f"{reference}/clips.json"]
        runpy.run_path(program, run_name="__main__")
        with open(f"{reference}/clips.json") as file:
            clips = json.load(file)
    else:
        clips = repackage(entries, reference, f"{reference}/clips")
    audio = [read(clip["files"][0]["fname"]) for clip in clips]
    np.save(f"{reference}/fp32.npy", np.stack([np.pad(one, (0, LONGEST - len(one))) for one in audio]))
    np.save(f"{reference}/length.npy", np.array([len(one) for one in audio], np.int32))
    pathlib.Path(f"{reference}/transcripts.txt").write_text("\n".join(clip["transcript"] for clip in clips))


main(sys.argv[1])
