"""Whisper with random weights, and the tokens that the reference finds with it.

    speech.py waveforms DIR                  writes DIR/waveform.npy and DIR/length.npy: speech-like sounds of several lengths
    speech.py dataset DIR [WAVEFORMS]        the same as chapters in the tree of LibriSpeech, each a clip of its own; WAVEFORMS gets what its files have
    speech.py features numpy|transformers DIR    writes DIR/INDEX.npy, the features of each waveform
    speech.py checkpoint DIR [SEED]          config.json, model.safetensors and tokenizer.json as whisper-large-v3 has them, but small
    speech.py tokens CHECKPOINT NETWORKS RULES DIR    writes DIR/INDEX.tokens, the generated tokens, and DIR/INDEX.symbols, a byte for each symbol

RULES is JSON: prompt, end, most_tokens, suppressed. Tokens are found twice: in NumPy on the weights, with all tokens so far at once, and with ONNX
Runtime on the two networks in NETWORKS, token by token. Both must be equal. Symbols are made as reference_SUT.py makes them of vLLM's text.
"""
import json
import math
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "librispeech"))
import log_mel
import voices

LONGEST, BANDS, STEPS, PLACES = 480000, 128, 1500, 64
WIDTH, HEADS, LAYERS = 32, 2, 2
# One value, whole and broken numbers of hops, a window that ends at the padding's end, and full ones.
LENGTHS = [1, 4000, 160000, 479801, 240160, 480000, 96485]
LABELS = " abcdefghijklmnopqrstuvwxyz'0123456789$%+-"
WORDS = """the of and to a in that he was it his I with as had for her you not be is at on him she Mr Mrs said
    all which by from but they this have so one no them who were me there been my will would""".split()
PIECES = ["'s", "ing", "ed", "ly", ".", ",", " \u2014", "caf", " na"]
# Parts of characters.
BYTES = [b"\xc3", b"\xa9"]
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
TIMESTAMPS = ["<|0.00|>", "<|0.02|>"]
END = 2.5
ERF = np.vectorize(math.erf)


def make_waveforms():
    return voices.make(LENGTHS)


def write_waveforms(directory, waveforms):
    np.save(f"{directory}/waveform.npy", waveforms)
    np.save(f"{directory}/length.npy", np.array(LENGTHS, np.int32))


def make_dataset(directory, waveforms=None):
    import soundfile

    stored = np.zeros((len(LENGTHS), max(LENGTHS)), np.float32)
    for index, (waveform, length) in enumerate(zip(make_waveforms(), LENGTHS)):
        # In the order of prep: chapters by name, those of both sets together.
        name, set_name = f"{100 + index}-{200 + index}", ["dev-clean", "dev-other"][index % 2]
        chapter = pathlib.Path(directory) / set_name / name.replace("-", "/")
        chapter.mkdir(parents=True)
        file = chapter / f"{name}-0000.flac"
        soundfile.write(file, waveform[:length], 16000, subtype="PCM_16")
        stored[index, :length] = soundfile.read(file, dtype="float32")[0]
        (chapter / f"{name}.trans.txt").write_text(f"{name}-0000{' NOT KNOWN YET' * 20}\n")
    if waveforms:
        write_waveforms(waveforms, stored)


def letters():
    """The letter that stands for each byte in a vocabulary."""
    own = [byte for byte in range(256) if chr(byte).isprintable() and byte not in (0x20, 0xA0, 0xAD)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in own else chr(next(others)) for byte in range(256)]


def make_tokenizer():
    texts = [f" {word}".encode() for word in WORDS] + [piece.encode() for piece in PIECES] + BYTES
    vocabulary = {"".join(letters()[byte] for byte in text): number for number, text in enumerate(texts)}
    added = [(text, True) for text in SPECIAL] + [(text, False) for text in TIMESTAMPS]
    added = [{"id": len(texts) + number, "content": text, "special": special} for number, (text, special) in enumerate(added)]
    return {"model": {"type": "BPE", "vocab": vocabulary}, "added_tokens": added}


def make_checkpoint(directory, seed=26):
    tokenizer = make_tokenizer()
    count = len(tokenizer["model"]["vocab"]) + len(tokenizer["added_tokens"])
    generator = np.random.default_rng(int(seed))
    tensors = {}

    def tensor(name, shape, most, middle=0):
        # float16, as published.
        tensors[f"model.{name}"] = (middle + generator.uniform(-most, most, shape)).astype(np.float16)

    def linear(name, inner, outer, most, has_bias=True):
        tensor(f"{name}.weight", [outer, inner], most)
        if has_bias:
            tensor(f"{name}.bias", [outer], 0.3)

    def norm(name):
        tensor(f"{name}.weight", [WIDTH], 0.4, 1)
        tensor(f"{name}.bias", [WIDTH], 0.1)

    def attention(name, most):
        for part in "qkv":
            linear(f"{name}.{part}_proj", WIDTH, WIDTH, most, part != "k")
        linear(f"{name}.out_proj", WIDTH, WIDTH, most)

    def layers(side):
        for name in (f"{side}.layers.{layer}" for layer in range(LAYERS)):
            attention(f"{name}.self_attn", 0.5)
            norm(f"{name}.self_attn_layer_norm")
            if side == "decoder":
                attention(f"{name}.encoder_attn", 1.2)
                norm(f"{name}.encoder_attn_layer_norm")
            linear(f"{name}.fc1", WIDTH, 4 * WIDTH, 0.6)
            linear(f"{name}.fc2", 4 * WIDTH, WIDTH, 0.3)
            norm(f"{name}.final_layer_norm")
        norm(f"{side}.layer_norm")

    for name, inner in [("conv1", BANDS), ("conv2", WIDTH)]:
        tensor(f"encoder.{name}.weight", [WIDTH, inner, 3], 0.3)
        tensor(f"encoder.{name}.bias", [WIDTH], 0.1)
    tensor("encoder.embed_positions.weight", [STEPS, WIDTH], 0.5)
    layers("encoder")
    tensor("decoder.embed_tokens.weight", [count, WIDTH], 0.5)
    tensor("decoder.embed_positions.weight", [PLACES, WIDTH], 3.0)
    layers("decoder")
    # So that streams end at different times.
    end = len(tokenizer["model"]["vocab"])
    tensors["model.decoder.embed_tokens.weight"][end] *= np.float16(END)
    config = {"d_model": WIDTH, "num_mel_bins": BANDS, "vocab_size": count, "max_source_positions": STEPS, "max_target_positions": PLACES}
    for side in ["encoder", "decoder"]:
        config |= {f"{side}_layers": LAYERS, f"{side}_attention_heads": HEADS}
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    header, place = {"__metadata__": {"format": "pt"}}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F16", "shape": value.shape, "data_offsets": [place, place + value.nbytes]}
        place += value.nbytes
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


def read_tensors(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    header.pop("__metadata__")
    part = lambda entry: np.frombuffer(data[slice(*entry["data_offsets"])], np.float16).reshape(entry["shape"])
    return {name: part(entry).astype(np.float64) for name, entry in header.items()}


class Weights:
    """Whisper in NumPy, without a cache: the decoder sees all tokens at once."""

    def __init__(self, checkpoint):
        self.tensors = read_tensors(checkpoint / "model.safetensors")
        config = json.loads((checkpoint / "config.json").read_text())
        self.heads, self.layers = config["decoder_attention_heads"], config["decoder_layers"]

    def get(self, name):
        return self.tensors[f"model.{name}"]

    def linear(self, name, value):
        return value @ self.get(f"{name}.weight").T + self.tensors.get(f"model.{name}.bias", 0)

    def norm(self, name, value):
        value = (value - value.mean(-1, keepdims=True)) / np.sqrt(value.var(-1, keepdims=True) + 1e-5)
        return value * self.get(f"{name}.weight") + self.get(f"{name}.bias")

    def attention(self, name, value, other, mask=0):
        query, key, found = (self.linear(f"{name}.{part}_proj", of) for part, of in zip("qkv", [value, other, other]))
        size, rows = query.shape[1] // self.heads, []
        for at in range(0, query.shape[1], size):
            scores = query[:, at : at + size] @ key[:, at : at + size].T / np.sqrt(size) + mask
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            rows.append(shares / shares.sum(-1, keepdims=True) @ found[:, at : at + size])
        return self.linear(f"{name}.out_proj", np.concatenate(rows, 1))

    def gelu(self, value):
        return value * 0.5 * (1 + ERF(value / np.sqrt(2)))

    def layer(self, name, value, mask=0, encoded=None):
        inner = self.norm(f"{name}.self_attn_layer_norm", value)
        value = value + self.attention(f"{name}.self_attn", inner, inner, mask)
        if encoded is not None:
            value = value + self.attention(f"{name}.encoder_attn", self.norm(f"{name}.encoder_attn_layer_norm", value), encoded)
        inner = self.gelu(self.linear(f"{name}.fc1", self.norm(f"{name}.final_layer_norm", value)))
        return value + self.linear(f"{name}.fc2", inner)

    def convolve(self, name, value, stride):
        weights, padded = self.get(f"{name}.weight"), np.pad(value, [(1, 1), (0, 0)])
        taps = [padded[tap : len(padded) - 2 + tap] @ weights[:, :, tap].T for tap in range(3)]
        return self.gelu(sum(taps)[::stride] + self.get(f"{name}.bias"))

    def encode(self, features):
        value = self.convolve("encoder.conv2", self.convolve("encoder.conv1", features.T, 1), 2)
        value = value + self.get("encoder.embed_positions.weight")
        for layer in range(self.layers):
            value = self.layer(f"encoder.layers.{layer}", value)
        self.encoded, self.tokens = self.norm("encoder.layer_norm", value), []

    def scores(self, token):
        self.tokens.append(token)
        count, embedding = len(self.tokens), self.get("decoder.embed_tokens.weight")
        value = embedding[self.tokens] + self.get("decoder.embed_positions.weight")[:count]
        mask = np.where(np.tri(count) > 0, 0, -np.inf)
        for layer in range(self.layers):
            value = self.layer(f"decoder.layers.{layer}", value, mask, self.encoded)
        return self.norm("decoder.layer_norm", value)[-1] @ embedding.T


class Networks:
    """The two networks in ONNX Runtime."""

    def __init__(self, directory):
        import onnxruntime

        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(f"{directory}/{name}.onnx", providers=["CPUExecutionProvider"]) for name in ["encoder", "decoder"]
        )
        self.shape = [1, *next(one.shape[1:] for one in self.decoder.get_inputs() if one.name == "cache")]

    def encode(self, features):
        (self.cross,) = self.encoder.run(None, {"features": features[None].astype(np.float32)})
        # What is no position yet is not used.
        self.cache, self.position = np.full(self.shape, 1e6, np.float32), 0

    def scores(self, token):
        numbers = {"token": np.array([token], np.int32), "position": np.array([self.position], np.int32)}
        scores, keys = self.decoder.run(None, {**numbers, "cache": self.cache, "cross": self.cross})
        self.cache[:, :, :, self.position] = keys
        self.position += 1
        return scores[0].astype(np.float64)


def greedy(model, features, rules):
    """The generated tokens, and the smallest distance of a best score from the next."""
    model.encode(features)
    tokens, distance = list(rules["prompt"]), np.inf
    for token in rules["prompt"][:-1]:
        model.scores(token)
    while True:
        scores = model.scores(tokens[-1])
        scores[rules["suppressed"]] = -np.inf
        *_, second, first = np.sort(scores)
        distance = min(distance, first - second)
        tokens.append(int(np.argmax(scores)))
        generated = tokens[len(rules["prompt"]) :]
        if generated[-1] == rules["end"] or len(generated) == rules["most_tokens"]:
            return generated, distance


def symbols(tokens, tokenizer):
    """What reference_SUT.py answers for the text, which has no special tokens."""
    bytes_of = {letter: byte for byte, letter in enumerate(letters())}
    texts = {number: bytes(bytes_of[letter] for letter in text) for text, number in tokenizer["model"]["vocab"].items()}
    texts |= {entry["id"]: b"" if entry["special"] else entry["content"].encode() for entry in tokenizer["added_tokens"]}
    text = b"".join(texts[token] for token in tokens).decode(errors="replace")
    return bytes(LABELS.index(letter) for letter in text.lower().strip() if letter in LABELS)


def samples(directory):
    rows = zip(np.load(f"{directory}/waveform.npy", mmap_mode="r"), np.load(f"{directory}/length.npy"))
    return [row[:length].astype(np.float32) for row, length in rows]


def make_features(steps, directory):
    make = log_mel.whisper
    if steps == "transformers":
        from transformers import WhisperFeatureExtractor

        extractor = WhisperFeatureExtractor(feature_size=BANDS)
        make = lambda waveform: extractor(waveform, sampling_rate=16000, return_tensors="np")["input_features"][0]
    for index, waveform in enumerate(samples(directory)):
        np.save(f"{directory}/{index}.npy", np.ascontiguousarray(make(waveform), np.float32))


def main(command, *arguments):
    if command == "waveforms":
        write_waveforms(arguments[0], make_waveforms())
    elif command == "dataset":
        make_dataset(*arguments)
    elif command == "features":
        make_features(*arguments)
    elif command == "checkpoint":
        make_checkpoint(*arguments)
    else:
        checkpoint, networks, rules, directory = arguments
        checkpoint, rules = pathlib.Path(checkpoint), json.loads(rules)
        models = [Weights(checkpoint), Networks(networks)]
        tokenizer = json.loads((checkpoint / "tokenizer.json").read_text())
        for index, waveform in enumerate(samples(directory)):
            features = log_mel.whisper(waveform)
            (one, distance), (other, _) = (greedy(model, features, rules) for model in models)
            assert one == other, f"{index}: the networks find other tokens than the weights: {one} {other}"
            print(index, f"{distance:.4f}", one)
            pathlib.Path(f"{directory}/{index}.tokens").write_text(json.dumps(one))
            pathlib.Path(f"{directory}/{index}.symbols").write_bytes(symbols(one, tokenizer))


main(*sys.argv[1:])
