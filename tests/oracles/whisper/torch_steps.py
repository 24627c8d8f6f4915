"""Compares tokens of speech.py with those that transformers finds with the same weights. Run by hand: PyTorch is no oracle of the tests.

    torch_steps.py CHECKPOINT RULES DIR    with a Python that has PyTorch and transformers, such as Debian's python3-torch and transformers 4.30.2

`speech.py tokens CHECKPOINT NETWORKS RULES DIR` has written the tokens into DIR, beside the waveforms.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "librispeech"))
import log_mel
import safetensors.numpy


def make_model(checkpoint, rules):
    config = json.loads((checkpoint / "config.json").read_text())
    inner = {f"{side}_ffn_dim": 4 * config["d_model"] for side in ["encoder", "decoder"]}
    tokens = {"pad_token_id": rules["end"], "bos_token_id": rules["end"], "eos_token_id": rules["end"], "decoder_start_token_id": rules["prompt"][0]}
    model = WhisperForConditionalGeneration(WhisperConfig(**config, **inner, **tokens)).eval().double()
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    found = model.load_state_dict({name: torch.from_numpy(value.astype(np.float64)) for name, value in tensors.items()}, strict=False)
    # These are the weights of the embedding.
    assert found.missing_keys == ["proj_out.weight"] and not found.unexpected_keys, found
    model.tie_weights()
    return model


@torch.no_grad()
def greedy(model, features, rules):
    encoded = model.model.encoder(torch.from_numpy(features)[None])[0]
    generated = []
    while len(generated) < rules["most_tokens"] and generated[-1:] != [rules["end"]]:
        tokens = torch.tensor([rules["prompt"] + generated])
        scores = model(encoder_outputs=(encoded,), decoder_input_ids=tokens).logits[0, -1]
        scores[rules["suppressed"]] = -torch.inf
        generated.append(int(scores.argmax()))
    return generated


def main(checkpoint, rules, directory):
    rules = json.loads(rules)
    model = make_model(pathlib.Path(checkpoint), rules)
    lengths = np.load(f"{directory}/length.npy")
    for index, (waveform, length) in enumerate(zip(np.load(f"{directory}/waveform.npy"), lengths)):
        found = greedy(model, log_mel.whisper(waveform[:length]), rules)
        expected = json.loads(pathlib.Path(f"{directory}/{index}.tokens").read_text())
        assert found == expected, f"{index}: {found} instead of {expected}"
    print(f"equal tokens of {len(lengths)} waveforms")


main(*sys.argv[1:])
