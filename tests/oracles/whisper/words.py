"""Texts after the normalisation of openai-whisper, and the package without PyTorch, which its normalisers do not need.

    words.py FILE    prints each line of FILE after the EnglishTextNormalizer
    words.py         prints the path of english.json
"""
import importlib.util
import pathlib
import sys
import types


def normalizer():
    place = pathlib.Path(importlib.util.find_spec("whisper").origin).parent
    package = types.ModuleType("whisper")
    package.__path__ = [str(place)]
    sys.modules["whisper"] = package
    from whisper.normalizers import EnglishTextNormalizer

    return EnglishTextNormalizer(), place / "normalizers/english.json"


def main():
    normalize, spellings = normalizer()
    if len(sys.argv) == 1:
        print(spellings)
        return
    for line in pathlib.Path(sys.argv[1]).read_text().split("\n"):
        print(" ".join(normalize(line).split()))


if __name__ == "__main__":
    main()
