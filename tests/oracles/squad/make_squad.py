"""Makes a dataset in the form of SQuAD 1.1, with every awkward character, and a vocabulary for it.

    make_squad.py DIR QUESTIONS           writes dev-v1.1.json and vocab.txt
    make_squad.py DIR QUESTIONS plain     with short texts of known words

The texts mean nothing. Answers are long parts of them, so that most spans have words in common with an answer.
"""

import json
import pathlib
import random
import sys
import unicodedata

PLAIN = "the a an of river steam engine was built in year by which people and old law theory prime oxygen war city north".split()
AWKWARD = [
    "Élan", "e\u0301lan", "naïve", "Ångström", "ΣΟΦΟΣ", "ΌΣΟΣ", "ΑΣ,", "İstanbul", "ﬁne", "ẞ", "straße", "東京", "東京tower", "한국어",
    "\u1112\u1161\u11ab", "ｆｕｌｌ", "𝔸𝕓", "🚀", "👩\u200d🚀", "❤\ufe0f", "🇩🇪", "a\u200bb", "\ufeffx", "soft\u00adhyphen", "\ufffd", "x\u0000y",
    "tab\tand\r\nend", "\x1c", "a\x1eb", "\x85", "a\xa0b", "a\u202fb", "a\u2028b", "\u3000", "\ue000", "\u0378x", "«quoted»", "…", "—", "U.S.'s",
    "don't", "\u2019tis", "$5", "€5", "½", "x²", "Ⅷ", "٣٤", "हिन्दी", "ไทย", "עִבְרִית", "العَرَبِيَّة", "[SEP]", "[sep]", "x[CLS]y", "[MASK", "[UNK][PAD]",
    "##ing", "#", "a_b", "C++", "1895-1943", "(1895)", "\u212b", "\u2126", "\u037e", "\u1fef", "ᾼ", "ǅ", "\U00020000x", "豈", "Ω", "K",
]
IS_PLAIN = "plain" in sys.argv[3:]


def anything(rng):
    while True:
        c = chr(rng.randrange(0x110000 if rng.random() < 0.2 else 0x3000))
        # Newer tables than Python's give a meaning to unassigned characters.
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


def word(rng):
    if IS_PLAIN:
        return rng.choice(PLAIN[3:])
    kind = rng.random()
    if kind < 0.6:
        plain = rng.choice(PLAIN)
        return rng.choice([plain, plain, plain, plain.capitalize(), plain.upper(), plain + rng.choice(",.;:?!")])
    if kind < 0.9:
        return rng.choice(AWKWARD)
    if kind < 0.97:
        return "".join(anything(rng) for _ in range(rng.randint(1, 6)))
    return rng.choice("abxE") * rng.choice([20, 99, 100, 101, 300])


def text(rng, words):
    separators = [" "] * 12 + ["  ", "\n", "\t", "\r\n", "\u202f", " \xa0", "   \n  ", "\u2009"]
    return "".join(word(rng) + rng.choice(separators) for _ in range(words))


def paragraph(rng, count, first):
    kind = rng.random()
    # A text of spaces has no sample; one of 60 words has one, and one of 600 many.
    length = rng.choice([20, 500]) if IS_PLAIN else 0 if kind < 0.02 else rng.choice([3, 60, 100, 100, 130, 200, 600])
    context = " \n" if length == 0 else text(rng, length)
    questions = []
    for number in range(first, first + count):
        answers = []
        for _ in range(rng.randint(1, 3)):
            begin = rng.randrange(len(context))
            answers.append({"answer_start": begin, "text": context[begin : begin + rng.randint(1, 600)]})
        asked = rng.choice([0, 5, 10, 10, 15, 80])
        questions.append({"answers": answers, "id": f"{number:024x}", "question": text(rng, asked).strip(" ")})
    return {"context": context, "qas": questions}


def vocabulary(rng):
    letters = [chr(c) for c in range(33, 127) if not chr(c).isupper()]
    others = "東京豈αβγδεικλμνοπρσςτυφωßﬁ한½²٣€«»…—’🚀हनदไทย\u1112\u1161\u11ab"
    tokens = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *others]
    tokens += ["##" + letter for letter in letters if letter.isalnum()] + ["##" + letter for letter in "αοσςφß한²"]
    tokens += PLAIN + ["##" + plain for plain in PLAIN[3:9]] + ["elan", "naive", "tokyo", "##in", "##ing", "aa", "##aaa", "x" * 100, "1895"]
    # A token on two lines has the number of the second, as the reference reads it.
    return list(dict.fromkeys(tokens)) + ["steam"] + [f"word{number}" for number in range(100)]


def main():
    directory, questions = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(1)
    paragraphs, made = [], 0
    while made < questions:
        count = min(rng.randint(1, 8), questions - made)
        paragraphs.append(paragraph(rng, count, made))
        made += count
    articles = [{"title": f"Article {at}", "paragraphs": paragraphs[at : at + 20]} for at in range(0, len(paragraphs), 20)]
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "dev-v1.1.json", "w", encoding="utf-8") as file:
        json.dump({"data": articles, "version": "1.1"}, file, ensure_ascii=rng.random() < 0.5)
    with open(directory / "vocab.txt", "w", encoding="utf-8") as file:
        file.write("".join(f"{token}\n" for token in vocabulary(rng)))


main()
