"""Makes utterances in the tree of LibriSpeech, and the arrays that the reference reads of them.

    make_speech.py DIR

DIR/LibriSpeech is the tree. DIR/reference/waveform.npy and length.npy are what AudioSegment.from_file of the reference returns for the same
values in WAV, padded with zeros. Noise, tones like vowels, silence and full scale are in it, with the longest accepted length and one more.
"""
import os
import sys

import numpy as np
import soundfile

LONGEST = 240000
CHAPTERS = ["2277/149896", "174/50561"]
LENGTHS = [[1, 105440, 240000, 240001], [4096, 4097, 77360]]
WORDS = ["HE WAS IN A FEVERED STATE", "THE BLIGHT HIS WIFE'S ACTION", "NOT FOUND", "TOO LONG"]


def values(generator, kind, length):
    if kind == 0:
        return generator.integers(-32768, 32768, length).astype(np.int16)
    if kind == 1:
        time = np.arange(length) / 16000
        voice = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20))
        return (voice * (1 + np.sin(2 * np.pi * 3 * time)) * 6000).astype(np.int16)
    if kind == 2:
        return np.zeros(length, np.int16)
    return np.where(np.arange(length) % 2 == 0, 32767, -32768).astype(np.int16)


def reference(path):
    with soundfile.SoundFile(path, "r") as file:
        return file.read(dtype="float32").transpose().astype("float32")


def main(directory):
    generator = np.random.default_rng(17)
    rows, lengths = [], []
    os.makedirs(f"{directory}/reference")
    for chapter, of_chapter in zip(CHAPTERS, LENGTHS):
        place = f"{directory}/LibriSpeech/dev-clean/{chapter}"
        os.makedirs(place)
        prefix = chapter.replace("/", "-")
        lines = []
        for number, length in enumerate(of_chapter):
            data = values(generator, number % 4, length)
            name = f"{prefix}-{number:04}"
            soundfile.write(f"{place}/{name}.flac", data, 16000, subtype="PCM_16")
            wav = f"{directory}/reference/{name}.wav"
            soundfile.write(wav, data, 16000, subtype="PCM_16")
            lines.append(f"{name} {WORDS[number]}\n")
            if length <= LONGEST:
                read = reference(wav)
                rows.append(np.pad(read, (0, LONGEST - len(read))))
                lengths.append(len(read))
        with open(f"{place}/{prefix}.trans.txt", "w") as file:
            file.writelines(lines)
    np.save(f"{directory}/reference/fp32.npy", np.stack(rows))
    np.save(f"{directory}/reference/fp16.npy", np.stack(rows).astype(np.float16))
    np.save(f"{directory}/reference/length.npy", np.array(lengths, np.int32))


main(sys.argv[1])
