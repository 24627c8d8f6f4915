"""Makes articles with summaries, two tokenizers, and accuracy logs of made-up answers.

    make_summaries.py DIR

DIR/summaries.json has the articles as the reference publishes them. DIR/fast and DIR/slow are tokenizers as Llama 3.1 and GPT-J have them,
DIR/fast.json and DIR/slow.json logs of 32-bit tokens, DIR/wide.json the latter in 64 bits. DIR/english is the data of NLTK's sentence
tokenizer. The words are those of its data. Abbreviations, initials, numbers, ellipses, quotes, white space of every kind and characters
outside ASCII are among them.
"""
import json
import os
import random
import shutil
import sys

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2TokenizerFast, PreTrainedTokenizerFast

from common import PUNKT

SAMPLES = 1500
ODD = (
    "Mr. Dr. U.S. U.K. e.g. i.e. J. K. a.m. p.m. St. No. vs. Ph.D. B. A. 3.5 1,000. 5. $4. -7. 1st. ... .... .. . . . -- --- ? ! ?! !!! "
    "\" ' ) ( ] [ } { .\" .) !\" ?' .'\" , ; : @home #tag *star* & don't can't it's they've we're I'm 'quoted' re-elected. co-op. "
    "don 't ca n't he 's they 've we 're I 'm end . what ? so , here ' there "
    "Zürich naïve café Ünal ß ǅ Ⅳ ² ½ ٣ ٣. É. б. İstanbul K \u00a0 \u2003 \x1c \x85 \r \t \n \n\n   — … “well.” ‘so.’ 日本。 x. _. _a"
).split(" ")


def text(generator, words, longest):
    pieces = []
    for _ in range(generator.randrange(longest)):
        word = generator.choice(words)
        pieces.append(generator.choice([word, word.capitalize(), word.upper()]) if generator.random() < 0.4 else word)
        if generator.random() < 0.15:
            pieces[-1] += generator.choice([".", "?", "!", ",", ".\"", ".)", ";"])
        if generator.random() < 0.15:
            pieces.append(generator.choice(ODD))
    return generator.choice([" ", " ", " ", "  ", "\n"]).join(pieces)


def near(generator, text, words):
    """A text that has much of another one."""
    pieces = text.split(" ")
    for index in range(len(pieces)):
        if generator.random() < 0.3:
            pieces[index] = generator.choice([generator.choice(words), "", pieces[index] + "s", pieces[index - 1]])
    return " ".join(pieces)


def log(path, answers, dtype):
    entries = [
        {"seq_id": number, "qsl_idx": sample, "data": np.array(tokens, dtype).tobytes().hex().upper()}
        for number, (sample, tokens) in enumerate(answers)
    ]
    with open(path, "w") as file:
        json.dump(entries, file)


def main(directory):
    generator = random.Random(17)
    with open(os.path.join(PUNKT, "ortho_context.tab"), encoding="utf-8") as file:
        words = [line.split("\t")[0] for line in file]
    words = generator.sample(words, 6000)
    expected = [text(generator, words, 90) for _ in range(SAMPLES)]
    found = [near(generator, one, words) if generator.random() < 0.9 else text(generator, words, 90) for one in expected]
    with open(f"{directory}/summaries.json", "w", encoding="utf-8") as file:
        records = [{"input": "An article.", "tok_input": [1, 2], "output": one} for one in expected]
        json.dump(records, file, indent=4, ensure_ascii=False)
    shutil.copytree(PUNKT, f"{directory}/english")
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    special = ["<|begin_of_text|>", "<|eot_id|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=4000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    model.train_from_iterator(expected[:200], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=model, bos_token=special[0], eos_token=special[1], clean_up_tokenization_spaces=True
    )
    fast.save_pretrained(f"{directory}/fast")
    vocabulary = json.loads(model.to_str())["model"]
    os.makedirs(f"{directory}/slow")
    vocabulary["vocab"]["<|endoftext|>"] = len(vocabulary["vocab"])
    with open(f"{directory}/slow/vocab.json", "w", encoding="utf-8") as file:
        json.dump(vocabulary["vocab"], file)
    with open(f"{directory}/slow/merges.txt", "w", encoding="utf-8") as file:
        merges = [one if isinstance(one, str) else " ".join(one) for one in vocabulary["merges"]]
        file.write("#version: 0.2\n" + "\n".join(merges) + "\n")
    slow = GPT2TokenizerFast(f"{directory}/slow/vocab.json", f"{directory}/slow/merges.txt")
    slow.add_tokens(["<|extratoken_1|>", "<|extratoken_2|>"])
    slow.save_pretrained(f"{directory}/slow")
    # Some samples have no answer, some two, of which the first counts.
    order = generator.sample(range(SAMPLES), SAMPLES - 10)
    order += order[:5]
    answers = {"fast": [], "slow": []}
    for sample in order:
        for name, tokenizer in [("fast", fast), ("slow", slow)]:
            tokens = tokenizer.encode(found[sample], add_special_tokens=False)
            if generator.random() < 0.05:
                # No text has bytes like these.
                tokens = tokens[1::2]
            if generator.random() < 0.05:
                tokens.insert(len(tokens) // 2, tokenizer.eos_token_id)
            if name == "slow" and generator.random() < 0.05:
                tokens.insert(len(tokens) // 2, tokenizer.convert_tokens_to_ids("<|extratoken_1|>"))
            answers[name].append((sample, [*tokens, tokenizer.eos_token_id]))
    log(f"{directory}/fast.json", answers["fast"], np.int32)
    log(f"{directory}/slow.json", answers["slow"], np.int32)
    log(f"{directory}/wide.json", answers["slow"], np.int64)


main(sys.argv[1])
