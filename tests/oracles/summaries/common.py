"""The data of NLTK's sentence tokenizer beside the installed libraries. Prints their directory when run."""
import os

import nltk

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(nltk.__file__))), "nltk_data")
nltk.data.path.insert(0, DATA)
PUNKT = os.path.join(DATA, "tokenizers", "punkt_tab", "english")

if __name__ == "__main__":
    print(PUNKT)
