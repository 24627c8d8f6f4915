"""Captions and their tokens, as coco.py of the reference of Stable Diffusion XL makes them with both tokenizers.

    tokens.py merges DIR          writes DIR/merges.txt, as the tokenizers are published
    tokens.py captions DIR        writes DIR/captions_source.tsv: captions in the form of the published table
    tokens.py tokens TABLE DIR    writes DIR/input_ids.npy and DIR/input_ids_2.npy, with the tokens of a table's captions

The list of merges is the one of the Python package open-clip-torch, from which the published files were made, too.
"""
import csv
import gzip
import importlib.util
import json
import pathlib
import random
import string
import sys
import tempfile

MERGES = 49152 - 256 - 2
COLUMNS = ["id", "image_id", "caption", "height", "width", "file_name", "coco_url"]
NEGATIVE = "normal quality, low quality, worst quality, low res, blurry, nsfw, nude"
CAPTIONS = [
    NEGATIVE,
    "a photo of a cat",
    "A city at night with people walking around.",
    'A man in glasses holding up a frisbee that says "Cheese Shop" on it.',
    '"Cheese Shop" is written on a frisbee',
    "The dog's owner won't say who'd've taken 12,345.67 dollars; they'll see",
    "S&B train number 3815 & another (old one) @ the 2nd track - 3:45?",
    "x" * 300,
    "many words " * 60,
    "  leading and   double  spaces ",
    "'''s 'tis 'VE ''ll ain't",
]


def read_merges():
    package = pathlib.Path(importlib.util.find_spec("open_clip").origin).parent
    return gzip.decompress((package / "bpe_simple_vocab_16e6.txt.gz").read_bytes()).decode().split("\n")[1 : MERGES + 1]


def write_merges(path):
    path.write_text("\n".join(["#version: 0.2", *read_merges()]) + "\n")


def write_vocabulary(path):
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters = [chr(byte) for byte in own] + [chr(256 + number) for number in range(256 - len(own))]
    tokens = letters + [f"{letter}</w>" for letter in letters] + [merge.replace(" ", "") for merge in read_merges()]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    path.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))


def make_captions(directory):
    generator = random.Random(38)
    words = [merge.replace(" ", "").replace("</w>", "") for merge in read_merges()]
    # Others are refused.
    words = [word for word in words if word.isascii() and not set(word) & set("!<&")]
    characters = [character for character in string.printable[:95] if character not in "!<&"]
    captions = list(CAPTIONS)
    for _ in range(300):
        captions.append(" ".join(generator.choices(words, k=generator.randint(1, 40))))
        # The published table has no caption that begins with a space.
        captions.append("".join(generator.choices(characters, k=generator.randint(1, 120))).strip() or "a")
    with open(directory / "captions_source.tsv", "w", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(COLUMNS)
        for number, caption in enumerate(captions):
            table.writerow([number, number, caption, 480, 640, f"{number}.jpg", f"http://{number}"])


def write_tokens(table, directory):
    import numpy as np
    from transformers import CLIPTokenizer

    with open(table, newline="") as file:
        captions = [row["caption"] for row in csv.DictReader(file, delimiter="\t")]
    with tempfile.TemporaryDirectory() as place:
        files = [pathlib.Path(place) / name for name in ["vocab.json", "merges.txt"]]
        write_vocabulary(files[0])
        write_merges(files[1])
        # As tokenizer and tokenizer_2 are configured.
        for name, padding in [("input_ids", "<|endoftext|>"), ("input_ids_2", "!")]:
            tokenizer = CLIPTokenizer(*map(str, files), pad_token=padding, model_max_length=77)
            assert tokenizer.fix_text is not None, "ftfy is missing"
            options = {"padding": "max_length", "max_length": 77, "truncation": True}
            ids = [tokenizer(caption, **options).input_ids for caption in captions]
            np.save(directory / f"{name}.npy", np.array(ids, np.int32))


def main(command, *paths):
    paths = [pathlib.Path(path) for path in paths]
    if command == "merges":
        write_merges(paths[0] / "merges.txt")
    elif command == "captions":
        make_captions(*paths)
    else:
        write_tokens(*paths)


main(*sys.argv[1:])
